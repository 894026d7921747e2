import { rowGroupRowsMax, heldBytesMax, sortedPageRowsMax } from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import { mergeRuns } from './merge-runs.js';
import { mergedPages } from './gathered-rows.js';
import { ascendAll } from './sorted-page.js';
import { memoryRun, type SortedPage } from '../disk/spill.js';

/**
 * Buffers the latest rows of a load. In logs, rows come at most a little late. So when the window is full, its older half is almost
 * certainly in final order and can be written while the rest of the file is still being read.
 */
export class SortWindow {
  /** The rows of each page ascend. The pages before `#freshFrom` also ascend from one to the next. */
  #pages: SortedPage[] = [];
  #freshFrom = 0;
  #rows = 0;
  #bytes = 0;
  #releasedMs = -Infinity;

  constructor(private readonly schema: Schema) {}

  /** Time (ms) of the last released row. An earlier row is too late for the window. */
  get releasedMs(): number {
    return this.#releasedMs;
  }

  /** Whether the window has twice the rows of a row group, or `heldBytesMax`. */
  get isFull(): boolean {
    return this.#rows >= 2 * rowGroupRowsMax || this.#bytes >= heldBytesMax;
  }

  /** Adds a page whose rows ascend and are not before `releasedMs`. */
  add(page: SortedPage): void {
    this.#pages.push(page);
    this.#rows += page.batch.length;
    this.#bytes += page.bytes;
  }

  /** Releases the first rows in order of time, until half of the window is left. */
  async release(): Promise<SortedPage[]> {
    return this.#releaseDownTo(rowGroupRowsMax, heldBytesMax / 2);
  }

  /** Releases all rows in order of time. */
  async releaseAll(): Promise<SortedPage[]> {
    return this.#releaseDownTo(0, 0);
  }

  async #releaseDownTo(rowsKept: number, bytesKept: number): Promise<SortedPage[]> {
    await this.#order();
    let count = 0;
    while (count < this.#pages.length && (this.#rows > rowsKept || this.#bytes > bytesKept)) {
      const page = this.#pages[count++]!;
      this.#rows -= page.batch.length;
      this.#bytes -= page.bytes;
      this.#releasedMs = page.timesMs.at(-1)!;
    }
    this.#freshFrom -= count;
    return this.#pages.splice(0, count);
  }

  /** Sorts all pages into one order. Pages that are in order already are kept unchanged. */
  async #order(): Promise<void> {
    if (!ascendAll(this.#pages)) {
      const runs = runsOf(this.#pages, this.#freshFrom).map((pages, order) => memoryRun(pages, order));
      this.#pages = [];
      for await (const page of mergedPages(this.schema, mergeRuns(runs), sortedPageRowsMax)) {
        this.#pages.push(page);
      }
      this.#bytes = this.#pages.reduce((sum, page) => sum + page.bytes, 0);
    }
    this.#freshFrom = this.#pages.length;
  }
}

/** Groups the pages into ascending runs, in the order in which they came. */
function runsOf(pages: readonly SortedPage[], sorted: number): SortedPage[][] {
  const runs: SortedPage[][] = sorted === 0 ? [] : [pages.slice(0, sorted)];
  for (const page of pages.slice(sorted)) {
    const last = runs.at(-1);
    if (last !== undefined && last.at(-1)!.timesMs.at(-1)! <= page.timesMs[0]!) last.push(page);
    else runs.push([page]);
  }
  return runs;
}
