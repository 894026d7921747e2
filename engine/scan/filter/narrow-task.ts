import { columnAt, wordsPerLayout } from '../../columns/column-layout.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { buffersOf, builtModule, concatenated, type Finished, type Task } from '../../workers/task.js';
import { resultOf } from '../../store/reading/steps.js';
import { narrow, narrowByColumn, type AskedPredicate } from './narrowing.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { PreparedPredicate } from './predicate.js';
import { RemainingRows } from './remaining-rows.js';
import type { Selection } from './selection.js';
import { bitmapBytes, listRange } from '../../kernels/bitmap.js';

/** Row groups to filter. Their columns are in the shared memory of the asking thread. */
export interface NarrowJob {
  /** In the order in which they are evaluated. */
  readonly predicates: readonly PreparedPredicate[];
  /**
   * The words of each row group, see `wordsPerRowGroup`: the number of its rows, the first row and the end of its share, and for each
   * predicate the `columnLayout` of its column, or zeros where the predicate is not evaluated on this row group. These are numbers because
   * deserialising so many objects would take longer than reading the columns.
   */
  readonly rowGroups: Uint32Array<ArrayBuffer>;
  /** End of the columns in the memory. */
  readonly memoryBytes: number;
  /** Memory that the kernels may use during the job. */
  readonly scratch: MemoryRange;
}

/** Number of words that describe a row group, for this number of predicates. */
export function wordsPerRowGroup(predicates: number): number {
  return 3 + predicates * wordsPerLayout;
}

/**
 * The outcomes for a row group. No row matches, because a dictionary has no matching entry (`noEntry`) or because no value matches
 * (`noRow`).
 */
export const noEntry = 0;
export const noRow = 1;
/** Some rows match. They are given as a list or as a bitmap, whichever takes fewer bytes. */
export const rowsListed = 2;
export const rowsMarked = 3;

/** The result of a job. */
export interface Narrowed {
  /** Two words for each row group: one of the outcomes above, and the number of matching rows. */
  readonly found: Uint32Array;
  /** Two numbers for each predicate: the number of rows that it was evaluated on, and how many of them match. */
  readonly seen: Float64Array;
  /** The concatenated lists, and the concatenated bitmaps. */
  readonly rows: Uint16Array;
  readonly bits: Uint8Array;
}

/** The two bitmaps of this thread. They are reused for each row group. */
const rooms: Uint8Array[] = [];

/** Returns the two bitmaps alternately, filled with zeros. */
function nextRoom(sizeBytes: number): Uint8Array {
  const known = rooms.shift();
  const room = known?.length === sizeBytes ? known.fill(0) : new Uint8Array(sizeBytes);
  rooms.push(room);
  if (rooms.length < 2) rooms.unshift(new Uint8Array(sizeBytes));
  return room;
}

/** A predicate, and the offset of its column's words among those of a row group. */
interface JobPredicate extends AskedPredicate {
  readonly columnAt: number;
}

/** Finds the matching rows of each row group. Runs on a thread. */
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
  const result = {
    found,
    seen,
    rows: concatenated(lists, Uint16Array),
    bits: concatenated(bitmaps, Uint8Array),
  };
  return { result, transfer: buffersOf(Object.values(result)) };
}

const noPause = (): undefined => undefined;

/** Adds the remaining rows to the lists or to the bitmaps. Returns the outcome that says which. */
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

/** The matching rows of each row group. `rowsOfRowGroups` are the row counts of the row groups, in the order of the job. */
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

/** Finds the matching rows of row groups on a thread. */
export const narrowTask: Task<NarrowJob, Narrowed> = { module: builtModule(import.meta.url), work };
