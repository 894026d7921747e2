import { arraysOf, columnBytes, type Column } from '../../columns/column.js';
import { takeColumnRows } from '../../columns/take.js';
import type { ForeignRead, PageTable } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/reading/decode-foreign.js';
import { DamageError } from '../../terms/errors.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import type { FileIdentity } from './attached-file.js';
import { changeColumn, type ValueChange } from './column-source.js';
import { hourOrder, type PlacedBy } from './row-order.js';
import { assertSameFile } from './same-file.js';

/** A column of an attached file that is to be read, and how its values are converted. */
export interface SpanJob {
  readonly read: ForeignRead;
  readonly attached: FileIdentity;
  readonly change: ValueChange;
  /** crc32 of the column chunk's bytes when it was indexed; null if unknown. */
  readonly checksum: number | null;
  /** How to put the rows in the order of their positions; null if the spans of the row group are in order. */
  readonly order: SpanOrder | null;
}

/** What is needed to put the rows of a row group's spans in the order of their positions. */
export interface SpanOrder {
  /** The column that placed the rows. It is read in the same way as the requested column. */
  readonly placedBy: PlacedBy;
  /** By span: the placement time (ms) of the row before it; null if the span's first row has a time, or if there is no row before it. */
  readonly previousMs: readonly (number | null)[];
  /** By span: whether its rows are in the order of their positions already. */
  readonly isOrdered: readonly boolean[];
}

/** The wanted span, and others that were decoded with it. */
export interface ReadSpans {
  readonly spans: readonly { readonly span: number; readonly column: Column; readonly bytes: number }[];
  readonly pages: PageTable | null;
  readonly bytesRead: number;
}

/** Reads and decodes a column. Throws `DamageError` for a file that has changed, is gone or is malformed. */
export async function work({
  read,
  attached,
  change,
  checksum,
  order,
}: SpanJob): Promise<Finished<ReadSpans>> {
  await assertSameFile(read.path, read.format, attached);
  const decoded = await decodeForeign(read);
  if (checksum !== null && decoded.checksum !== null && checksum !== decoded.checksum) {
    const { path, column, chunk, rowGroup } = read;
    throw new DamageError(
      `${path}, at byte ${chunk.offset}: column "${column.name}" of row group ${rowGroup} has changed since it was indexed`,
      { path, offset: chunk.offset, column: column.name, rowGroup },
    );
  }
  let { bytesRead } = decoded;
  const spans: ReadSpans['spans'][number][] = [];
  for (const { span, column: stored } of decoded.spans) {
    let column = changeColumn(stored, change);
    if (order !== null && !order.isOrdered[span]!) {
      const rows = await hourOrder(order.placedBy, read, span, order.previousMs[span]!);
      bytesRead += rows.bytesRead;
      column = takeColumnRows(column, rows.order);
    }
    spans.push({ span, column, bytes: columnBytes(column) });
  }
  const arrays = spans.flatMap(({ column }) => arraysOf(column));
  return { result: { spans, pages: decoded.pages, bytesRead }, transfer: buffersOf(arrays) };
}

/** Reads and decodes a span of a column on a thread. */
export const spanTask: Task<SpanJob, ReadSpans> = { module: builtModule(import.meta.url), work };
