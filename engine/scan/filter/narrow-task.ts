import { columnAt, wordsPerLayout } from '../../columns/column-layout.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { resultOf } from '../../store/reading/steps.js';
import { narrow, narrowByColumn, type AskedPredicate } from './narrowing.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { PreparedPredicate } from './predicate.js';
import { RemainingRows } from './remaining-rows.js';
import type { Selection } from './selection.js';
import { bitmapBytes, listRange } from '../../kernels/bitmap.js';

/** Row groups to be narrowed down to the rows that match. Their columns lie in a memory that the asking thread shares. */
export interface NarrowJob {
  /** In the order in which they are asked. */
  readonly predicates: readonly PreparedPredicate[];
  /**
   * For each row group its rows, first and end of its share, and a column for each predicate, as `columnLayout` gives it; zeros where it is
   * not to be asked. As numbers alone: so many objects would take longer to read than their columns.
   */
  readonly rowGroups: Uint32Array<ArrayBuffer>;
  /** How far the memory reaches that has the columns. */
  readonly memoryBytes: number;
  /** Lent to the kernels for as long as the job takes. */
  readonly scratch: MemoryRange;
}

/** How many words describe a row group with so many predicates. */
export function wordsPerRowGroup(predicates: number): number {
  return 3 + predicates * wordsPerLayout;
}

/** What was found in a row group. No row matches: because a dictionary has no matching entry, or because no value matches. */
export const noEntry = 0;
export const noRow = 1;
/** Some rows match: they are listed, or marked in a bitmap where that takes fewer bytes. */
export const rowsListed = 2;
export const rowsMarked = 3;

/** What has been found in the row groups of a job. */
export interface Narrowed {
  /** For each row group one of the words above, and how many rows match. */
  readonly found: Uint32Array;
  /** For each predicate how many rows it was asked about, and how many of them match. */
  readonly seen: Float64Array;
  /** All lists, one behind the other, and all bitmaps. */
  readonly rows: Uint16Array;
  readonly bits: Uint8Array;
}

/** The two bitmaps of this thread, used again for each row group. */
const rooms: Uint8Array[] = [];

/** The next of two bitmaps in turn, of zeros. */
function nextRoom(sizeBytes: number): Uint8Array {
  const known = rooms.shift();
  const room = known?.length === sizeBytes ? known.fill(0) : new Uint8Array(sizeBytes);
  rooms.push(room);
  if (rooms.length < 2) rooms.unshift(new Uint8Array(sizeBytes));
  return room;
}

/** A predicate, and where the words of its column stand in those of a row group. */
interface JobPredicate extends AskedPredicate {
  readonly columnAt: number;
}

/** The rows of each row group that match: the work of `narrowTask`. */
export function work(job: NarrowJob): Finished<Narrowed> {
  const { rowGroups, memoryBytes, scratch } = job;
  const memory = foreignMemory(scratch);
  const buffer = memory.bufferUpTo(memoryBytes);
  const predicates = job.predicates.map((predicate, i): JobPredicate => ({
    predicate,
    columnAt: wordsPerRowGroup(i),
    rowsSeen: 0,
    rowsPassed: 0,
  }));
  const each = wordsPerRowGroup(predicates.length);
  const count = rowGroups.length / each;
  const found = new Uint32Array(2 * count);
  const lists: Uint16Array[] = [];
  const bitmaps: Uint8Array[] = [];
  workingOn(memory, { address: scratch.address, bytes: scratch.sizeBytes }, () => {
    for (let i = 0; i < count; i++) {
      const words = rowGroups.subarray(i * each, (i + 1) * each);
      const [rows = 0, firstRow = 0, endRow = 0] = words;
      const share = { firstRow, endRow, units: 1 };
      const remaining = new RemainingRows(rows, share, nextRoom);
      const asked = predicates.filter(({ columnAt }) => words[columnAt] !== 0);
      const narrowing = narrow(asked, remaining, ({ predicate, columnAt: at }) =>
        narrowByColumn(predicate, columnAt(buffer, words, at), remaining, noPause),
      );
      const narrowedBy = resultOf(narrowing);
      found[2 * i] = narrowedBy === 'dictionary' ? noEntry : addFound(remaining, share, lists, bitmaps);
      found[2 * i + 1] = remaining.count;
    }
  });
  const seen = Float64Array.from(predicates.flatMap(({ rowsSeen, rowsPassed }) => [rowsSeen, rowsPassed]));
  const result = { found, seen, rows: together(lists, Uint16Array), bits: together(bitmaps, Uint8Array) };
  return { result, transfer: buffersOf(Object.values(result)) };
}

const noPause = (): undefined => undefined;

/** Adds the remaining rows to the lists or to the bitmaps; returns which of them it was. */
function addFound(
  remaining: RemainingRows,
  { firstRow, endRow }: RowGroupShare,
  lists: Uint16Array[],
  bitmaps: Uint8Array[],
): number {
  const selection = remaining.selection();
  if (selection.kind !== 'bits') return noRow;
  const { count } = remaining;
  if (2 * count >= selection.bits.length) {
    bitmaps.push(selection.bits.slice());
    return rowsMarked;
  }
  const rows = new Uint16Array(count);
  listRange(selection.bits, firstRow, endRow, rows, 0);
  lists.push(rows);
  return rowsListed;
}

function together<Kind extends Uint8Array | Uint16Array>(
  arrays: readonly Kind[],
  make: new (length: number) => Kind,
): Kind {
  const all = new make(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

/** The rows of each row group that match; the row groups have `rowsOfRowGroups` rows. */
export function selectionsOf(
  { found, rows, bits }: Narrowed,
  rowsOfRowGroups: readonly number[],
): Selection[] {
  let rowsAt = 0;
  let bitsAt = 0;
  return rowsOfRowGroups.map((rowsThere, i): Selection => {
    const count = found[2 * i + 1]!;
    switch (found[2 * i]) {
      case rowsListed:
        rowsAt += count;
        return { kind: 'rows', rows: rows.subarray(rowsAt - count, rowsAt) };
      case rowsMarked:
        bitsAt += bitmapBytes(rowsThere);
        return { kind: 'bits', bits: bits.subarray(bitsAt - bitmapBytes(rowsThere), bitsAt) };
      default:
        return { kind: 'none' };
    }
  });
}

/** Has row groups narrowed down to the rows that match. */
export const narrowTask: Task<NarrowJob, Narrowed> = { module: builtModule(import.meta.url), work };
