import { assert, DamageError } from '../../core/errors.js';
import type { RecordBatch } from '../../columns/column.js';
import { filePieceBytes, sortedPageRowsMax } from '../../core/limits.js';
import { sliceBatch } from '../../columns/take.js';
import { packBatch, packedBytes, unpackBatch } from '../../columns/packed-batch.js';
import type { Directory, ReadableFile, WritableFile } from './directory.js';
import type { PageMemory } from './open-files.js';

/** Rows in order of time, with their placement times. */
export interface SortedPage {
  readonly batch: RecordBatch;
  /** The placement time (ms) of each row, ascending. */
  readonly timesMs: Float64Array;
  /** Memory of the batch in bytes. */
  readonly bytes: number;
  /** The lent memory that holds the columns; absent for columns on the heap. */
  readonly memory?: PageMemory;
}

/**
 * Rows in ascending order of placement time, read back a page at a time while runs are merged. Of rows with the same time, those of the run
 * with the lower `order` come first.
 */
export interface SortedRun {
  readonly order: number;
  readonly rows: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly pages: number;
  /** Reads a page. A page of a run in memory can be read only once. */
  readPage(index: number): Promise<SortedPage>;
}

/** A run that stays in memory. `pages` must ascend. Each page can be read only once, so that its memory can be released with its rows. */
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

/** Number of rows for which a page has about `filePieceBytes`. Pages are small because a page of each run that is merged must fit in memory. */
function pageRows({ batch, bytes }: SortedPage): number {
  const rowBytes = Math.max(1, bytes / Math.max(1, batch.length));
  return Math.max(1, Math.min(sortedPageRowsMax, Math.floor(filePieceBytes / rowBytes)));
}

/**
 * A temporary file for sorted runs that a load puts aside until it has read the whole unit. The file belongs to one load session and is
 * removed with it. So it is not synced, and its format is not versioned: each page is a count of rows (u32, padded to 8 bytes), the
 * placement times (f64), and a packed batch.
 */
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

  /** Length of the file so far. */
  get bytes(): number {
    return this.position;
  }

  /** Writes one run. `pages` must ascend. */
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

  /** The encoded page. The bytes are valid until the next call. */
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

  /** Writes placement times without rows, and returns their offset. */
  async writeTimes(timesMs: Float64Array): Promise<number> {
    const offset = this.position;
    const { buffer, byteOffset, byteLength } = timesMs;
    await this.file.write(offset, new Uint8Array(buffer, byteOffset, byteLength));
    this.position += byteLength;
    return offset;
  }

  /** Reads the times that `writeTimes` wrote at `offset`. */
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
