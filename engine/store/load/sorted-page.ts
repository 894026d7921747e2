import { gatherBatch, sliceBatch, takeRows, wholeBatches } from '../../columns/take.js';
import type { Schema } from '../../terms/schema.js';
import { batchBytes } from '../../columns/column.js';
import { type SortedPage } from '../disk/spill.js';

/** Sorts rows by time; equal times stay in their order. Logs are mostly in order already, which costs one look. */
export function sortPage(page: SortedPage): SortedPage {
  const { timesMs, batch } = page;
  if (ascends(timesMs)) return page;
  const order = new Uint32Array(batch.length);
  for (let i = 0; i < order.length; i++) order[i] = i;
  order.sort((a, b) => timesMs[a]! - timesMs[b]! || a - b);
  const sorted = new Float64Array(batch.length);
  for (let i = 0; i < order.length; i++) sorted[i] = timesMs[order[i]!]!;
  const taken = takeRows(batch, order);
  page.memory?.free();
  return { batch: taken, timesMs: sorted, bytes: page.bytes };
}

/** One page of the rows of several, one after another. */
export function joinPages(schema: Schema, pages: readonly SortedPage[]): SortedPage {
  if (pages.length === 1) return pages[0]!;
  const batch = gatherBatch(wholeBatches(pages.map((page) => page.batch)), schema);
  const timesMs = new Float64Array(batch.length);
  let at = 0;
  for (const page of pages) {
    timesMs.set(page.timesMs, at);
    at += page.timesMs.length;
  }
  return { batch, timesMs, bytes: batchBytes(batch) };
}

/** Rows [from, to) of a page, sharing its memory where the columns can. */
export function slicePage({ batch, timesMs, bytes }: SortedPage, from: number, to: number): SortedPage {
  const share = (to - from) / Math.max(1, batch.length);
  return {
    batch: sliceBatch(batch, from, to),
    timesMs: timesMs.subarray(from, to),
    bytes: bytes * share,
  };
}

/** A copy of a page on the heap, which may be kept for long and handed on. */
export function onHeap(schema: Schema, page: SortedPage): SortedPage {
  if (page.memory === undefined) return page;
  const copy = copyOfRows(schema, page, 0, page.batch.length);
  page.memory.free();
  return copy;
}

/** Rows [from, to) of a page in memory of their own: few rows must not hold on to the memory of many. */
export function copyOfRows(
  schema: Schema,
  { batch, timesMs }: Omit<SortedPage, 'bytes'>,
  from: number,
  to: number,
): SortedPage {
  const copy = gatherBatch(wholeBatches([sliceBatch(batch, from, to)]), schema);
  return { batch: copy, timesMs: timesMs.slice(from, to), bytes: batchBytes(copy) };
}

/** Whether no row of the pages comes before the one in front of it. */
export function ascendAll(pages: readonly SortedPage[]): boolean {
  return pages.every((page, i) => {
    const before = pages[i - 1]?.timesMs;
    return ascends(page.timesMs) && (before === undefined || before.at(-1)! <= page.timesMs[0]!);
  });
}

/** Whether no time is before the one in front of it. */
export function ascends(times: Float64Array): boolean {
  for (let i = 1; i < times.length; i++) if (times[i]! < times[i - 1]!) return false;
  return true;
}

/** Where the rows at or after `timeMs` begin, of those from `low` to `high`. */
export function rowsBefore(timesMs: Float64Array, timeMs: number, low = 0, high = timesMs.length): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (timesMs[middle]! < timeMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
