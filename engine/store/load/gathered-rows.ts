import type { RecordBatch } from '../../columns/column.js';
import { heldBytesMax } from '../../terms/limits.js';
import type { MemoryRange } from '../../memory/shared-memory.js';
import type { Schema } from '../../terms/schema.js';
import type { PageSlice } from './merge-runs.js';
import { gatherBatch, type RowSlices } from '../../columns/take.js';
import type { SortedPage } from '../disk/spill.js';

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
