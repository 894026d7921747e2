import { mapInOrder } from '../../workers/in-order.js';
import { setImmediate } from 'node:timers/promises';
import type { ForeignFile, ForeignRowGroup } from '../../foreign/foreign-file.js';
import type { Field, Schema } from '../../core/schema.js';
import { buildingFolder, moveIntoPlace } from '../manifest/commit.js';
import type { Directory, WritableFile } from '../disk/directory.js';
import { FilterWriter, sketchedRowGroupsMin, type RowGroupFilters } from '../sealed/filter-writer.js';
import { encodeSummary } from '../sealed/segment-filters.js';
import type { AttachedFile, AttachingCommitter } from './attached-list.js';
import { chunkOf, columnSource, type ColumnSource } from './column-source.js';
import { encodeFacts, isSameReading, type FileIndex, type ZoneFacts } from './file-index.js';
import { indexTask, type ColumnIndex } from './index-task.js';
import type { ForeignWork } from './foreign-work.js';
import { assertSameFile } from './plan-file.js';
import { columnRead, spansOfFile } from './span-placements.js';

/** What building indexes depends on. */
export interface IndexContext {
  readonly directory: Directory;
  readonly agent: string;
  readonly committer: AttachingCommitter;
  readonly work: ForeignWork;
  /** Number of columns that are read at once. */
  readonly columnsAtOnce: number;
}

/** Progress of indexing one file. */
export interface IndexProgress {
  /** Bytes of the file's columns that were read so far, and the total to be read. */
  readonly bytesRead: number;
  readonly bytes: number;
}

/** The result of indexing one file. */
export interface IndexedFile {
  readonly index: FileIndex;
  readonly decodedBytes: number;
}

interface IndexedField {
  readonly field: Field;
  readonly source: ColumnSource & { readonly kind: 'column' };
}

/** Whether a file has an index that covers all fields as they are read now. */
export function isIndexed({ index }: AttachedFile, { fields }: Schema): boolean {
  if (index === undefined) return false;
  // An index lists the fields for which the file has no column in `without`; they are covered too.
  const known = (field: Field) =>
    index.fields.some((own) => own.name === field.name && isSameReading(own, field));
  return fields.every((field) => known(field) || index.without.includes(field.name));
}

/** Indexes of several files that are committed together, because one manifest per file would take longer than indexing thousands of small files. */
export class IndexBatch {
  readonly #indexes: { readonly id: string; readonly index: FileIndex }[] = [];
  #number = 0;

  private constructor(
    private readonly context: IndexContext,
    private readonly id: string,
  ) {}

  /** Begins a unit of work for the batch. */
  static async begin(context: IndexContext): Promise<IndexBatch> {
    return new IndexBatch(context, await context.committer.begin());
  }

  /** Number of files that were begun, including those that could not be indexed. */
  get files(): number {
    return this.#number;
  }

