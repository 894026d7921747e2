import { arraysOf, columnBytes, type Column } from '../../columns/column.js';
import { takeColumnRows } from '../../columns/take.js';
import type { ForeignPlace } from '../../objects/object-blocks.js';
import type { ForeignFile, ForeignFormat, ForeignRead, PageTable } from '../../foreign/foreign-file.js';
import {
  askOwnFilter,
  type OwnFilter,
  searchParquet,
  type SearchedSpans,
} from '../../foreign/search-parquet.js';
import { decodeForeign } from '../../foreign/read-foreign.js';
import { BlockSearch, searchRoomBytes } from '../../kernels/block-search.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { bufferBytes } from '../../core/allocator.js';
import { withKeptScratch } from '../../core/scratch.js';
import type { ValueHash } from '../../parquet/bloom-filter.js';
import { codecNumber, physicalType } from '../../parquet/format.js';
import { openPageDecompressor } from '../../foreign/page-codec.js';
import { DamageError } from '../../core/errors.js';
import { buffersOf, taskIn, type Finished } from '../../workers/task.js';
import type { Asked, FilterQuestion } from '../sealed/filter-question.js';
import type { FileIdentity } from './attached-list.js';
import { changeColumn, chunkOf, type ColumnSource, type ValueChange } from './column-source.js';
import { hourOrder, type PlacedBy } from './row-order.js';
import { assertSameFile } from './plan-file.js';

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
export async function readSpans({
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
  const times = new Map<number, Column>();
  for (const { span, column: stored } of decoded.spans) {
    let column = changeColumn(stored, change);
    if (order !== null && !order.isOrdered[span]!) {
      const rows = await hourOrder(order.placedBy, read, span, order.previousMs[span]!, times);
      bytesRead += rows.bytesRead;
      column = takeColumnRows(column, rows.order);
    }
    spans.push({ span, column, bytes: columnBytes(column) });
  }
  const arrays = spans.flatMap(({ column }) => arraysOf(column));
  return { result: { spans, pages: decoded.pages, bytesRead }, transfer: buffersOf(arrays) };
}

/** Rows of a row group that are to be found in the file, by their places in spans in the order of positions. */
export interface FileRowsJob extends Pick<SpanJob, 'read' | 'attached'> {
  readonly order: SpanOrder;
  readonly wanted: readonly PlacesOfSpan[];
}

/** Rows of a span, by their places in the order of positions. */
export interface PlacesOfSpan {
  readonly span: number;
  readonly places: Uint32Array;
}

/** The numbers of rows in their row group, in the order in which they were asked for. */
export interface FileRows {
  readonly rows: Uint32Array;
  readonly bytesRead: number;
}

/** Finds rows by the column that placed them. Throws `DamageError` for a file that has changed, is gone or is malformed. */
export async function findFileRows({
  read,
  attached,
  order,
  wanted,
}: FileRowsJob): Promise<Finished<FileRows>> {
  await assertSameFile(read.path, read.format, attached);
  const found: number[] = [];
  const times = new Map<number, Column>();
  let bytesRead = 0;
  for (const { span, places } of wanted) {
    const { from } = read.spans[span]!;
    const isOrdered = order.isOrdered[span]!;
    const own = isOrdered
      ? null
      : await hourOrder(order.placedBy, read, span, order.previousMs[span]!, times);
    bytesRead += own?.bytesRead ?? 0;
    for (const place of places) found.push(from + (own?.order[place] ?? place));
  }
  const rows = Uint32Array.from(found);
  return { result: { rows, bytesRead }, transfer: [rows.buffer] };
}

/** A column of strings of an attached file to be searched. Every value that matches contains one of the needles. */
export interface SearchJob {
  readonly read: ForeignRead;
  readonly attached: FileIdentity;
  readonly needles: readonly KernelNeedle[];
}

/** Searches a column without keeping it. Throws `DamageError` for a file that has changed, is gone or is malformed. */
export async function searchSpans({ read, attached, needles }: SearchJob): Promise<Finished<SearchedSpans>> {
  await assertSameFile(read.path, read.format, attached);
  const found = await searchParquet(read, needles);
  if (found !== null) return { result: found, transfer: [] };
  const { spans, bytesRead } = await decodeForeign(read);
  const searched = spans.map(({ span, column }) => ({ span, mayHold: mayHold(column, needles) }));
  return { result: { spans: searched, bytesRead }, transfer: [] };
}

/** Whether the concatenated bytes of all values contain a needle. Also true if there is no memory for the search. */
function mayHold(column: Column, needles: readonly KernelNeedle[]): boolean {
  const values = column.kind === 'dictionary' ? column.values : column;
  if (values.kind !== 'bytes') return true;
  const { offsets, length, bytes } = values;
  const text = bytes.subarray(offsets[0], offsets[length]);
  if (text.length === 0) return false;
  const textBytes = bufferBytes(text.length);
  return withKeptScratch(textBytes + searchRoomBytes(needles), 0, (kept) => {
    if (kept === null) return true;
    const block = kept.subarray(0, text.length);
    block.set(text);
    const search = new BlockSearch(block, null, needles, kept.subarray(textBytes));
    return search.search(text.length) !== 'none';
  });
}

/** Values that are looked up in the Bloom filters that an attached file itself has, for one row group. */
export interface OwnFilterJob extends ForeignPlace {
  readonly format: ForeignFormat;
  readonly attached: FileIdentity;
  /** A row can only match if one of the questions of each list is answered by yes. */
  readonly questions: readonly (readonly OwnQuestion[])[];
}

/** A column's filter, and hashes of values: whether the column may have one of these values. */
export interface OwnQuestion {
  readonly filter: OwnFilter;
  readonly hashes: readonly ValueHash[];
}

/** Whether no row can match, and what was read to find out. */
export interface OwnFilterAnswers {
  readonly isRuledOut: boolean;
  readonly bytesRead: number;
  readonly piecesRead: number;
}

/** Asks the filters, until all of a list have none of their values. Throws `DamageError` for a file that has changed or is gone. */
export async function askOwnFilters({
  path,
  copy,
  format,
  attached,
  questions,
}: OwnFilterJob): Promise<Finished<OwnFilterAnswers>> {
  await assertSameFile(path, format, attached);
  let bytesRead = 0;
  let piecesRead = 0;
  let isRuledOut = false;
  for (let next = 0; next < questions.length && !isRuledOut; next++)
    isRuledOut = questions[next]!.every(({ filter, hashes }) => {
      const answer = askOwnFilter({ path, copy }, filter, hashes);
      bytesRead += answer.bytesRead;
      piecesRead += answer.piecesRead;
      return !answer.mayHave;
    });
  return { result: { isRuledOut, bytesRead, piecesRead }, transfer: [] };
}

/**
 * The questions of a query that the file's own Bloom filters can answer, in a list for each filter of the query: those for whole values, in
 * columns whose stored values equal the field's.
 *
 * @param sourceOf returns how a field is read from the file
 */
export function ownQuestions(
  questions: readonly FilterQuestion[],
  { rowGroups }: ForeignFile,
  rowGroup: number,
  sourceOf: (field: number) => ColumnSource,
): OwnQuestion[][] {
  const own = questions.map(({ field, asked }): OwnQuestion | null => {
    const source = sourceOf(field);
    if (source.kind !== 'column') return null;
    const filter = chunkOf(rowGroups[rowGroup]!, source).bloomFilter;
    if (filter === null) return null;
    const hashes = asked.flatMap((one) => hashIn(source, one) ?? []);
    return hashes.length === asked.length ? { filter, hashes } : null;
  });
  return questions.flatMap(({ concludes }, last) => {
    const together = own.slice(last + 1 - concludes, last + 1);
    const asked = together.filter((each) => each !== null);
    return concludes > 0 && asked.length === concludes ? [asked] : [];
  });
}

/** The hash of a value in the form in which the column stores it; null if the stored form differs, or if the question is not for a whole value. */
function hashIn({ column, change }: ColumnSource & { kind: 'column' }, asked: Asked): ValueHash | null {
  const { parquet, type, values } = column;
  const isChanged = change.unit !== null || change.format !== null || change.conversion !== 'none';
  if (parquet === undefined || isChanged) return null;
  if (type === 'int' && values.kind === 'same' && parquet.scale === 0) {
    if (parquet.type === physicalType.int64) return asked.hash;
    return parquet.type === physicalType.int32 ? asked.shortHash : null;
  }
  if (type !== 'string' || (values.kind !== 'same' && values.kind !== 'bytes')) return null;
  const isText = parquet.type === physicalType.byteArray || parquet.type === physicalType.fixedLengthBytes;
  return isText && !hasReplacement(asked.folded) ? asked.hash : null;
}

/** U+FFFD may stand for bytes that are not UTF-8, so the stored bytes may differ from those of the value. */
const replacement = Buffer.from('\ufffd');

function hasReplacement(text: Uint8Array): boolean {
  return Buffer.from(text.buffer, text.byteOffset, text.length).includes(replacement);
}

/** Loads what most files of other programs are decoded with, which takes longer than most answers. Reads no file. */
export async function prepare(): Promise<Finished<null>> {
  await openPageDecompressor(codecNumber.zstd);
  return { result: null, transfer: [] };
}

/** Prepares a thread for reading files of other programs. */
export const prepareTask = taskIn(import.meta.url, { prepare }, true);

/** Reads and decodes a span of a column on a thread. */
export const spanTask = taskIn(import.meta.url, { readSpans });

/** Finds rows in the file on a thread. */
export const fileRowsTask = taskIn(import.meta.url, { findFileRows });

/** Searches a column of a row group on a thread. */
export const searchTask = taskIn(import.meta.url, { searchSpans });

/** Asks a file's own filters on a thread. */
export const ownFilterTask = taskIn(import.meta.url, { askOwnFilters });
