import { mapInOrder } from '../../workers/in-order.js';
import { assert, LogstrataError } from '../../core/errors.js';
import { importSpanBytesMax, rowGroupBytesMax } from '../../core/limits.js';
import { placementField, type Schema } from '../../core/schema.js';
import type { PlainColumn, RecordBatch } from '../../columns/column.js';
import { convertColumn } from '../../columns/convert-column.js';
import { plainColumn, takeRows } from '../../columns/take.js';
import type { ForeignFile, PageTable, RowSpan } from '../../foreign/foreign-file.js';
import type { FileToAttach } from './attached-list.js';
import { columnSource, constantColumn, type ColumnSource } from './column-source.js';
import type { ForeignWork } from './foreign-work.js';
import { assertAnswerable, placingSource, fileStamp, type FileStamp } from './plan-file.js';
import { columnRead, spansOf } from './span-placements.js';
import { importTask, type ImportedSpan, type ImportedSpans } from './import-tasks.js';

/** A foreign file whose rows are to be imported. */
export type FileToImport = FileToAttach;

/** A batch of rows of a file, in file order. */
export interface ImportedRows {
  readonly batch: RecordBatch;
  /** Fraction of the file's rows that were read, including these. */
  readonly fraction: number;
  /** Bytes of the decoded batch. */
  readonly bytes: number;
  /** Values that their fields' types cannot represent, by field. They became null. */
  readonly unreadable: readonly ImportedUnreadable[];
  /** Number of byte sequences that were not UTF-8 and became U+FFFD. */
  readonly replaced: number;
}

/** The values of one field that its type cannot represent. */
export interface ImportedUnreadable {
  /** Index of the field. */
  readonly field: number;
  readonly values: number;
  /** The first such value, as text. */
  readonly example: string;
}

/** What reading rows depends on. */
export interface RowReading {
  readonly work: ForeignWork;
  readonly schema: Schema;
  /** Number of columns that are read at once. */
  readonly columnsAtOnce: number;
  readonly signal?: AbortSignal | undefined;
}

/** A span of more bytes is divided into several batches, because each batch is sorted in memory. */
const batchBytesMax = rowGroupBytesMax / 4;

/** Limit on the bytes of spans that were decoded along with wanted ones and are kept. The sum counts all columns. Other spans are decoded again. */
const keptBytesMax = 4 * rowGroupBytesMax;

/**
 * Reads all rows of a file and passes them to `take`, in file order, as values of an agent's fields. The values are the same as if the file
 * were attached. Each batch has memory of its own. While `take` runs, the next rows are read.
 *
 * @returns the hash of the file's footer
 * @throws DamageError for a malformed file, `invalid` if its column cannot place rows, `limit`, `unsupported`, `not_found` and `io`; and
 * the errors of `take`
 */
export async function readRows(
  file: FileToImport,
  reading: RowReading,
  take: (rows: ImportedRows) => Promise<void>,
): Promise<string> {
  const { work, schema, signal } = reading;
  const { path, format, object } = file;
  const stamp = object ?? (await fileStamp(path));
  const described = await work.describe({ path, ...stamp }, format);
  const placing = placementField(schema);
  if (placing >= 0) placingSource(file, schema.fields[placing]!, described);
  assertAnswerable(path, described);
  const columns = new FieldColumns(file, stamp, described, reading);
  let rowsRead = 0;
  let ahead = columns.next();
  try {
    for (let read = await ahead; read !== null; read = await ahead) {
      signal?.throwIfAborted();
      ahead = columns.next();
      // A failure is thrown where the promise is awaited. This handler only prevents an unhandled rejection.
      ahead.catch(() => {});
      rowsRead += read.rows;
      await giveRows(read, rowsRead / described.rows, take);
    }
  } finally {
    await ahead.catch(() => {});
  }
  return described.footerHash;
}

/** The values of all fields in one span. */
interface SpanRows extends Pick<ImportedRows, 'unreadable' | 'replaced' | 'bytes'> {
  readonly rows: number;
  readonly columns: readonly PlainColumn[];
}

async function giveRows(
  { rows: length, columns, bytes, unreadable, replaced }: SpanRows,
  fraction: number,
  take: (rows: ImportedRows) => Promise<void>,
): Promise<void> {
  const batch = { length, columns };
  const pieces = Math.min(length, Math.ceil(bytes / batchBytesMax));
  if (pieces <= 1) return take({ batch, fraction, bytes, unreadable, replaced });
  for (let piece = 0; piece < pieces; piece++) {
    const from = Math.floor((length * piece) / pieces);
    const to = Math.floor((length * (piece + 1)) / pieces);
    const rows = Uint32Array.from({ length: to - from }, (_, i) => from + i);
    const own = piece === 0 ? { unreadable, replaced } : { unreadable: [], replaced: 0 };
    await take({ batch: takeRows(batch, rows), fraction, bytes: bytes / pieces, ...own });
  }
}