  /**
   * Reads all columns of an attached file, row group by row group, and writes its index to the agent's folder. Throws `DamageError` for a
   * file that has changed, is gone or is malformed; the rest of the batch is not affected.
   */
  async add(file: AttachedFile, onProgress: (progress: IndexProgress) => void): Promise<IndexedFile> {
    const { directory, agent } = this.context;
    const number = String(this.#number++).padStart(5, '0');
    const path = `${buildingFolder(agent, this.id)}/${number}.index`;
    const writable = await directory.create(path);
    let built;
    try {
      built = await writeIndex(this.context, file, writable, onProgress);
      await writable.sync();
    } finally {
      await writable.close();
    }
    const name = `attached/${this.id}-${number}.index`;
    await moveIntoPlace(directory, agent, path, name);
    const index = { ...built.index, file: name };
    this.#indexes.push({ id: file.id, index });
    return { index, decodedBytes: built.decodedBytes };
  }

  /** Publishes the indexes in one manifest. */
  async commit(): Promise<void> {
    if (this.#indexes.length === 0) return;
    const indexes = this.#indexes;
    await this.context.committer.attach({ adds: [], moves: [], removes: [], indexes });
  }

  /** Removes what was not committed. */
  async end(): Promise<void> {
    await this.context.committer.end(this.id);
  }
}

async function writeIndex(
  context: IndexContext,
  attached: AttachedFile,
  writable: WritableFile,
  onProgress: (progress: IndexProgress) => void,
): Promise<{ index: Omit<FileIndex, 'file'>; decodedBytes: number }> {
  const { path, format } = attached;
  await assertSameFile(path, format, attached);
  const described = await context.work.describe(attached, format);
  const wanted = context.committer.schema.fields;
  const fields: IndexedField[] = wanted.flatMap((field) => {
    const source = columnSource(field, described, attached);
    return source.kind === 'column' ? [{ field, source }] : [];
  });
  let position = 0;
  const append = async (content: Uint8Array): Promise<number> => {
    const offset = position;
    await writable.write(offset, content);
    position += content.length;
    return offset;
  };
  const filters = new FilterWriter(fields.length, append);
  const columns = new ColumnReader(context, attached, described, fields, onProgress);
  const zones: ZoneFacts[][] = fields.map(() => []);
  const checksums: (number | null)[][] = fields.map(() => []);
  let decodedBytes = 0;
  for (const rowGroup of described.rowGroups.keys()) {
    const indexed = await columns.read(rowGroup);
    indexed.forEach((column, i) => {
      decodedBytes += column.decodedBytes;
      checksums[i]!.push(column.checksum);
      zones[i]!.push(...column.spans.map(({ nullCount, bounds }) => ({ nullCount, bounds })));
    });
    for (const own of filtersOfSpans(indexed)) await filters.write(own);
    await setImmediate();
  }
  await filters.end();
  const summary = encodeSummary(filters.places, filters.rowGroups);
  const summaryOffset = await append(summary);
  await append(
    encodeFacts({ fields: fields.map((_, i) => ({ zones: zones[i]!, checksums: checksums[i]! })) }),
  );
  const names = new Set(fields.map(({ field }) => field.name));
  const index = {
    bytes: position,
    summaryOffset,
    summaryBytes: summary.length,
    fields: fields.map(({ field }) => field),
    without: wanted.flatMap(({ name }) => (names.has(name) ? [] : [name])),
  };
  return { index, decodedBytes };
}

function filtersOfSpans(columns: readonly ColumnIndex[]): RowGroupFilters[] {
  const spans = columns[0]?.spans ?? [];
  return spans.map((_, span) => {
    const own = columns.map((column) => column.spans[span]!.filters);
    return {
      gramFilters: own.flatMap(({ grams }, field) => (grams === null ? [] : [{ field, filter: grams }])),
      valueFilters: own.map(({ values }) => values),
    };
  });
}

/** Indexes the columns of a file on threads. */
class ColumnReader {
  /** Bytes of all columns that are to be read. */
  readonly #bytes: number;
  readonly #hasSketches: boolean;
  #bytesRead = 0;

  constructor(
    private readonly context: IndexContext,
    private readonly attached: AttachedFile,
    private readonly described: ForeignFile,
    private readonly fields: readonly IndexedField[],
    private readonly onProgress: (progress: IndexProgress) => void,
  ) {
    const rowGroupRows = described.rowGroups.map(({ rows }) => rows);
    this.#hasSketches = spansOfFile(rowGroupRows).length >= sketchedRowGroupsMin;
    const bytesOf = (group: ForeignRowGroup) =>
      fields.reduce((sum, { source }) => sum + chunkOf(group, source).bytes, 0);
    this.#bytes = described.rowGroups.reduce((sum, group) => sum + bytesOf(group), 0);
  }

  /** Indexes all columns of a row group, several at a time. The largest come first, so that the threads finish at about the same time. */
  async read(rowGroup: number): Promise<ColumnIndex[]> {
    const group = this.described.rowGroups[rowGroup]!;
    const bytes = this.fields.map(({ source }) => chunkOf(group, source).bytes);
    const order = [...bytes.keys()].sort((a, b) => bytes[b]! - bytes[a]!);
    const results: ColumnIndex[] = [];
    await mapInOrder(order, this.context.columnsAtOnce, async (index) => {
      results[index] = await this.#readColumn(rowGroup, this.fields[index]!);
    });
    return results;
  }

  async #readColumn(rowGroup: number, { field, source }: IndexedField): Promise<ColumnIndex> {
    const { bytes, mtimeMs, footerHash, etag } = this.attached;
    const { column, change } = source;
    const read = columnRead(this.attached, this.described, source, rowGroup);
    const index = await this.context.work.read(
      indexTask,
      (place) => ({
        read: { ...read, ...place },
        attached: { bytes, mtimeMs, footerHash, etag },
        change,
        field,
        hasSketches: this.#hasSketches,
      }),
      { file: this.attached, column, reads: [read] },
    );
    this.#bytesRead += read.chunk.bytes;
    this.onProgress({ bytesRead: this.#bytesRead, bytes: this.#bytes });
    return index;
  }
}
