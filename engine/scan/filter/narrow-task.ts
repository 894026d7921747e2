import { columnAt, layoutOfWords, wordsPerLayout } from '../../columns/column-layout.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { evaluateDictionary, evaluatePlain, wantedEntries } from './evaluate.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { PreparedPredicate } from './predicate.js';
import { RemainingRows } from './remaining-rows.js';
import type { Selection } from './selection.js';
import { bitmapBytes, listRange } from '../../kernels/bitmap.js';

/** Row groups to be narrowed down to the rows that match, by columns that lie in a memory of the thread that asks. */
export interface NarrowJob {
  /** The one that is asked first comes first. */
  readonly predicates: readonly PreparedPredicate[];
  /**
   * For each row group its rows, first and end of its share, and a column for each predicate, as `layoutWords` gives it; zeros where it is
   * not to be asked. As numbers alone: so many objects would take longer to read than their columns.
   */
  readonly rowGroups: Uint32Array<ArrayBuffer>;
  /** How far the memory reaches that has the columns. */
  readonly memoryBytes: number;
  /** Lent to the kernels for as long as the job takes. */
  readonly scratch: MemoryRange;
}

/** Words of a row group that has as many predicates. */
export function wordsPerRowGroup(predicates: number): number {
  return 3 + predicates * wordsPerLayout;
}

/** No row of a row group matches, as a dictionary says by itself, or as its rows say. */
export const noEntry = 0;
export const noRow = 1;
/** The rows that match are listed; or marked in a bitmap, where that takes less. */
export const rowsListed = 2;
export const rowsMarked = 3;

/** What has been found in the row groups of a job. */
export interface Narrowed {
  /** For each row group one of the words above, and how many rows match. */
  readonly found: Uint32Array;
  /** For each predicate the rows that it was asked about, and those that it left. */
  readonly seen: Float64Array;
  /** The lists, and the bitmaps, each one behind the other. */
  readonly rows: Uint16Array;
  readonly bits: Uint8Array;
}

/** Bitmaps of this thread: none is given back before the next row group. */
const rooms: Uint8Array[] = [];

/** The next of two bitmaps in turn, of zeros. */
function nextRoom(sizeBytes: number): Uint8Array {
  const known = rooms.shift();
  const room = known?.length === sizeBytes ? known.fill(0) : new Uint8Array(sizeBytes);
  rooms.push(room);
  if (rooms.length < 2) rooms.unshift(new Uint8Array(sizeBytes));
  return room;
}

/** Leaves of a row group's rows those that match, and returns whether a dictionary alone has said that it is none. */
function narrow(
  job: NarrowJob,
  at: number,
  buffer: ArrayBufferLike,
  remaining: RemainingRows,
  seen: Float64Array,
): boolean {
  const { from, to } = remaining.range;
  let byDictionaryOnly = true;
  for (const [i, predicate] of job.predicates.entries()) {
    const columnWords = at + wordsPerRowGroup(i);
    if (job.rowGroups[columnWords] === 0) continue;
    const before = remaining.count;
    const column = columnAt(buffer, layoutOfWords(job.rowGroups, columnWords));
    const wanted = column.kind === 'dictionary' ? wantedEntries(predicate, column) : null;
    if (column.kind !== 'dictionary') {
      const matches = remaining.room();
      evaluatePlain(predicate, column, from, to, matches);
      remaining.keep(matches);
    } else if (wanted !== null) {
      const matches = remaining.room();
      evaluateDictionary(column, wanted, from, to, matches);
      remaining.keep(matches);
    } else {
      remaining.clear();
    }
    if (wanted !== null || column.kind !== 'dictionary') byDictionaryOnly = false;
    seen[2 * i]! += before;
    seen[2 * i + 1]! += remaining.count;
    if (remaining.count === 0) break;
  }
  return remaining.count === 0 && byDictionaryOnly;
}

/** The rows of each row group that match: the work of `narrowTask`. */
export function work(job: NarrowJob): Finished<Narrowed> {
  const { predicates, rowGroups, memoryBytes, scratch } = job;
  const memory = foreignMemory(scratch);
  const buffer = memory.bufferUpTo(memoryBytes);
  const each = wordsPerRowGroup(predicates.length);
  const count = rowGroups.length / each;
  const found = new Uint32Array(2 * count);
  const seen = new Float64Array(2 * predicates.length);
  const lists: Uint16Array[] = [];
  const bitmaps: Uint8Array[] = [];
  workingOn(memory, { address: scratch.address, bytes: scratch.sizeBytes }, () => {
    for (let i = 0; i < count; i++) {
      const [rows = 0, firstRow = 0, endRow = 0] = rowGroups.subarray(i * each);
      const remaining = new RemainingRows(rows, { firstRow, endRow, units: 1 }, nextRoom);
      const byDictionaryOnly = narrow(job, i * each, buffer, remaining, seen);
      found[2 * i + 1] = remaining.count;
      found[2 * i] = byDictionaryOnly
        ? noEntry
        : addFound(remaining, { firstRow, endRow, units: 1 }, lists, bitmaps);
    }
  });
  const result = { found, seen, rows: together(lists, Uint16Array), bits: together(bitmaps, Uint8Array) };
  return { result, transfer: buffersOf(Object.values(result)) };
}

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
