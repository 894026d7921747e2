import type { Column } from '../../columns/column.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { streamedBytesMin } from '../../terms/limits.js';
import type { ColumnLease } from './column-lease.js';
import { placementField, type Schema } from '../../terms/schema.js';
import type { QueryThreads } from './query-threads.js';
import type { ChunkSize, ColumnUse, OpenRowGroup, RowGroup } from './snapshot.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import { decodingBytesMax, readingBytesMax } from '../../parquet/chunk-decoder.js';
import type { ColumnSpace } from '../../parquet/column-space.js';
import { boundValues } from '../../parquet/statistics.js';
import type { BufferPool, ColumnRequest } from './buffer-pool.js';
import {
  conversionBytesMax,
  conversionOf,
  convertZone,
  nullColumn,
  type Conversion,
} from '../../columns/convert-column.js';
import { copyColumn } from '../../columns/copy-column.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import { openSegment } from '../disk/left-name.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import type { SegmentFilters } from '../sealed/segment-filters.js';
import type { AskableFilters, FilterAsk } from './filter-ask.js';
import { SegmentProbing } from './segment-probing.js';
import { notStored } from '../sealed/filter-question.js';
import {
  decodeConverted,
  readBytesInto,
  readSegmentFooter,
  storedChunk,
  withFile,
  type SegmentFooter,
} from '../sealed/segment-file.js';
import type { ReadCounters } from './read-counters.js';

/** How a field of the current schema is read from a segment. */
interface FieldSource {
  /** Position in the segment's schema, or -1 where the segment has no such field. */
  readonly field: number;
  readonly conversion: Conversion;
}

/**
 * A sealed segment, opened for reading. Its file is opened for each read and not kept open, because an archive can have
 * more segments than a process may have files.
 */
export class SealedSegment {
  readonly #directory: Directory;
  readonly #path: string;
  readonly #entry: SegmentEntry;
  readonly #schema: Schema;
  readonly #pool: BufferPool;
  #footer: Promise<SegmentFooter> | undefined;
  /** The same, once it has been read. */
  #footerRead: SegmentFooter | undefined;
  readonly #probing: SegmentProbing;