/** A field of the file, and its spans that were decoded but not yet used. */
interface FieldReading {
  readonly field: number;
  readonly source: ColumnSource & { readonly kind: 'column' };
  readonly kept: Map<number, ImportedSpan>;
  pages: PageTable | null;
}

/** Reads the columns of a file on threads, span by span. */
class FieldColumns {
  readonly #fields: readonly FieldReading[];
  readonly #sources: readonly ColumnSource[];
  #rowGroup = -1;
  #spans: readonly RowSpan[] = [];
  #span = 0;
  #keptBytes = 0;

  constructor(
    private readonly file: FileToImport,
    private readonly stamp: FileStamp,
    private readonly described: ForeignFile,
    private readonly reading: RowReading,
  ) {
    this.#sources = reading.schema.fields.map((field) => columnSource(field, described, file));
    this.#fields = this.#sources.flatMap((source, field) =>
      source.kind === 'column' ? [{ field, source, kept: new Map(), pages: null }] : [],
    );
  }

  /** The values of all fields in the next span; null after the last one. Calls must not overlap. */
  async next(): Promise<SpanRows | null> {
    while (this.#span === this.#spans.length) {
      if (this.#rowGroup + 1 === this.described.rowGroups.length) return null;
      this.#begin(this.#rowGroup + 1);
    }
    const read = await this.#readSpan(this.#span);
    this.#span++;
    return read;
  }

  #begin(rowGroup: number): void {
    this.#rowGroup = rowGroup;
    this.#spans = spansOf(this.described.rowGroups[rowGroup]!.rows);
    this.#span = 0;
    this.#keptBytes = 0;
    for (const field of this.#fields) {
      field.kept.clear();
      field.pages = null;
    }
  }

  async #readSpan(span: number): Promise<SpanRows> {
    const { from, to } = this.#spans[span]!;
    let replaced = 0;
    let bytes = 0;
    const read = await mapInOrder(this.#fields, this.reading.columnsAtOnce, async (field) => {
      const one = await this.#readField(field, span);
      replaced += one.replaced;
      bytes += one.column.bytes;
      if (bytes > importSpanBytesMax) throw this.#tooLarge(to - from);
      return one.column;
    });
    const columns = this.#sources.map((source, field) => this.#otherColumn(source, field, to - from));
    const unreadable: ImportedUnreadable[] = [];
    this.#fields.forEach(({ field }, i) => {
      const { column, unreadable: values, example } = read[i]!;
      assert(column.length === to - from, 'a span has a value for each of its rows');
      columns[field] = column;
      if (values > 0) unreadable.push({ field, values, example });
    });
    return { rows: to - from, columns: columns as PlainColumn[], bytes, unreadable, replaced };
  }

  #tooLarge(rows: number): LogstrataError {
    const { path } = this.file;
    const message = `${path}: ${rows} rows of row group ${this.#rowGroup} take more than ${importSpanBytesMax} bytes of memory: exclude columns (fields), or query the file in place (mode: in-place)`;
    return new LogstrataError('limit', message, { path });
  }

  /** The values of a field that is no column of the file. They are the same in all rows. */
  #otherColumn(source: ColumnSource, field: number, rows: number): PlainColumn | undefined {
    const { type } = this.reading.schema.fields[field]!;
    if (source.kind === 'constant') return plainColumn(constantColumn(source.text, type, rows));
    if (source.kind === 'missing')
      return plainColumn(convertColumn(constantColumn('', 'string', rows), 'toNull', type));
    return undefined;
  }

  async #readField(own: FieldReading, span: number): Promise<{ column: ImportedSpan; replaced: number }> {
    const known = own.kept.get(span);
    if (known !== undefined) {
      own.kept.delete(span);
      this.#keptBytes -= known.bytes;
      return { column: known, replaced: 0 };
    }
    const { spans, pages, replaced } = await this.#readSpans(own, span);
    own.pages = pages;
    let wanted: ImportedSpan | undefined;
    for (const each of spans) {
      if (each.span === span) wanted = each;
      if (each.span <= span || this.#keptBytes + each.bytes > keptBytesMax) continue;
      own.kept.set(each.span, each);
      this.#keptBytes += each.bytes;
    }
    assert(wanted !== undefined, 'a reading gives the wanted span');
    return { column: wanted, replaced };
  }

  #readSpans({ source, pages }: FieldReading, wanted: number): Promise<ImportedSpans> {
    const { path } = this.file;
    const { column, change } = source;
    const read = { ...columnRead(this.file, this.described, source, this.#rowGroup), wanted, pages };
    return this.reading.work.read(importTask, (place) => ({ read: { ...read, ...place }, change }), {
      file: { path, ...this.stamp },
      column,
      reads: [read],
    });
  }
}
