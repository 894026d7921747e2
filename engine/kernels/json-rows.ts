/**
 * Writes rows of columns as lines of JSON or CSV. The JSON has the bytes of `JSON.stringify`, except that 64-bit integers keep all digits;
 * strings are valid UTF-8, so no other escapes are needed. For the format `json`, each object has a comma before it, as an element of an
 * array. In CSV, null is an empty field, and an empty string is `""`.
 */
import type { LineFormat } from '../core/schema.js';
import { copyBytes } from '../core/utf8.js';
import { bufferBytes } from '../core/allocator.js';
import { openScratch, scratchBytes, type Scratch } from '../core/scratch.js';
import { sharedMemory } from '../core/shared-memory.js';
import { kernelsOver, type Kernels } from './kernels.js';

/** The kinds of a `JsonColumn`. The kernel uses the same numbers. */
export const jsonInt64 = 0;
export const jsonFloat64 = 1;
export const jsonString = 2;
/** Null in every row. */
export const jsonNull = 3;
/** Integers, where 0 stands for false and any other for true. */
export const jsonBool = 4;

/** One column of the rows, as typed arrays. Arrays that its kind does not use are empty. */
export interface JsonColumn {
  readonly kind:
    typeof jsonInt64 | typeof jsonFloat64 | typeof jsonString | typeof jsonNull | typeof jsonBool;
  /** One bit per row, 1 = present. Empty when every row is present. */
  readonly validity: Uint8Array;
  /** The index of each row's entry in the arrays below. Empty when entry i belongs to row i. */
  readonly codes: Uint8Array | Uint16Array;
  /** For jsonInt64 and jsonBool: pairs of 32-bit halves, low half first. */
  readonly halves: Int32Array;
  /** For jsonFloat64; without NaN and infinities. */
  readonly doubles: Float64Array;
  /** For jsonString: entry e is bytes[offsets[e], offsets[e + 1]). */
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** A column of nulls. It also provides the empty arrays for those that a column does not use. */
export const nullJsonColumn: JsonColumn = {
  kind: jsonNull,
  validity: new Uint8Array(0),
  codes: new Uint8Array(0),
  halves: new Int32Array(0),
  doubles: new Float64Array(0),
  offsets: new Uint32Array(0),
  bytes: new Uint8Array(0),
};

/** The text before each value of a line. It is the same for all rows of an answer. */
export interface LineKeys {
  readonly format: LineFormat;
  /** For each column `,"name":` in UTF-8; in CSV only the comma. */
  readonly keys: readonly Uint8Array[];
  /** The maximum length of a line without its strings, in bytes. */
  readonly fixedBytes: number;
}

/** The buffer that rows are written to. */
export interface LineOutput {
  bytes: Uint8Array;
  /** Offset of the first byte that has not been written. */
  at: number;
}

/** The longest double, -0.0000028663373879509285, has 25 characters; the longest int64 has 20, and `null` has 4. */
export const numberBytesMax = 25;

/** `,{"_cursor":"`, the 16 digits of the cursor, `"`, and `}` with the line end. CSV needs less. */
const frameBytes = 13 + 16 + 1 + 2;

/** The keys of columns with these names, in the same order. */
export function lineKeysOf(names: readonly string[], format: LineFormat = 'jsonl'): LineKeys {
  const encoder = new TextEncoder();
  const keys = names.map((name) => encoder.encode(format === 'csv' ? ',' : `,${JSON.stringify(name)}:`));
  const fixedBytes = keys.reduce((sum, key) => sum + key.length + numberBytesMax, frameBytes);
  return { format, keys, fixedBytes };
}

/** Puts an array into the kernels' memory and returns its address. */
export type Place = (array: Uint8Array | Uint16Array | Int32Array | Uint32Array | Float64Array) => number;

const wordsPerColumn = 8;
/** Words of a column's description: offset and length of its key, followed by the description of the values. */
const keyWord = 0;
const keyBytesWord = 1;
const valueWord = 2;

/**
 * A table in the form that the kernel takes: eight words for each column, followed by the bytes of the keys. The offset of a key counts
 * from the first column, so the block can be at any address.
 */
export type KernelBlock = Uint32Array<ArrayBuffer>;

const blocks = new WeakMap<LineKeys['keys'], KernelBlock>();

/** A block with these keys, and no columns in it yet. */
function blockOf(keys: LineKeys['keys']): KernelBlock {
  let block = blocks.get(keys);
  if (block === undefined) {
    block = layKeys(keys);
    blocks.set(keys, block);
  }
  return block.slice();
}

function layKeys(keys: LineKeys['keys']): KernelBlock {
  const keysBytes = keys.reduce((sum, key) => sum + key.length, 0);
  const block = new Uint32Array(keys.length * wordsPerColumn + Math.ceil(keysBytes / 4));
  const bytes = new Uint8Array(block.buffer);
  let at = keys.length * wordsPerColumn * 4;
  keys.forEach((key, i) => {
    bytes.set(key, at);
    block[i * wordsPerColumn + keyWord] = at;
    block[i * wordsPerColumn + keyBytesWord] = key.length;
    at += key.length;
  });
  return block;
}

/** Puts the words of a column into a block. */
export function setColumn(block: KernelBlock, i: number, words: Uint32Array): void {
  block.set(words, i * wordsPerColumn + valueWord);
}

/** The words that describe the values of a column. */
export function columnWords({ kind, ...arrays }: JsonColumn, place: Place): Uint32Array {
  const placeAny: Place = (array) => (array.length === 0 ? 0 : place(array));
  const { validity, codes, halves, doubles, offsets, bytes } = arrays;
  const firstByte = offsets[0] ?? 0;
  const data =
    doubles.length > 0
      ? place(doubles)
      : halves.length > 0
        ? place(halves)
        : // Where all strings are empty there are no bytes, and any address will do.
          placeAny(bytes.subarray(firstByte, offsets.at(-1))) - firstByte;
  return Uint32Array.of(
    kind,
    placeAny(validity),
    placeAny(codes),
    codes.BYTES_PER_ELEMENT,
    data,
    placeAny(offsets),
  );
}

/** The block of a table. `place` puts the arrays into the kernels' memory. */
export function kernelBlock(
  keys: LineKeys['keys'],
  columns: readonly JsonColumn[],
  place: Place,
): KernelBlock {
  const block = blockOf(keys);
  columns.forEach((column, i) => setColumn(block, i, columnWords(column, place)));
  return block;
}

/** The address of an array that is in the kernels' memory. */
const addressOf: Place = (array) => array.byteOffset;

const placedColumns = new WeakMap<JsonColumn, Uint32Array | null>();

/**
 * The words of a column that is in the kernels' memory; null for any other column. They are cached for all queries that read the column.
 */
function placedWords(column: JsonColumn): Uint32Array | null {
  let words = placedColumns.get(column);
  if (words === undefined) {
    words = bytesToCopy(column) === 0 ? columnWords(column, addressOf) : null;
    placedColumns.set(column, words);
  }
  return words;
}

/** Bytes of a column that are not in the kernels' memory. */
export function bytesToCopy({ validity, codes, halves, doubles, offsets, bytes }: JsonColumn): number {
  const strings = scratchBytes(bytes, (offsets.at(-1) ?? 0) - (offsets[0] ?? 0));
  let sizeBytes = strings === 0 ? 0 : bufferBytes(strings);
  for (const array of [validity, codes, halves, doubles, offsets]) {
    const copied = scratchBytes(array, array.length);
    if (copied > 0) sizeBytes += bufferBytes(copied);
  }
  return sizeBytes;
}

/** Columns and their keys, ready to be written. */
export interface LineTable {
  readonly format: LineFormat;
  /** Describes the columns that are in the kernels' memory. Where all are, any thread that shares the memory can use it. */
  readonly block: KernelBlock;
  readonly columnCount: number;
  /** The maximum length of a line without its strings, in bytes. */
  readonly fixedBytes: number;
  /** The columns, where some are not in the kernels' memory, so that each call copies the rows that it writes; null where all are. */
  readonly columns: readonly JsonColumn[] | null;
  /** The tables of rows of several agents, which `writeMergedRows` writes. Such a table has no columns of its own. */
  readonly merged?: MergedTables | undefined;
}

/** Tables whose rows are written in one order. */
export interface MergedTables {
  readonly tables: readonly LineTable[];
  /** Number of positions in a cursor. */
  readonly agents: number;
}

/** Makes a table of columns. There must be as many keys as columns. */
export function lineTable({ format, keys, fixedBytes }: LineKeys, columns: readonly JsonColumn[]): LineTable {
  const block = blockOf(keys);
  let isPlaced = true;
  columns.forEach((column, i) => {
    const words = placedWords(column);
    if (words === null) isPlaced = false;
    else setColumn(block, i, words);
  });
  return { format, block, columnCount: columns.length, fixedBytes, columns: isPlaced ? null : columns };
}

/** What a call of the kernel writes. Addresses are of the kernels' memory. */
export interface LinesCall extends Pick<LineTable, 'format' | 'columnCount' | 'fixedBytes'> {
  readonly blockAt: number;
  /** 0, or the address of a list of row numbers; then the call writes indices in the list. */
  readonly rowsAt: number;
  /** 0, or the address of a list of the same length with the numbers that are added to `cursorOf0`. */
  readonly ordinalsAt: number;
  /** The end of the rows. */
  readonly to: number;
  /** The cursor of the row, or of the number in the list of ordinals, that is 0. */
  readonly cursorOf0: bigint;
  /**
   * 0, or the number of agents. Then `blockAt` is the address of the addresses of `columnCount` tables, `rowsAt` that of a list of entries,
   * and `ordinalsAt` that of room for 64 row numbers.
   */
  readonly agents: number;
}

/** What the words of a call take of the scratch memory. */
export const callBytes = bufferBytes(4 * 12);

/** A call as the kernel reads it. */
export function callWords(call: LinesCall): Uint32Array {
  const { format, blockAt, columnCount, fixedBytes, rowsAt, ordinalsAt, to, cursorOf0, agents } = call;
  const words = Uint32Array.of(
    blockAt,
    columnCount,
    fixedBytes,
    rowsAt,
    ordinalsAt,
    to,
    0,
    agents,
    0,
    0,
    0,
    0,
  );
  words[6] = format === 'json' ? 1 : 0;
  words[8] = format === 'csv' ? 1 : 0;
  words[10] = Number(cursorOf0 & 0xffff_ffffn);
  words[11] = Number(cursorOf0 >> 32n);
  return words;
}

/** A call in the kernels' memory, from row `from` on. */
export interface PlacedCall {
  readonly kernels: Kernels;
  readonly callAt: number;
  readonly from: number;
}

/**
 * Writes lines like `writeJsonRows`. The bytes of `output` are at address `outputAt`, followed by padding. Returns the number of lines
 * written.
 */
export function writePlacedRows(
  { kernels, callAt, from }: PlacedCall,
  output: LineOutput,
  outputAt: number,
): number {
  const atMax = outputAt + output.bytes.length;
  let next = from;
  let column = 0;
  let at = outputAt + output.at;
  for (;;) {
    next = kernels.writeLines(callAt, next, column, at, atMax);
    column = kernels.jsonDoubleColumn();
    if (column < 0) break;
    // The kernel leaves doubles with more than three decimals to the JavaScript engine, which writes the shortest decimal. Afterwards the
    // kernel continues in the line after it.
    const text = String(kernels.jsonDouble());
    at = kernels.jsonDoubleAt() >>> 0;
    for (let i = 0; i < text.length; i++) output.bytes[at - outputAt + i] = text.charCodeAt(i);
    at += text.length;
    column++;
  }
  output.at = (kernels.jsonEnd() >>> 0) - outputAt;
  return next - from;
}

/** Maximum rows of one call where a list of rows or the values of columns have to be copied. */
export const rowsOfCallMax = 4096;

/**
 * Writes the lines of rows[first], rows[first + 1], …, up to index `to` (exclusive); where `rows` is null, of the rows `first` to `to`.
 * Stops before a value if its longest form plus `fixedBytes` may not fit in the output. Returns the index of the first row that is not
 * written. The ordinal of row r is `ordinalOfRow0 + r`. An output in the kernels' memory must be followed by padding.
 */
export function writeJsonRows(
  table: LineTable,
  rows: Uint32Array | null,
  first: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: LineOutput,
): number {
  const cursorOfRow0 = (BigInt(partition) << 40n) + BigInt(ordinalOfRow0);
  return writeCalls(first, to, output, {
    endOf: (next, room) => endOfCall(table, rows, next, to, room),
    place: (next, end, outputBytes) => placeRows(table, rows, next, end, cursorOfRow0, outputBytes),
  });
}

/** How rows are written by calls of the kernel. */
interface Calls {
  /** The end of the call that begins at a row, where the output has this much room. */
  readonly endOf: (next: number, room: number) => number;
  /** Puts the rows [next, end) where the kernel finds them, and leaves `outputBytes` of the scratch memory free. */
  readonly place: (next: number, end: number, outputBytes: number) => PlacedRows;
}

/** Writes the rows [first, to) by as many calls as they take. Returns the first row that is not written. */
export function writeCalls(first: number, to: number, output: LineOutput, { endOf, place }: Calls): number {
  const isOutputThere = sharedMemory().holds(output.bytes);
  for (let next = first; next < to;) {
    const room = output.bytes.length - output.at;
    const end = endOf(next, room);
    if (end === next) return next;
    next += writeOut(place(next, end, isOutputThere ? 0 : room), output, isOutputThere);
    if (next < end) return next;
  }
  return to;
}

/** Writes placed rows to an output that is in the kernels' memory, or else is copied from there. Returns the number of lines written. */
function writeOut({ scratch, placed }: PlacedRows, output: LineOutput, isOutputThere: boolean): number {
  if (isOutputThere) return writePlacedRows(placed, output, output.bytes.byteOffset);
  const room = output.bytes.length - output.at;
  const outputAt = scratch.reserve(room);
  const lines: LineOutput = { bytes: scratch.view(outputAt, room), at: 0 };
  const written = writePlacedRows(placed, lines, outputAt);
  output.bytes.set(lines.bytes.subarray(0, lines.at), output.at);
  output.at += lines.at;
  return written;
}

/**
 * An output size in which the line of rows[index], or without a list of row `index`, certainly fits. A control character takes six bytes.
 */
export function lineBytesMax(table: LineTable, rows: Uint32Array | null, index: number): number {
  const { placed } = placeRows(table, rows, index, index + 1, 0n, 0);
  return placed.kernels.lineBytesMax(placed.callAt, placed.from);
}

/** The end of the call that begins at `next`. Of columns that have to be copied, no more strings are taken than the output has room for. */
function endOfCall(
  { columns, fixedBytes }: LineTable,
  rows: Uint32Array | null,
  next: number,
  to: number,
  room: number,
): number {
  if (columns === null) return rows === null ? to : Math.min(to, next + rowsOfCallMax);
  const lineBytesMin = fixedBytes - columns.length * numberBytesMax;
  const most = Math.min(to, next + rowsOfCallMax, next + Math.ceil(room / lineBytesMin));
  const strings = columns.filter(({ kind }) => kind === jsonString);
  let left = room;
  for (let i = next; i < most; i++) {
    const row = rows === null ? i : rows[i]!;
    for (const { codes, offsets } of strings) {
      const entry = codes.length === 0 ? row : codes[row]!;
      left -= offsets[entry + 1]! - offsets[entry]!;
    }
    if (left < 0) return i;
  }
  return most;
}

/** Rows where the kernel finds them, and the scratch memory that they are in. */
export interface PlacedRows {
  readonly scratch: Scratch;
  readonly placed: PlacedCall;
}

/** Puts the rows [first, end) where the kernel finds them, and leaves `outputBytes` of the scratch memory free. */
function placeRows(
  table: LineTable,
  rows: Uint32Array | null,
  first: number,
  end: number,
  cursorOfRow0: bigint,
  outputBytes: number,
): PlacedRows {
  const { format, block, columnCount, fixedBytes } = table;
  // Consecutive rows are cut out from a byte boundary of the bitmaps on.
  const base = table.columns === null || rows !== null ? 0 : first & ~7;
  const copied = table.columns?.map((column) =>
    rows === null ? cutRows(column, base, end) : gatherRows(column, rows.subarray(first, end)),
  );
  const copiedBytes = copied?.reduce((sum, column) => sum + bytesToCopy(column), 0) ?? 0;
  const listBytes = rows === null ? 0 : bufferBytes((end - first) * 4);
  const scratch = openScratch(
    bufferBytes(block.byteLength) + copiedBytes + listBytes + callBytes + outputBytes,
  );
  copied?.forEach((column, i) => {
    setColumn(
      block,
      i,
      columnWords(column, (array) => scratch.place(array, 0, array.length)),
    );
  });
  const ordinalsAt = rows === null ? 0 : scratch.place(rows, first, end);
  const call = {
    format,
    blockAt: scratch.place(block, 0, block.length),
    columnCount,
    fixedBytes,
    rowsAt: table.columns === null ? ordinalsAt : 0,
    ordinalsAt,
    to: rows === null ? end - base : end - first,
    cursorOf0: cursorOfRow0 + BigInt(base),
    agents: 0,
  };
  return placedCall(scratch, call, rows === null ? first - base : 0);
}

/** Puts a call into the scratch memory, of which it needs `callBytes`. */
export function placedCall(scratch: Scratch, call: LinesCall, from: number): PlacedRows {
  const words = callWords(call);
  const callAt = scratch.place(words, 0, words.length);
  return { scratch, placed: { kernels: kernelsOver(scratch), callAt, from } };
}

/**
 * The rows [from, end) of a column as a column of their own. `from` must be a multiple of 8. If there are more entries than rows, only the
 * used entries are taken.
 */
function cutRows(column: JsonColumn, from: number, end: number): JsonColumn {
  const { validity, codes, halves, doubles, offsets } = column;
  const isCoded = codes.length > 0;
  const entries = Math.max(halves.length / 2, doubles.length, offsets.length - 1);
  if (isCoded && entries > end - from)
    return gatherRows(
      column,
      Uint32Array.from({ length: end - from }, (_, i) => from + i),
    );
  const present = validity.subarray(from >> 3, (end + 7) >> 3);
  if (isCoded) return { ...column, validity: present, codes: codes.subarray(from, end) };
  return {
    ...column,
    validity: present,
    halves: halves.subarray(2 * from, 2 * end),
    doubles: doubles.subarray(from, end),
    offsets: offsets.subarray(from, end + 1),
  };
}

/** The rows of a list as a column of their own, without codes. */
export function gatherRows(column: JsonColumn, rows: Uint32Array): JsonColumn {
  const { kind, validity, codes, halves, doubles } = column;
  if (kind === jsonNull) return column;
  const entries = codes.length === 0 ? rows : gatherNumbers(codes, rows, new Uint32Array(rows.length));
  const taken = { ...nullJsonColumn, kind, validity: gatherBits(validity, rows) };
  if (kind === jsonFloat64)
    return { ...taken, doubles: gatherNumbers(doubles, entries, new Float64Array(rows.length)) };
  if (kind === jsonString) return { ...taken, ...gatherStrings(column, entries) };
  return { ...taken, halves: gatherPairs(halves, entries) };
}

function gatherBits(bits: Uint8Array, rows: Uint32Array): Uint8Array {
  if (bits.length === 0) return bits;
  const gathered = new Uint8Array((rows.length + 7) >> 3);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    gathered[i >> 3]! |= ((bits[row >> 3]! >> (row & 7)) & 1) << (i & 7);
  }
  return gathered;
}