  private constructor(
    directory: Directory,
    path: string,
    entry: SegmentEntry,
    schema: Schema,
    pool: BufferPool,
  ) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
    this.#schema = schema;
    this.#pool = pool;
    const filterBytes = { values: entry.valueFilterBytes, grams: entry.gramFilterBytes };
    this.#probing = new SegmentProbing(directory, path, { ...entry, filterBytes }, pool, this.#poolPrefix());
  }

  /**
   * `schema` is the one that the segment was written with. Nothing is read yet, so damage shows when it is needed.
   *
   * @param footer what the file's own would say, where that can't be read
   */
  static open(
    directory: Directory,
    path: string,
    entry: SegmentEntry,
    schema: Schema,
    pool: BufferPool,
    footer?: SegmentFooter,
  ): Promise<SealedSegment> {
    const segment = new SealedSegment(directory, path, entry, schema, pool);
    if (footer !== undefined) segment.#footer = Promise.resolve(footer);
    segment.#footerRead = footer;
    return Promise.resolve(segment);
  }

  get path(): string {
    return this.#path;
  }

  /** Its filters, which are asked or kept in memory. */
  get probing(): SegmentProbing {
    return this.#probing;
  }

  /** The row groups in the order of the file, with the fields of `target`. */
  rowGroups(target: Schema): RowGroup[] {
    const sources = target.fields.map((field): FieldSource => {
      const position = this.#schema.fields.findIndex((own) => own.name === field.name);
      if (position < 0) return { field: -1, conversion: 'toNull' };
      return { field: position, conversion: conversionOf(this.#schema.fields[position]!.type, field.type) };
    });
    const placement = placementField(target);
    // The entry's bounds are those of the field that placed the segment's records, whatever places new ones.
    const hasTimes =
      placement >= 0 &&
      sources[placement]!.field === placementField(this.#schema) &&
      sources[placement]!.conversion === 'none';
    const storedFields = sources.map(storedField);
    const filters: AskableFilters = {
      rowGroups: this.#entry.rowGroupRows.length,
      ask: (ask) => this.#askFilters(ask, storedFields),
    };
    return this.#entry.rowGroupRows.map((rows, index) => {
      const source: RowGroupSource = { segment: this, index, target, sources, keys: null, zones: [] };
      return {
        rows,
        file: this.#entry.file,
        index,
        hot: false,
        timeMinMs: hasTimes ? this.#entry.timeMinMs : null,
        timeMaxMs: hasTimes ? this.#entry.timeMaxMs : null,
        isOpen: () => this.#footerRead !== undefined,
        filters,
        open: (threads = null, counters) =>
          this.#footerRead === undefined
            ? this.footer(counters).then((footer) => new SealedRowGroup(source, footer, threads))
            : new SealedRowGroup(source, this.#footerRead, threads),
        columnsNow: () => this.#pool.decodedNow(poolKeys(source)),
      };
    });
  }

  #askFilters(ask: FilterAsk, storedFields: readonly number[]): Promise<void> | null {
    if (this.#entry.summaryBytes > 0 || this.#footerRead !== undefined)
      return this.#probing.ask(ask, storedFields, this.#footerRead);
    // Segments that are older than summaries say in their footers where their filters are.
    const asking = this.footer(ask.counters)
      .then((footer) => this.#probing.ask(ask, storedFields, footer))
      .catch((error: unknown) => ask.rulings.fail(ask.rowGroups, error));
    ask.threads?.track(asking);
    return asking.then(() => undefined);
  }

  /** The filters that a footer of this segment names. */
  filtersOf(footer: SegmentFooter): SegmentFilters {
    return this.#probing.filtersOf(footer);
  }

  /** The names of a row group's columns in the pool. */
  poolKeys(rowGroup: number, target: Schema, sources: readonly FieldSource[]): string[] {
    const prefix = `${this.#poolPrefix()}${rowGroup}/`;
    return sources.map(({ field, conversion }, i) => {
      const { type } = target.fields[i]!;
      // They tell apart what the chunk of a field is converted to.
      return prefix + (conversion === 'toNull' ? `null-${type}` : `${field}-${type}`);
    });
  }

  /** The footer, read and checked once, which counts for the caller that has it read. Throws `DamageError`; a failure is not kept. */
  footer(counters?: ReadCounters): Promise<SegmentFooter> {
    if (this.#footer !== undefined) return this.#footer;
    if (counters !== undefined) counters.bytesRead += this.#entry.footerBytes;
    this.#footer = this.withFile((file) => readSegmentFooter(file, this.#entry, this.#schema)).then(
      (footer) => (this.#footerRead = footer),
      (error: unknown) => {
        this.#footer = undefined;
        throw error;
      },
    );
    return this.#footer;
  }

  /** Columns through the pool, where all of them are in memory already; else null. */
  pinDecoded(
    keys: readonly string[],
    counters: ReadCounters,
    lease: ColumnLease,
    use: ColumnUse,
  ): Column[] | null {
    const columns = this.#pool.pinDecoded(keys, use, lease);
    if (columns !== null) counters.columnsCached += columns.length;
    return columns;
  }

  /** Columns through the pool. */
  async pin(
    requests: readonly ColumnRequest[],
    counters: ReadCounters,
    lease: ColumnLease,
    use: ColumnUse,
  ): Promise<Column[]> {
    const pinned = await this.#pool.pin(requests, use, lease);
    for (const { cached } of pinned) {
      if (cached) counters.columnsCached++;
      else counters.columnsDecoded++;
    }
    return pinned.map(({ column }) => column);
  }

  /** Whether a column is to be streamed, and not kept. */
  isToStream(key: string, sizeBytes: number): boolean {
    return this.#pool.isToStream(key, sizeBytes);
  }

  openFile(): Promise<ReadableFile> {
    return openSegment(this.#directory, this.#path);
  }

  /** Whether the column of a key is in the pool. */
  isPooled(key: string): boolean {
    return this.#pool.hasDecoded(key);
  }

  /** Absolute, where other threads can read the file. */
  get absolutePath(): string | undefined {
    return this.#probing.absolutePath;
  }

  withFile<T>(use: (file: ReadableFile) => Promise<T>): Promise<T> {
    return withFile(this.#directory, this.#path, use);
  }

  /** Gives back what the segment holds in memory. The file stays. */
  close(): Promise<void> {
    this.#footer = undefined;
    this.#footerRead = undefined;
    this.#probing.forget();
    this.#pool.evict(this.#poolPrefix());
    return Promise.resolve();
  }

  #poolPrefix(): string {
    return `${this.#directory.location}/${this.#path}/`;
  }
}

/** What opening a row group takes, kept with it. */
interface RowGroupSource {
  readonly segment: SealedSegment;
  readonly index: number;
  readonly target: Schema;
  readonly sources: readonly FieldSource[];
  /** Of the pool, for each field; made once (`poolKeys`). */
  keys: readonly string[] | null;
  /** Of the fields that were asked for: reading numbers out of the footer's bytes takes longer than comparing them. */
  readonly zones: (ZoneMap | null)[];
}

/** Names that are made anew are dear to look up. */
function poolKeys(source: RowGroupSource): readonly string[] {
  return (source.keys ??= source.segment.poolKeys(source.index, source.target, source.sources));
}

function storedField({ field, conversion }: FieldSource): number {
  if (conversion === 'none') return field;
  return conversion === 'toNull' ? notStored.atAll : notStored.otherwise;
}

class SealedRowGroup implements OpenRowGroup {
  readonly #source: RowGroupSource;
  readonly #segment: SealedSegment;
  readonly #footer: SegmentFooter;
  readonly #index: number;
  readonly #target: Schema;
  readonly #sources: readonly FieldSource[];
  readonly #threads: QueryThreads | null;

  constructor(source: RowGroupSource, footer: SegmentFooter, threads: QueryThreads | null) {
    this.#source = source;
    this.#segment = source.segment;
    this.#footer = footer;
    this.#index = source.index;
    this.#target = source.target;
    this.#sources = source.sources;
    this.#threads = threads;
  }

  chunkSize(field: number): ChunkSize | undefined {
    const source = this.#sources[field]!;
    // Without a value of the field in the segment the column is made of nothing.
    if (source.conversion === 'toNull') return undefined;
    return this.#footer.footer.rowGroups[this.#index]!.chunks[source.field + 1];
  }

  zone(field: number): ZoneMap | null {
    return (this.#source.zones[field] ??= this.#readZone(field));
  }

  #readZone(field: number): ZoneMap | null {
    const source = this.#sources[field]!;
    const { rows, chunks } = this.#footer.footer.rowGroups[this.#index]!;
    if (source.field < 0) return { nullCount: rows, rows, min: null, max: null };
    const { nullCount, bounds } = chunks[source.field + 1]!;
    const type = this.#footer.metadata.schema.fields[source.field]!.type;
    const stored = { nullCount, rows, ...boundValues(bounds, type) };
    return convertZone(stored, source.conversion);
  }

  columns(
    fields: readonly number[],
    counters: ReadCounters,
    lease: ColumnLease,
    use: ColumnUse = 'again',
  ): Column[] | Promise<Column[]> {
    const keys = fields.map((field) => this.#key(field));
    const decoded = this.#segment.pinDecoded(keys, counters, lease, use);
    return decoded ?? this.#read(fields, counters, lease, use);
  }

  async #read(
    fields: readonly number[],
    counters: ReadCounters,
    lease: ColumnLease,
    use: ColumnUse,
  ): Promise<Column[]> {
    // One opened file serves all columns that have to be read.
    const reading = new SharedFile(this.#segment);
    try {
      const requests = fields.map((field) => this.#request(field, counters, reading));
      return await this.#segment.pin(requests, counters, lease, use);
    } finally {
      await reading.close();
    }
  }

  #request(field: number, counters: ReadCounters, reading: SharedFile): ColumnRequest {
    const source = this.#sources[field]!;
    const { type } = this.#target.fields[field]!;
    const { rows } = this.#footer.footer.rowGroups[this.#index]!;
    if (source.conversion === 'toNull') {
      return {
        key: this.#key(field),
        sizeBytes: conversionBytesMax(rows),
        load: (space) => Promise.resolve(copyColumn(nullColumn(type, rows), space.kept)),
      };
    }
    const { conversion } = source;
    const address = { rowGroup: this.#index, column: source.field + 1 };
    const chunk = storedChunk(this.#footer, address, this.#segment.path);
    const load = async (space: ColumnSpace): Promise<Column> => {
      counters.bytesRead += chunk.bytes;
      const file = this.#segment.absolutePath;
      if (this.#threads !== null && file !== undefined)
        return this.#threads.readColumn({ file, chunk, conversion, type }, space);
      const bytes = space.working(chunk.bytes);
      await reading.use((open) => readBytesInto(open, chunk.offset, bytes));
      return decodeConverted(bytes, chunk, { conversion, type }, this.#footer.decompress, space);
    };
    return { key: this.#key(field), sizeBytes: this.#sizeBytesMax(field), load };
  }

  /** The most bytes of memory that reading a field takes. */
  #sizeBytesMax(field: number): number {
    const source = this.#sources[field]!;
    const { rows, chunks } = this.#footer.footer.rowGroups[this.#index]!;
    const chunk = chunks[source.field + 1]!;
    const { content } = this.#footer.footer.columns[source.field + 1]!;
    if (source.conversion === 'none') return decodingBytesMax(chunk, content);
    return conversionBytesMax(rows) + readingBytesMax(chunk);
  }

  searchStreamed(
    field: number,
    needles: readonly KernelNeedle[],
    counters: ReadCounters,
  ): Promise<boolean> | null {
    const { field: stored, conversion } = this.#sources[field]!;
    if (this.#threads === null || conversion !== 'none') return null;
    const { uncompressedBytes, dictionaryPageBytes } =
      this.#footer.footer.rowGroups[this.#index]!.chunks[stored + 1]!;
    const isLong = dictionaryPageBytes === 0 && uncompressedBytes >= streamedBytesMin;
    if (!isLong || this.#footer.footer.codec !== 'lz4') return null;
    const file = this.#segment.absolutePath;
    if (file === undefined) return null;
    if (!this.#segment.isToStream(this.#key(field), uncompressedBytes)) return null;
    const address = { rowGroup: this.#index, column: stored + 1 };
    const chunk = storedChunk(this.#footer, address, this.#segment.path);
    return this.#threads.searchStreamed({ file, chunk, needles }, counters);
  }

  isAtHand(field: number): boolean {
    return this.#segment.isPooled(this.#key(field));
  }

  #key(field: number): string {
    return poolKeys(this.#source)[field]!;
  }
}

/** A segment's file, opened when it is first read and closed when all that read it have done so. */
class SharedFile {
  readonly #segment: SealedSegment;
  #opening: Promise<ReadableFile> | undefined;

  constructor(segment: SealedSegment) {
    this.#segment = segment;
  }

  async use<T>(read: (file: ReadableFile) => Promise<T>): Promise<T> {
    this.#opening ??= this.#segment.openFile();
    return read(await this.#opening);
  }

  async close(): Promise<void> {
    const file = await this.#opening?.catch(() => undefined);
    await file?.close();
  }
}
