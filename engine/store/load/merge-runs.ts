import { mergedAtOnceMax } from '../../terms/limits.js';
import type { SortedPage, SortedRun } from '../disk/spill.js';

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
