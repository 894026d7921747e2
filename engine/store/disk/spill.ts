import { assert } from '../../terms/assert.js';
import type { RecordBatch } from '../../columns/column.js';
import { DamageError } from '../../terms/errors.js';
import { sortedPageBytes, sortedPageRowsMax } from '../../terms/limits.js';
import { sliceBatch } from '../../columns/take.js';
import { packBatch, packedBytes, unpackBatch } from '../../columns/packed-batch.js';
import type { Directory, ReadableFile, WritableFile } from './directory.js';
import type { PageMemory } from './page-memory.js';

/**
 * Sorted runs that loading puts aside until the whole unit has been read. A run is rows in ascending order of their
 * placement times, read back a page at a time while runs are merged. The file is private to one load session and gone
 * with it, so it has no format of record: each page is its placement times and then a packed batch.
 */

/** Rows in order of time, with the placement time of each. */
export interface SortedPage {
  readonly batch: RecordBatch;
  /** Ascending; one a row. */
  readonly timesMs: Float64Array;
  /** Memory of the batch. */
  readonly bytes: number;
  /** The lent memory that the columns lie in; absent for those of the heap. */
  readonly memory?: PageMemory;
}

/** Rows in ascending order of time, in pages. `order` breaks ties: the rows of a lower order came first. */
export interface SortedRun {
  readonly order: number;
  readonly rows: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly pages: number;
  readPage(index: number): Promise<SortedPage>;
}

/** A run that stays in memory; `pages` must ascend. Each page can be read once, so that it goes with its rows. */
export function memoryRun(pages: readonly SortedPage[], order: number): SortedRun {
  assert(pages.length > 0, 'a sorted run has rows');
  const last = pages.at(-1)!;
  const left: (SortedPage | undefined)[] = [...pages];
  return {
    order,
    rows: pages.reduce((sum, page) => sum + page.batch.length, 0),
    minMs: pages[0]!.timesMs[0]!,
    maxMs: last.timesMs[last.batch.length - 1]!,
    pages: pages.length,
    readPage: (index) => {
      const page = left[index];
      assert(page !== undefined, 'a page in memory is read once');
      left[index] = undefined;
      return Promise.resolve(page);
    },
  };
}

/** Rows of a page so that it has about `sortedPageBytes`: as many runs as are merged at once must fit in memory. */
function pageRows({ batch, bytes }: SortedPage): number {
  const rowBytes = Math.max(1, bytes / Math.max(1, batch.length));
  return Math.max(1, Math.min(sortedPageRowsMax, Math.floor(sortedPageBytes / rowBytes)));
}

/** One file of spilled runs. Not synced: it need not outlive the process. */
export class SpillFile {
  private position = 0;
  private reader: ReadableFile | undefined;
  private scratch = new Uint8Array(0);

  private constructor(
    private readonly directory: Directory,
    private readonly path: string,
    private readonly file: WritableFile,
  ) {}

  static async create(directory: Directory, path: string): Promise<SpillFile> {
    return new SpillFile(directory, path, await directory.create(path));
  }

  get bytes(): number {
    return this.position;
  }

  /** Writes one run; `pages` must ascend. */
  async writeRun(pages: AsyncIterable<SortedPage> | Iterable<SortedPage>, order: number): Promise<SortedRun> {
    const index: { offset: number; bytes: number }[] = [];
    let rows = 0;
    let minMs = Infinity;
    let maxMs = -Infinity;
    for await (const page of pages) {
      const step = pageRows(page);
      for (let from = 0; from < page.batch.length; from += step) {
        const to = Math.min(page.batch.length, from + step);
        const bytes = this.encodePage(sliceBatch(page.batch, from, to), page.timesMs.subarray(from, to));
        await this.file.write(this.position, bytes);
        index.push({ offset: this.position, bytes: bytes.length });
        this.position += bytes.length;
      }
      rows += page.batch.length;
      minMs = Math.min(minMs, page.timesMs[0]!);
      maxMs = Math.max(maxMs, page.timesMs[page.batch.length - 1]!);
    }
    assert(rows > 0, 'a sorted run has rows');
    return { order, rows, minMs, maxMs, pages: index.length, readPage: (i) => this.readPage(index[i]!) };
  }

  /** The bytes of a page, valid until the next one. */
  private encodePage(batch: RecordBatch, timesMs: Float64Array): Uint8Array {
    const timesBytes = timesMs.length * 8;
    const bytes = 8 + timesBytes + packedBytes(batch);
    if (this.scratch.length < bytes) this.scratch = new Uint8Array(bytes);
    const { buffer } = this.scratch;
    new Uint32Array(buffer, 0, 1)[0] = timesMs.length;
    new Float64Array(buffer, 8, timesMs.length).set(timesMs);
    packBatch(batch, this.scratch, 8 + timesBytes);
    return this.scratch.subarray(0, bytes);
  }

  /** Writes placement times alone, and returns where. */
  async writeTimes(timesMs: Float64Array): Promise<number> {
    const offset = this.position;
    const { buffer, byteOffset, byteLength } = timesMs;
    await this.file.write(offset, new Uint8Array(buffer, byteOffset, byteLength));
    this.position += byteLength;
    return offset;
  }

  /** What `writeTimes` wrote at `offset`. */
  async readTimes(offset: number, rows: number): Promise<Float64Array> {
    const { buffer, byteOffset } = await this.readBytes({ offset, bytes: rows * 8 });
    return new Float64Array(buffer, byteOffset, rows);
  }

  private async readPage(place: { offset: number; bytes: number }): Promise<SortedPage> {
    return decodePage(await this.readBytes(place));
  }

  private async readBytes(place: { offset: number; bytes: number }): Promise<Uint8Array> {
    this.reader ??= await this.directory.openRead(this.path);
    const bytes = await this.reader.read(place.offset, place.bytes);
    if (bytes.length !== place.bytes) {
      throw new DamageError(`the temporary file of a load ends at byte ${place.offset + bytes.length}`, {
        path: this.path,
        offset: place.offset,
      });
    }
    return bytes;
  }

  async close(): Promise<void> {
    await this.reader?.close();
    this.reader = undefined;
    await this.file.close();
  }
}

function decodePage(page: Uint8Array): SortedPage {
  const rows = new Uint32Array(page.buffer, page.byteOffset, 1)[0]!;
  const timesMs = new Float64Array(page.buffer, page.byteOffset + 8, rows);
  return { batch: unpackBatch(page, 8 + rows * 8), timesMs, bytes: page.length };
}
