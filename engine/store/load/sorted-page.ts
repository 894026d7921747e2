import { gatherBatch, sliceBatch, takeRows, wholeBatches } from '../../columns/take.js';
import type { Schema } from '../../core/schema.js';
import { batchBytes } from '../../columns/column.js';
import type { SortedPage } from '../disk/spill.js';

/** Sorts rows by time. The sort is stable. Rows that are in order already, as logs mostly are, are only scanned once. */
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

/** Concatenates pages to one. */
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

/** Rows [from, to) of a page. They share its memory where the columns allow it. */
export function slicePage({ batch, timesMs, bytes }: SortedPage, from: number, to: number): SortedPage {
  const share = (to - from) / Math.max(1, batch.length);
  return {
    batch: sliceBatch(batch, from, to),
    timesMs: timesMs.subarray(from, to),
    bytes: bytes * share,
  };
}

/** Copies a page in lent memory to the heap and frees the lent memory. A page on the heap is returned unchanged. */
export function onHeap(schema: Schema, page: SortedPage): SortedPage {
  if (page.memory === undefined) return page;
  const copy = copyOfRows(schema, page, 0, page.batch.length);
  page.memory.free();
  return copy;
}

/** Copies rows [from, to) of a page, so that a few rows do not keep the memory of many alive. */
export function copyOfRows(
  schema: Schema,
  { batch, timesMs }: Omit<SortedPage, 'bytes'>,
  from: number,
  to: number,
): SortedPage {
  const copy = gatherBatch(wholeBatches([sliceBatch(batch, from, to)]), schema);
  return { batch: copy, timesMs: timesMs.slice(from, to), bytes: batchBytes(copy) };
}

/** Whether the rows of all pages, taken together, ascend by time. */
export function ascendAll(pages: readonly SortedPage[]): boolean {
  return pages.every((page, i) => {
    const before = pages[i - 1]?.timesMs;
    return ascends(page.timesMs) && (before === undefined || before.at(-1)! <= page.timesMs[0]!);
  });
}

/** Whether the times ascend. Equal times are allowed. */
export function ascends(times: Float64Array): boolean {
  for (let i = 1; i < times.length; i++) if (times[i]! < times[i - 1]!) return false;
  return true;
}

/** Index of the first time in [low, high) that is not before `timeMs`. The times must ascend. */
export function rowsBefore(timesMs: Float64Array, timeMs: number, low = 0, high = timesMs.length): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (timesMs[middle]! < timeMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