function gatherNumbers<Target extends Uint32Array | Float64Array>(
  source: Uint8Array | Uint16Array | Float64Array,
  rows: Uint32Array,
  target: Target,
): Target {
  for (let i = 0; i < rows.length; i++) target[i] = source[rows[i]!]!;
  return target;
}

function gatherPairs(halves: Int32Array, entries: Uint32Array): Int32Array {
  const gathered = new Int32Array(2 * entries.length);
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!;
    gathered[2 * i] = halves[2 * entry]!;
    gathered[2 * i + 1] = halves[2 * entry + 1]!;
  }
  return gathered;
}

function gatherStrings(
  { offsets, bytes }: JsonColumn,
  entries: Uint32Array,
): Pick<JsonColumn, 'offsets' | 'bytes'> {
  const ends = new Uint32Array(entries.length + 1);
  for (let i = 0; i < entries.length; i++)
    ends[i + 1] = ends[i]! + offsets[entries[i]! + 1]! - offsets[entries[i]!]!;
  const gathered = new Uint8Array(ends[entries.length]!);
  for (let i = 0; i < entries.length; i++)
    copyBytes(bytes, offsets[entries[i]!]!, offsets[entries[i]! + 1]!, gathered, ends[i]!);
  return { offsets: ends, bytes: gathered };
}
