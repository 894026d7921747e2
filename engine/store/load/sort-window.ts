import { rowGroupRowsMax, sortMemoryBytesMax, sortedPageRowsMax } from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import { mergeRuns } from './merge-runs.js';
import { mergedPages } from './gathered-rows.js';
import { ascendAll } from './sorted-page.js';
import { memoryRun, type SortedPage } from '../disk/spill.js';

/**
 * The latest rows of a load. Logs are in order except for rows that come a little late. So the older half of a full window is in its final
 * order, and can be handed on while the rest of the file is still being read.
 */
export class SortWindow {
  /** Each page ascends; those before `#freshFrom` ascend from one to the next. */
  #pages: SortedPage[] = [];
  #freshFrom = 0;
  #rows = 0;
  #bytes = 0;
  #releasedMs = -Infinity;

  constructor(private readonly schema: Schema) {}

  /** The time of the last row that was handed on, in milliseconds: a row before it comes too late for the window. */
  get releasedMs(): number {
    return this.#releasedMs;
  }

  get isFull(): boolean {
    return this.#rows >= 2 * rowGroupRowsMax || this.#bytes >= sortMemoryBytesMax;
  }

  /** Takes a page that ascends, of which no row is before `releasedMs`. */
  add(page: SortedPage): void {
    this.#pages.push(page);
    this.#rows += page.batch.length;
    this.#bytes += page.bytes;
  }

  /** Hands on the first rows in order of time, as pages, until what stays is half of a full window. */
  async release(): Promise<SortedPage[]> {
    return this.#releaseDownTo(rowGroupRowsMax, sortMemoryBytesMax / 2);
  }

  /** Hands on all rows in order of time. */
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

  /** Brings all pages into one order. Those that are in order as they came are left as they are. */
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

/** The pages in runs, each as long as it ascends, in the order in which they came. */
function runsOf(pages: readonly SortedPage[], sorted: number): SortedPage[][] {
  const runs: SortedPage[][] = sorted === 0 ? [] : [pages.slice(0, sorted)];
  for (const page of pages.slice(sorted)) {
    const last = runs.at(-1);
    if (last !== undefined && last.at(-1)!.timesMs.at(-1)! <= page.timesMs[0]!) last.push(page);
    else runs.push([page]);
  }
  return runs;
}
