import { mergedAtOnceMax, heldBytesMax } from '../../core/limits.js';
import type { SortedPage, SortedRun } from '../disk/spill.js';
import type { RecordBatch } from '../../columns/column.js';
import type { MemoryRange } from '../../core/shared-memory.js';
import type { Schema } from '../../core/schema.js';
import { gatherBatch, type RowSlices } from '../../columns/take.js';
import type { PartitionStart } from '../manifest/commit.js';
import { addRun, type Run } from '../manifest/manifest.js';

/** Number of slices that a merge yields together, because a step of an async generator costs as much as many rows. */
const slicesMax = 1024;

/** Rows [from, to) of a page. A merge passes on slices instead of copying rows. */
export interface PageSlice {
  readonly page: SortedPage;
  readonly from: number;
  readonly to: number;
}

interface Head {
  readonly run: SortedRun;
  page: SortedPage;
  pageIndex: number;
  row: number;
}

/**
 * Merges sorted runs: yields all rows in ascending order of time, as slices, several at a time. Of equal times, those of the run with the
 * lower `order` come first. A run is opened only when its first row is next, so the runs of a log that is already in order are read one
 * after another.
 */
export async function* mergeRuns(runs: readonly SortedRun[]): AsyncGenerator<readonly PageSlice[]> {
  const waiting = [...runs].sort((a, b) => a.minMs - b.minMs || a.order - b.order);
  const heads: Head[] = [];
  let nextWaiting = 0;
  let slices: PageSlice[] = [];
  for (;;) {
    let first = firstHead(heads, null);
    while (nextWaiting < waiting.length) {
      const run = waiting[nextWaiting]!;
      if (first !== undefined && run.minMs > first.page.timesMs[first.row]!) break;
      nextWaiting++;
      heads.push({ run, page: await run.readPage(0), pageIndex: 0, row: 0 });
      first = firstHead(heads, null);
    }
    if (first === undefined) break;
    const to = endOfSlice(heads, first, waiting[nextWaiting]);
    slices.push({ page: first.page, from: first.row, to });
    first.row = to;
    const ended = to === first.page.batch.length;
    // Yield at the end of a page, so that the merge does not keep pages whose rows were consumed.
    if (ended || slices.length === slicesMax) {
      yield slices;
      slices = [];
    }
    if (ended) await nextPage(heads, first);
  }
  if (slices.length > 0) yield slices;
}

/** End of the rows of `first` that come before all rows of the other heads and of the next unopened run. */
function endOfSlice(heads: readonly Head[], first: Head, waiting: SortedRun | undefined): number {
  let to = first.page.batch.length;
  const second = firstHead(heads, first);
  if (second !== undefined) to = rowsBefore(first, to, second.page.timesMs[second.row]!, second.run.order);
  if (waiting !== undefined) to = rowsBefore(first, to, waiting.minMs, waiting.order);
  return to;
}

async function nextPage(heads: Head[], head: Head): Promise<void> {
  head.pageIndex++;
  if (head.pageIndex === head.run.pages) {
    heads.splice(heads.indexOf(head), 1);
    return;
  }
  head.page = await head.run.readPage(head.pageIndex);
  head.row = 0;
}

/** The head whose row comes first, except `except`. A linear scan is faster than a heap, because few runs are open at once. */
function firstHead(heads: readonly Head[], except: Head | null): Head | undefined {
  let best: Head | undefined;
  let bestMs = 0;
  for (const head of heads) {
    if (head === except) continue;
    const timeMs = head.page.timesMs[head.row]!;
    if (best === undefined || timeMs < bestMs || (timeMs === bestMs && head.run.order < best.run.order)) {
      best = head;
      bestMs = timeMs;
    }
  }
  return best;
}

/** End of the rows of `head`, from its current row up to `end`, that come before a row of another run at `timeMs`. */
function rowsBefore(head: Head, end: number, timeMs: number, order: number): number {
  const times = head.page.timesMs;
  const tiesFirst = head.run.order < order;
  let low = head.row;
  let high = end;
  // Galloping search: interleaved runs mostly advance by a row or two, so try small steps before bisecting.
  let step = 1;
  while (low + step < high && before(times[low + step]!, timeMs, tiesFirst)) {
    low += step;
    step <<= 1;
  }
  high = Math.min(high, low + step);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(times[middle]!, timeMs, tiesFirst)) low = middle + 1;
    else high = middle;
  }
  return Math.max(low, head.row + 1);
}

function before(a: number, b: number, tiesFirst: boolean): boolean {
  return a < b || (a === b && tiesFirst);
}

