import { rowGroupBytesMax, rowGroupRowsMax, heldBytesMax } from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import type { Directory } from '../disk/directory.js';
import { mergedPages, mergeRuns, reduceRuns, type PageSlice } from './gathered-rows.js';
import { ascendAll, joinPages, sortPage } from './sorted-page.js';
import { memoryRun, SpillFile, type SortedPage, type SortedRun } from '../disk/spill.js';

/**
 * Sorts any number of rows by time in bounded memory. Pages are gathered into sorted runs of a row group's size; once the runs exceed
 * `heldBytesMax`, further ones are written to a file. In the end all runs are merged.
 */
export class ExternalSort {
  private pending: SortedPage[] = [];
  private pendingRows = 0;
  private pendingBytes = 0;
  private runs: SortedRun[] = [];
  private memoryBytes = 0;
  private spillFile: SpillFile | undefined;

  /** @param path path of the file for runs that do not fit in memory; it is created when needed */
  constructor(
    private readonly directory: Directory,
    private readonly path: string,
    private readonly schema: Schema,
  ) {}

  get isEmpty(): boolean {
    return this.runs.length === 0 && this.pendingRows === 0;
  }

  /** Adds rows in any order. Rows with the same time keep the order in which they were added. */
  async add(page: SortedPage): Promise<void> {
    const { batch, bytes } = page;
    if (this.pendingRows + batch.length > rowGroupRowsMax || this.pendingBytes + bytes > rowGroupBytesMax) {
      await this.endRun();
    }
    this.pending.push(page);
    this.pendingRows += batch.length;
    this.pendingBytes += bytes;
  }

  private async endRun(): Promise<void> {
    if (this.pendingRows === 0) return;
    const pages = ascendAll(this.pending) ? this.pending : [sortPage(joinPages(this.schema, this.pending))];
    const order = this.runs.length;
    if (this.memoryBytes + this.pendingBytes <= heldBytesMax) {
      this.memoryBytes += this.pendingBytes;
      this.runs.push(memoryRun(pages, order));
    } else {
      const spill = await this.spill();
      this.runs.push(await spill.writeRun(pages, order));
    }
    this.pending = [];
    this.pendingRows = 0;
    this.pendingBytes = 0;
  }

  /** The file for runs that do not fit in memory. */
  async spill(): Promise<SpillFile> {
    this.spillFile ??= await SpillFile.create(this.directory, this.path);
    return this.spillFile;
  }

  /**
   * All rows in order of time, as slices, several at a time. Nothing can be added afterwards.
   *
   * @param before a run whose rows come before all added ones of the same time
   */
  async sorted(before?: SortedRun): Promise<AsyncGenerator<readonly PageSlice[]>> {
    await this.endRun();
    const all = before === undefined ? this.runs : [before, ...this.runs];
    this.runs = [];
    const runs = await reduceRuns(all, async (slices, order) => {
      const spill = await this.spill();
      return spill.writeRun(mergedPages(this.schema, slices, rowGroupRowsMax), order);
    });
    return mergeRuns(runs);
  }

  /** Closes the spill file. It is removed with the unit's folder. */
  async close(): Promise<void> {
    await this.spillFile?.close();
  }
}
