import { columnAt, columnLayout, wordsPerLayout } from '../../columns/column-layout.js';
import { bitmapBytes } from '../../kernels/bitmap.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { buffersOf, builtModule, concatenated, type Finished, type Task } from '../../workers/task.js';
import { countRows, type RowCounts, type RowsToCount } from './row-counts.js';

/** Row groups whose rows are to be counted. Their columns are in the shared memory of the asking thread. */
export interface CountJob {
  /**
   * For each row group: its number of rows; the first and the end of the rows of which some are counted; how many are; 1 if they are
   * counted by bucket and value too, else 0; the number of buckets; and the `columnLayout` of its time and value columns, or zeros for a
   * column that it does not have. These are numbers because deserialising so many objects would take longer than counting.
   */
  readonly rowGroups: Uint32Array<ArrayBuffer>;
  /** The bitmaps of the counted rows, and the starts of the buckets, concatenated in the order of the row groups. */
  readonly bits: Uint8Array<ArrayBuffer>;
  readonly starts: BigInt64Array<ArrayBuffer>;
  /** End of the columns in the memory. */
  readonly memoryBytes: number;
  /** Memory that the kernels may use during the job. */
  readonly scratch: MemoryRange;
}

/** The result of a job. */
export interface Counted {
  /**
   * For each row group six words: the nulls of time and of value; the length of `ranges`; and the lengths of `valueCounts`, `firstRows` and
   * `pairs`, each plus 1, or 0 where the list is null.
   */
  readonly shapes: Uint32Array;
  /** All lists, concatenated. */
  readonly lists: Uint32Array;
}

const timeAt = 6;
const valueAt = timeAt + wordsPerLayout;
const wordsPerRowGroup = valueAt + wordsPerLayout;

/** Packs row groups for a thread. */
export function packCounts(
  rowGroups: readonly (RowsToCount & { readonly rows: number })[],
): Pick<CountJob, 'rowGroups' | 'bits' | 'starts'> {
  const words = new Uint32Array(rowGroups.length * wordsPerRowGroup);
  const bits = new Uint8Array(rowGroups.reduce((sum, { rows }) => sum + bitmapBytes(rows), 0));
  const starts = new BigInt64Array(rowGroups.reduce((sum, each) => sum + each.starts.length, 0));
  let bitsAt = 0;
  let startsAt = 0;
  rowGroups.forEach(({ rows, counted, count, time, value, wantsPairs, starts: own }, i) => {
    const at = i * wordsPerRowGroup;
    words.set([rows, counted.from, counted.to, count, wantsPairs ? 1 : 0, own.length], at);
    if (time !== null) words.set(columnLayout(time), at + timeAt);
    if (value !== null) words.set(columnLayout(value), at + valueAt);
    bits.set(counted.bits, bitsAt);
    bitsAt += bitmapBytes(rows);
    starts.set(own, startsAt);
    startsAt += own.length;
  });
  return { rowGroups: words, bits, starts };
}

/** Unpacks the counts of each row group. */
export function unpackCounts({ shapes, lists }: Counted): RowCounts[] {
  const found: RowCounts[] = [];
  let at = 0;
  const next = (length: number): Uint32Array => {
    at += length;
    return lists.subarray(at - length, at);
  };
  const nextIfAny = (lengthAndOne: number): Uint32Array | null =>
    lengthAndOne === 0 ? null : next(lengthAndOne - 1);
  for (let i = 0; i < shapes.length; i += wordsPerShape) {
    found.push({
      timeNulls: shapes[i]!,
      valueNulls: shapes[i + 1]!,
      ranges: next(shapes[i + 2]!),
      valueCounts: nextIfAny(shapes[i + 3]!),
      firstRows: nextIfAny(shapes[i + 4]!),
      pairs: nextIfAny(shapes[i + 5]!),
    });
  }
  return found;
}

const wordsPerShape = 6;

/** Counts the rows of each row group. Runs on a thread. */
export function work(job: CountJob): Finished<Counted> {
  const { rowGroups, memoryBytes, scratch } = job;
  const memory = foreignMemory(scratch);
  const buffer = memory.bufferUpTo(memoryBytes);
  const shapes = new Uint32Array((rowGroups.length / wordsPerRowGroup) * wordsPerShape);
  const lists: Uint32Array[] = [];
  let bitsAt = 0;
  let startsAt = 0;
  workingOn(memory, { address: scratch.address, bytes: scratch.sizeBytes }, () => {
    for (let at = 0, shapeAt = 0; at < rowGroups.length; at += wordsPerRowGroup, shapeAt += wordsPerShape) {
      const [rows = 0, from = 0, to = 0, count = 0, wantsPairs = 0, starts = 0] = rowGroups.subarray(at);
      const columnOf = (place: number) =>
        rowGroups[at + place] === 0 ? null : columnAt(buffer, rowGroups, at + place);
      const counts = countRows({
        counted: { bits: job.bits.subarray(bitsAt, bitsAt + bitmapBytes(rows)), from, to },
        count,
        time: columnOf(timeAt),
        starts: job.starts.subarray(startsAt, startsAt + starts),
        value: columnOf(valueAt),
        wantsPairs: wantsPairs === 1,
      });
      bitsAt += bitmapBytes(rows);
      startsAt += starts;
      addCounts(counts, shapes.subarray(shapeAt, shapeAt + wordsPerShape), lists);
    }
  });
  const result = { shapes, lists: concatenated(lists, Uint32Array) };
  return { result, transfer: buffersOf(Object.values(result)) };
}

function addCounts(counts: RowCounts, shape: Uint32Array, lists: Uint32Array[]): void {
  const { timeNulls, valueNulls, ranges, valueCounts, firstRows, pairs } = counts;
  shape.set([timeNulls, valueNulls, ranges.length]);
  lists.push(ranges);
  [valueCounts, firstRows, pairs].forEach((list, i) => {
    shape[3 + i] = list === null ? 0 : list.length + 1;
    if (list !== null) lists.push(list);
  });
}

/** Counts the rows of row groups on a thread. */
export const countTask: Task<CountJob, Counted> = { module: builtModule(import.meta.url), work };