/** The largest number of runs whose time ranges overlap at one moment, which is the number that a merge has open at once. */
export function overlap(runs: readonly SortedRun[]): number {
  const starts = runs.map((run) => run.minMs).sort((a, b) => a - b);
  const ends = runs.map((run) => run.maxMs).sort((a, b) => a - b);
  let open = 0;
  let most = 0;
  let ended = 0;
  for (const start of starts) {
    while (ends[ended]! < start) {
      ended++;
      open--;
    }
    open++;
    most = Math.max(most, open);
  }
  return most;
}

/**
 * Merges runs until at most `mergedAtOnceMax` overlap at any moment. Each merge takes runs of consecutive `order`, so equal times keep
 * the order of their sources.
 */
export async function reduceRuns(
  runs: readonly SortedRun[],
  write: (slices: AsyncIterable<readonly PageSlice[]>, order: number) => Promise<SortedRun>,
): Promise<readonly SortedRun[]> {
  let current = [...runs].sort((a, b) => a.order - b.order);
  while (overlap(current) > mergedAtOnceMax) {
    const merged: SortedRun[] = [];
    for (let i = 0; i < current.length; i += mergedAtOnceMax) {
      const group = current.slice(i, i + mergedAtOnceMax);
      merged.push(group.length === 1 ? group[0]! : await write(mergeRuns(group), group[0]!.order));
    }
    current = merged;
  }
  return current;
}

/** A list of slices of pages that become one batch. It is kept as plain numbers, because runs that interleave row by row give a great many slices. */
export class GatheredRows {
  private readonly pages: SortedPage[] = [];
  private readonly pageOf: number[] = [];
  private readonly fromOf: number[] = [];
  private readonly toOf: number[] = [];
  private readonly indexOf = new Map<SortedPage, number>();
  private rowCount = 0;
  private byteCount = 0;

  get rows(): number {
    return this.rowCount;
  }

  /** Memory of the rows, estimated from the average row of each page. */
  get bytes(): number {
    return this.byteCount;
  }

  /** Adds rows [from, to) of a page. */
  add(page: SortedPage, from: number, to: number): void {
    let index = this.indexOf.get(page);
    if (index === undefined) {
      index = this.pages.push(page) - 1;
      this.indexOf.set(page, index);
    }
    this.pageOf.push(index);
    this.fromOf.push(from);
    this.toOf.push(to);
    this.rowCount += to - from;
    this.byteCount += (page.bytes * (to - from)) / page.batch.length;
  }

  /** The placement times of the rows. */
  timesMs(): Float64Array {
    const times = new Float64Array(this.rowCount);
    let at = 0;
    for (let i = 0; i < this.pageOf.length; i++) {
      const source = this.pages[this.pageOf[i]!]!.timesMs;
      for (let row = this.fromOf[i]!; row < this.toOf[i]!; row++) times[at++] = source[row]!;
    }
    return times;
  }

  /** The rows as references into the pages, without copying. */
  slices(): RowSlices {
    return {
      rows: this.rowCount,
      pages: this.pages.map(({ batch }) => batch),
      pageOf: Uint32Array.from(this.pageOf),
      fromOf: Uint32Array.from(this.fromOf),
      toOf: Uint32Array.from(this.toOf),
    };
  }

  /** For each page the range of lent memory in which another thread finds it; null for pages on the heap. */
  lentRanges(): (MemoryRange | null)[] {
    return this.pages.map(({ memory }) => memory?.range ?? null);
  }

  /** Releases these rows of the lent memory of their pages. */
  release(): void {
    for (let i = 0; i < this.pageOf.length; i++) {
      this.pages[this.pageOf[i]!]!.memory?.done(this.toOf[i]! - this.fromOf[i]!);
    }
  }

  /** Like `slices`, but the memory of each page may be moved to another thread: a page on the heap that also has other rows is copied. */
  ownSlices(schema: Schema): RowSlices {
    const slices = this.slices();
    const { pages, pageOf, fromOf, toOf } = slices;
    const slicesOf: number[][] = pages.map(() => []);
    for (let i = 0; i < pageOf.length; i++) slicesOf[pageOf[i]!]!.push(i);
    const own = pages.map((page, index) => {
      const mine = slicesOf[index]!;
      const rows = mine.reduce((sum, i) => sum + toOf[i]! - fromOf[i]!, 0);
      if (rows === page.length || this.pages[index]!.memory !== undefined) return page;
      const copied = gatherBatch(slicesOfPage(page, rows, mine, fromOf, toOf), schema);
      let at = 0;
      for (const i of mine) {
        const end = at + toOf[i]! - fromOf[i]!;
        fromOf[i] = at;
        toOf[i] = end;
        at = end;
      }
      return copied;
    });
    return { ...slices, pages: own };
  }

