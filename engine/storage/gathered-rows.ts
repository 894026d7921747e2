import { concatBatches, sliceBatch, takeRows } from '../batch.js';
import type { RecordBatch } from '../column.js';
import { sortMemoryBytesMax } from '../limits.js';
import type { Schema } from '../schema.js';
import type { PageSlice } from './merge-runs.js';
import type { SortedPage } from './spill.js';

/** Below this many rows a slice, rows are picked one by one: each slice would make a view of every column. */
const sliceRowsMin = 64;

/** Slices of pages, in order, that become one batch. Kept as numbers: runs that interleave row by row give very many. */
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

  /** Memory of the rows, from the pages' averages. */
  get bytes(): number {
    return this.byteCount;
  }

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

  batch(schema: Schema): RecordBatch {
    if (this.pageOf.length > 1 && this.rowCount / this.pageOf.length < sliceRowsMin) return this.pick(schema);
    const slices = this.pageOf.map((page, i) =>
      sliceBatch(this.pages[page]!.batch, this.fromOf[i]!, this.toOf[i]!),
    );
    return slices.length === 1 ? slices[0]! : concatBatches(schema, slices);
  }

  /** The same rows in memory of their own, which `batch` may share with the pages. */
  copy(schema: Schema): RecordBatch {
    const batch = this.batch(schema);
    return this.pageOf.length === 1 ? concatBatches(schema, [batch]) : batch;
  }

  private pick(schema: Schema): RecordBatch {
    const firstRows: number[] = [];
    let rows = 0;
    for (const page of this.pages) {
      firstRows.push(rows);
      rows += page.batch.length;
    }
    const order = new Uint32Array(this.rowCount);
    let at = 0;
    for (let i = 0; i < this.pageOf.length; i++) {
      const first = firstRows[this.pageOf[i]!]!;
      for (let row = this.fromOf[i]!; row < this.toOf[i]!; row++) order[at++] = first + row;
    }
    const all = concatBatches(
      schema,
      this.pages.map((page) => page.batch),
    );
    return takeRows(all, order);
  }

  page(schema: Schema): SortedPage {
    return { batch: this.batch(schema), timesMs: this.timesMs(), bytes: this.byteCount };
  }
}

/** Puts merged slices together as pages of at most `rowsMax` rows. A page that stays whole is handed on as it is. */
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
  return gathered.rows + rowsMore > rowsMax || gathered.bytes >= sortMemoryBytesMax;
}
