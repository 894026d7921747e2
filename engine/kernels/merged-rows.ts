/** Writes rows of the tables of several agents as lines in one order. A line has the cursor of all of them. */
import { bufferBytes } from '../core/allocator.js';
import { positionOfHalves, type JointPosition, type Position } from '../core/cursor.js';
import { openScratch } from '../core/scratch.js';
import {
  bytesToCopy,
  callBytes,
  columnWords,
  gatherRows,
  jsonString,
  lineBytesMax,
  numberBytesMax,
  placedCall,
  rowsOfCallMax,
  setColumn,
  writeCalls,
  type JsonColumn,
  type LineOutput,
  type LineTable,
  type PlacedRows,
} from './json-rows.js';

/**
 * Words of an entry in a list of rows of several agents: the number of its table, plus 65536 times that of its agent; its row; and a position
 * of each agent as two words, the low one first.
 */
export function wordsOfEntry(agents: number): number {
  return 2 + 2 * agents;
}

/** The place of an entry. */
export function positionOfEntry(entries: Uint32Array, agents: number, index: number): JointPosition {
  const at = index * wordsOfEntry(agents);
  const of: Position[] = [];
  for (let k = 0; k < agents; k++)
    of.push(positionOfHalves(entries[at + 3 + 2 * k]!, entries[at + 2 + 2 * k]!));
  const agent = entries[at]! >>> 16;
  return { ...of[agent]!, agent, of };
}

/**
 * Writes the lines of the entries [first, to) of a list. Stops before a value if its longest form may not fit in the output. Returns the
 * index of the first entry that is not written.
 */
export function writeMergedRows(
  table: LineTable,
  list: Uint32Array,
  first: number,
  to: number,
  output: LineOutput,
): number {
  return writeCalls(first, to, output, {
    endOf: (next, room) => endOfCall(table, list, next, to, room),
    place: (next, end, outputBytes) => placeEntries(table, list, next, end, outputBytes),
  });
}

/** An output size in which the line of an entry certainly fits. */
export function mergedLineBytesMax(
  { merged, fixedBytes }: LineTable,
  list: Uint32Array,
  index: number,
): number {
  const at = index * wordsOfEntry(merged!.agents);
  const table = merged!.tables[list[at]! & 0xffff]!;
  return lineBytesMax({ ...table, fixedBytes }, null, list[at + 1]!);
}

/** The end of the call that begins at `next`. Of columns that have to be copied, no more strings are taken than the output has room for. */
function endOfCall(
  { columns, merged }: LineTable,
  list: Uint32Array,
  next: number,
  to: number,
  room: number,
): number {
  const { tables, agents } = merged!;
  const lineBytesMin = Math.min(
    ...tables.map(({ fixedBytes, columnCount }) => fixedBytes - columnCount * numberBytesMax),
  );
  const most = Math.min(to, next + rowsOfCallMax, next + Math.ceil(room / lineBytesMin));
  if (columns === null) return most;
  const words = wordsOfEntry(agents);
  const strings = tables.map((table) => table.columns?.filter(({ kind }) => kind === jsonString) ?? []);
  let left = room;
  for (let i = next; i < most; i++) {
    const row = list[i * words + 1]!;
    for (const { codes, offsets } of strings[list[i * words]! & 0xffff]!) {
      const entry = codes.length === 0 ? row : codes[row]!;
      left -= offsets[entry + 1]! - offsets[entry]!;
    }
    if (left < 0) return i;
  }
  return most;
}

/** Row numbers that the kernel loads at a time. */
const touchedRows = 64;

/**
 * Puts the entries [first, end) where the kernel finds them, and leaves `outputBytes` of the scratch memory free. The places of the tables, their
 * blocks, room for the kernel and the entries follow one another in one buffer: a buffer for each would take longer than writing some lines.
 */
function placeEntries(
  { format, fixedBytes, columns, merged }: LineTable,
  list: Uint32Array,
  first: number,
  end: number,
  outputBytes: number,
): PlacedRows {
  const { tables, agents } = merged!;
  const words = wordsOfEntry(agents);
  let entries = list.subarray(first * words, end * words);
  if (columns !== null) entries = entries.slice();
  const copied = tables.map((table, i) =>
    table.columns === null ? null : gathered(table.columns, entries, words, i),
  );
  let copiedBytes = 0;
  for (const own of copied) for (const column of own ?? []) copiedBytes += bytesToCopy(column);
  let wordCount = 2 * tables.length + touchedRows + entries.length;
  for (const { block } of tables) wordCount += block.length;
  const scratch = openScratch(bufferBytes(4 * wordCount) + copiedBytes + callBytes + outputBytes);
  const placesAt = scratch.reserve(4 * wordCount);
  const { buffer, byteOffset } = scratch.view(placesAt, 4 * wordCount);
  const placed = new Uint32Array(buffer, byteOffset, wordCount);
  let at = 2 * tables.length;
  tables.forEach(({ block, columnCount }, i) => {
    copied[i]?.forEach((column, k) =>
      setColumn(
        block,
        k,
        columnWords(column, (array) => scratch.place(array, 0, array.length)),
      ),
    );
    placed[2 * i] = placesAt + 4 * at;
    placed[2 * i + 1] = columnCount;
    placed.set(block, at);
    at += block.length;
  });
  placed.set(entries, at + touchedRows);
  const call = {
    format,
    blockAt: placesAt,
    columnCount: tables.length,
    fixedBytes,
    rowsAt: placesAt + 4 * (at + touchedRows),
    ordinalsAt: placesAt + 4 * at,
    to: end - first,
    cursorOf0: 0n,
    agents,
  };
  return placedCall(scratch, call, 0);
}

/** The rows of table `index` among the entries, as columns of their own. The entries then name their rows in these. */
function gathered(
  columns: readonly JsonColumn[],
  entries: Uint32Array,
  words: number,
  index: number,
): JsonColumn[] {
  const rows: number[] = [];
  for (let at = 0; at < entries.length; at += words) {
    if ((entries[at]! & 0xffff) !== index) continue;
    rows.push(entries[at + 1]!);
    entries[at + 1] = rows.length - 1;
  }
  const list = Uint32Array.from(rows);
  return columns.map((column) => gatherRows(column, list));
}