  /** Copies the rows to one page on the heap, and releases the lent memory. */
  page(schema: Schema): SortedPage {
    const page = {
      batch: gatherBatch(this.slices(), schema),
      timesMs: this.timesMs(),
      bytes: this.byteCount,
    };
    this.release();
    return page;
  }
}

function slicesOfPage(
  page: RecordBatch,
  rows: number,
  indices: readonly number[],
  fromOf: Uint32Array,
  toOf: Uint32Array,
): RowSlices {
  return {
    rows,
    pages: [page],
    pageOf: new Uint32Array(indices.length),
    fromOf: Uint32Array.from(indices, (i) => fromOf[i]!),
    toOf: Uint32Array.from(indices, (i) => toOf[i]!),
  };
}

/** Joins merged slices to pages of at most `rowsMax` rows. A slice that is a whole page is passed on without a copy. */
export async function* mergedPages(
  schema: Schema,
  merged: AsyncIterable<readonly PageSlice[]>,
  rowsMax: number,
): AsyncGenerator<SortedPage> {
  let gathered = new GatheredRows();
  for await (const slices of merged) {
    for (const { page, from, to } of slices) {
      if (gathered.rows > 0 && isFull(gathered, to - from, rowsMax)) {
        yield gathered.page(schema);
        gathered = new GatheredRows();
      }
      if (gathered.rows === 0 && to - from === page.batch.length) yield page;
      else gathered.add(page, from, to);
    }
  }
  if (gathered.rows > 0) yield gathered.page(schema);
}

function isFull(gathered: GatheredRows, rowsMore: number, rowsMax: number): boolean {
  return gathered.rows + rowsMore > rowsMax || gathered.bytes >= heldBytesMax;
}

/** Number of consecutive rows of a segment that belong to one partition. */
export type PartitionRows = readonly [partition: number, rows: number];

/** The runs of each segment, in the order of its rows. */
export interface SegmentRuns {
  readonly inTime: Run[][];
  readonly late: Run[][];
}

/**
 * Assigns ordinals to all rows of a load. Late rows are written to segments of their own, but their positions are in order of time among
 * all rows. So a late row splits the run of the rows around it.
 *
 * @param inTime for each segment of rows that came in time, the partitions of its rows; all these rows ascend by time
 * @param late the same for the segments of late rows, which ascend among themselves
 * @param after for each late row, the number of rows in time that precede it
 * @param starts the first ordinal of each partition
 */
export function placeRuns(
  inTime: readonly (readonly PartitionRows[])[],
  late: readonly (readonly PartitionRows[])[],
  after: readonly number[],
  starts: readonly PartitionStart[],
): SegmentRuns {
  const next = new Map(starts);
  const take = (partition: number, rows: number): number => {
    const ordinal = next.get(partition)!;
    next.set(partition, ordinal + rows);
    return ordinal;
  };
  const latePartitions = late.flat().flatMap(([partition, rows]) => Array<number>(rows).fill(partition));
  const lateOrdinals: number[] = [];
  const takeLateUpTo = (row: number): void => {
    while (lateOrdinals.length < after.length && after[lateOrdinals.length]! <= row) {
      lateOrdinals.push(take(latePartitions[lateOrdinals.length]!, 1));
    }
  };
  let row = 0;
  const inTimeRuns = inTime.map((segment) => {
    const runs: Run[] = [];
    let firstRow = 0;
    for (const [partition, rows] of segment) {
      for (const end = row + rows; row < end;) {
        takeLateUpTo(row);
        const count = Math.min(end, after[lateOrdinals.length] ?? end) - row;
        addRun(runs, { partition, firstOrdinal: take(partition, count), firstRow, rows: count });
        firstRow += count;
        row += count;
      }
    }
    return runs;
  });
  takeLateUpTo(row);
  let taken = 0;
  const lateRuns = late.map((segment) => {
    const runs: Run[] = [];
    let firstRow = 0;
    for (const [partition, rows] of segment) {
      for (let i = 0; i < rows; i++) {
        addRun(runs, { partition, firstOrdinal: lateOrdinals[taken++]!, firstRow: firstRow++, rows: 1 });
      }
    }
    return runs;
  });
  return { inTime: inTimeRuns, late: lateRuns };
}
