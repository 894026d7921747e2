import { assert } from '../assert.js';
import { columnBytes, type Column, type PlainColumn, type RecordBatch, type Validity } from '../column.js';
import { DamageError } from '../errors.js';
import { sortedPageBytes, sortedPageRowsMax } from '../limits.js';
import { sliceBatch } from '../batch.js';
import type { Directory, ReadableFile, WritableFile } from './directory.js';

/**
 * Sorted runs that loading puts aside until the whole unit has been read. A run is rows in ascending order of their
 * placement times, read back a page at a time while runs are merged. The file is private to one load session and gone
 * with it, so it has no format of record: each page is a header of 32-bit words and then the columns' arrays as they are.
 */

/** Rows in order of time, with the placement time of each. */
export interface SortedPage {
  readonly batch: RecordBatch;
  /** Ascending; one a row. */
  readonly timesMs: Float64Array;
  /** Memory of the batch. */
  readonly bytes: number;
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

/** A run that stays in memory, as one page. */
export function memoryRun(page: SortedPage, order: number): SortedRun {
  const rows = page.batch.length;
  assert(rows > 0, 'a sorted run has rows');
  return {
    order,
    rows,
    minMs: page.timesMs[0]!,
    maxMs: page.timesMs[rows - 1]!,
    pages: 1,
    readPage: () => Promise.resolve(page),
  };
}

/** Memory that a batch's columns hold on to, in bytes. */
export function batchBytes(batch: RecordBatch): number {
  let bytes = 0;
  for (const column of batch.columns) bytes += columnBytes(column);
  return bytes;
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
        const bytes = encodePage(sliceBatch(page.batch, from, to), page.timesMs.subarray(from, to));
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

  private async readPage(place: { offset: number; bytes: number }): Promise<SortedPage> {
    this.reader ??= await this.directory.openRead(this.path);
    const bytes = await this.reader.read(place.offset, place.bytes);
    if (bytes.length !== place.bytes) {
      throw new DamageError(`the temporary file of a load ends at byte ${place.offset + bytes.length}`, {
        path: this.path,
        offset: place.offset,
      });
    }
    return decodePage(bytes);
  }

  async close(): Promise<void> {
    await this.reader?.close();
    this.reader = undefined;
    await this.file.close();
  }
}

const kindCodes = { int64: 0, float64: 1, bytes: 2 } as const;

function aligned(bytes: number): number {
  return (bytes + 7) & ~7;
}

function plain(column: Column): PlainColumn {
  assert(column.kind !== 'dictionary', 'loading builds plain columns');
  return column;
}

/** Words: rows, columns, then for each column its kind, the bytes of its validity (0: none) and of its values. */
function encodePage(batch: RecordBatch, timesMs: Float64Array): Uint8Array {
  const columns = batch.columns.map(plain);
  const headerBytes = aligned((2 + columns.length * 3) * 4);
  const header = new Uint32Array(headerBytes / 4);
  header[0] = batch.length;
  header[1] = columns.length;
  let bytes = headerBytes + batch.length * 8;
  const validityBytes = (batch.length + 7) >> 3;
  columns.forEach((column, i) => {
    const valueBytes = column.kind === 'bytes' ? byteRange(column).length : batch.length * 8;
    header.set([kindCodes[column.kind], column.validity === null ? 0 : validityBytes, valueBytes], 2 + i * 3);
    bytes += (column.validity === null ? 0 : aligned(validityBytes)) + aligned(valueBytes);
    if (column.kind === 'bytes') bytes += aligned((batch.length + 1) * 4);
  });
  const page = new Uint8Array(bytes);
  page.set(new Uint8Array(header.buffer), 0);
  let at = headerBytes;
  const put = (array: Uint8Array): void => {
    page.set(array, at);
    at += aligned(array.length);
  };
  put(asBytes(timesMs));
  for (const column of columns) {
    if (column.validity !== null) put(column.validity.subarray(0, validityBytes));
    if (column.kind === 'bytes') {
      put(asBytes(rebased(column.offsets, batch.length)));
      put(byteRange(column));
    } else {
      put(asBytes(column.values.subarray(0, batch.length)));
    }
  }
  return page;
}

function byteRange(column: PlainColumn & { kind: 'bytes' }): Uint8Array {
  return column.bytes.subarray(column.offsets[0], column.offsets[column.length]);
}

function rebased(offsets: Uint32Array, rows: number): Uint32Array {
  const base = offsets[0]!;
  const result = new Uint32Array(rows + 1);
  for (let i = 0; i <= rows; i++) result[i] = offsets[i]! - base;
  return result;
}

function asBytes(array: Float64Array | BigInt64Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function decodePage(page: Uint8Array): SortedPage {
  const words = new Uint32Array(page.buffer, page.byteOffset, page.length >> 2);
  const rows = words[0]!;
  const count = words[1]!;
  let at = aligned((2 + count * 3) * 4);
  const take = (bytes: number): number => {
    const start = page.byteOffset + at;
    at += aligned(bytes);
    return start;
  };
  const timesMs = new Float64Array(page.buffer, take(rows * 8), rows);
  const columns: PlainColumn[] = [];
  for (let i = 0; i < count; i++) {
    const kind = words[2 + i * 3]!;
    const validityBytes = words[3 + i * 3]!;
    const valueBytes = words[4 + i * 3]!;
    const validity: Validity =
      validityBytes === 0 ? null : new Uint8Array(page.buffer, take(validityBytes), validityBytes);
    if (kind === kindCodes.bytes) {
      const offsets = new Uint32Array(page.buffer, take((rows + 1) * 4), rows + 1);
      const bytes = new Uint8Array(page.buffer, take(valueBytes), valueBytes);
      columns.push({ kind: 'bytes', length: rows, offsets, bytes, validity });
    } else if (kind === kindCodes.float64) {
      const values = new Float64Array(page.buffer, take(valueBytes), rows);
      columns.push({ kind: 'float64', length: rows, values, validity });
    } else {
      const values = new BigInt64Array(page.buffer, take(valueBytes), rows);
      columns.push({ kind: 'int64', length: rows, values, validity });
    }
  }
  return { batch: { length: rows, columns }, timesMs, bytes: page.length };
}
