import type { Column } from '../../columns/column.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { streamedBytesMin } from '../../terms/limits.js';
import { SharedWork } from '../../terms/shared-work.js';
import { placementField, type Schema } from '../../terms/schema.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ChunkSize, HeldColumns, ColumnUse, HoldOptions, OpenRowGroup, RowGroup } from './snapshot.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import { decodingBytesMax, readingBytesMax } from '../../parquet/chunk-decoder.js';
import type { ColumnSpace } from '../../parquet/column-space.js';
import { boundValues } from '../../parquet/statistics.js';
import { countPinned, type BufferPool, type ColumnRequest } from './buffer-pool.js';
import {
  conversionBytesMax,
  conversionOf,
  convertZone,
  nullColumn,
  type Conversion,
} from '../../columns/convert-column.js';
import { copyColumn } from '../../columns/copy-column.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import type { AskableFilters, FilterAsk } from './filter-ask.js';
import { SegmentProbing } from './segment-probing.js';
import { readChunk, searchStored } from './chunk-tasks.js';
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

/** How a field of the query's schema is read from a segment. */
interface FieldSource {
  /** Index in the segment's schema, or -1 where the segment has no such field. */
  readonly field: number;
  readonly conversion: Conversion;
}

/**
 * A sealed segment, opened for reading. It caches the footer; columns and filters come through the buffer pool. The file is opened for
 * each read instead of being kept open, because an archive can have more segments than a process may have open files.
 */
export class SealedSegment {
  readonly #directory: Directory;
  readonly #path: string;
  readonly #entry: SegmentEntry;
  readonly #schema: Schema;
  readonly #pool: BufferPool;
  readonly #reading = new SharedWork(async (counters?: ReadCounters) => {
    if (counters !== undefined) counters.bytesRead += this.#entry.footerBytes;
    return (this.#footer = await this.withFile((file) => readSegmentFooter(file, this.#entry, this.#schema)));
  });
  /** The footer, once it has been read. */
  #footer: SegmentFooter | undefined;
  readonly #probing: SegmentProbing;

  /**
   * `schema` is the one that the segment was written with. Reads nothing from the file, so damage is reported by the first read.
   *
   * @param footer replaces the file's own footer where that cannot be read
   */
  constructor(
    directory: Directory,
    path: string,
    entry: SegmentEntry,
    schema: Schema,
    pool: BufferPool,
    footer?: SegmentFooter,
  ) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
    this.#schema = schema;
    this.#pool = pool;
    this.#probing = new SegmentProbing(directory, path, entry);
    this.#footer = footer;
  }

  get path(): string {
    return this.#path;
  }

  get pool(): BufferPool {
    return this.#pool;
  }

  /** The row groups in file order. They show the fields of `target`, whatever schema the segment was written with. */
  rowGroups(target: Schema): RowGroup[] {
    const sources = target.fields.map((field): FieldSource => {
      const position = this.#schema.fields.findIndex((own) => own.name === field.name);
      if (position < 0) return { field: -1, conversion: 'toNull' };
      return { field: position, conversion: conversionOf(this.#schema.fields[position]!.type, field.type) };
    });
    const placement = placementField(target);
    // The entry's time bounds belong to the placement field of the segment's own schema; `target` may have another one.
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
        filters,
        opened: (threads = null) =>
          this.#footer === undefined ? null : new SealedRowGroup(source, this.#footer, threads),
        open: async (threads = null, counters) =>
          new SealedRowGroup(source, this.#footer ?? (await this.footer(counters)), threads),
      };
    });
  }

  #askFilters(ask: FilterAsk, storedFields: readonly number[]): Promise<void> | null {
    if (this.#entry.summaryBytes > 0 || this.#footer !== undefined)
      return this.#probing.ask(ask, storedFields, this.#footer);
    // Segments written before summaries existed name their filters in the footer.
    const asking = this.footer(ask.counters)
      .then((footer) => this.#probing.ask(ask, storedFields, footer))
      .catch((error: unknown) => ask.rulings.fail(ask.rowGroups, error));
    ask.threads?.track(asking);
    return asking.then(() => undefined);
  }

  /** The buffer pool's keys of a row group's columns, one for each field of `target`. */
  poolKeys(rowGroup: number, target: Schema, sources: readonly FieldSource[]): string[] {
    const prefix = `${this.#poolPrefix()}${rowGroup}/`;
    return sources.map(({ field, conversion }, i) => {
      const { type } = target.fields[i]!;
      // The type is part of the key, because the same chunk can be in the pool converted to different types.
      return prefix + (conversion === 'toNull' ? `null-${type}` : `${field}-${type}`);
    });
  }

  /**
   * The footer, read and checked on the first call and cached. Its bytes are added to the counters of that call alone. Throws
   * `DamageError`; after a failure the next call reads it again.
   */
  async footer(counters?: ReadCounters): Promise<SegmentFooter> {
    return this.#footer ?? this.#reading.run(counters);
  }

  withFile<T>(use: (file: ReadableFile) => Promise<T>): Promise<T> {
    return withFile(this.#directory, this.#path, use);
  }

  /** Absolute path of the file; undefined where other threads cannot read it. */
  get absolutePath(): string | undefined {
    return this.#probing.absolutePath;
  }

  /** Frees what the segment holds in memory. The file is not touched. */
  close(): void {
    this.#footer = undefined;
    this.#probing.forget();
    this.#pool.evict(this.#poolPrefix());
  }

  #poolPrefix(): string {
    return `${this.#directory.location}/${this.#path}/`;
  }
}

/** What a row group is opened from. Shared by all openings of it, so that keys and zone maps are made once. */
interface RowGroupSource {
  readonly segment: SealedSegment;
  readonly index: number;
  readonly target: Schema;
  readonly sources: readonly FieldSource[];
  /** The buffer pool's key for each field; null until `poolKeys` makes them. */
  keys: readonly string[] | null;
  /** Zone maps by field, cached on first use: decoding bounds from the footer's bytes takes longer than comparing them. */
  readonly zones: (ZoneMap | null)[];
}

/** The keys are made once, because looking up a newly built string in a map is slow. */
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
  readonly #threads: JobQueue | null;

  constructor(source: RowGroupSource, footer: SegmentFooter, threads: JobQueue | null) {
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
    // The segment holds no value of this field: the column is all null and nothing is read for it.
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

  columnsInMemory(fields: readonly number[], counters: ReadCounters, use?: ColumnUse): HeldColumns | null {
    const keys = fields.map((field) => this.#key(field));
    return this.#segment.pool.pinDecoded(keys, counters, use);
  }

  async columns(
    fields: readonly number[],
    counters: ReadCounters,
    options?: HoldOptions,
  ): Promise<HeldColumns> {
    const decoded = this.columnsInMemory(fields, counters, options?.use);
    if (decoded !== null) return decoded;
    const requests = fields.map((field) => this.#request(field, counters));
    return countPinned(await this.#segment.pool.pin(requests, options), counters);
  }

  #request(field: number, counters: ReadCounters): ColumnRequest {
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
        return readChunk(this.#threads, { file, chunk, conversion, type }, space);
      const bytes = space.working(chunk.bytes);
      await this.#segment.withFile((open) => readBytesInto(open, chunk.offset, bytes));
      return decodeConverted(bytes, chunk, { conversion, type }, this.#footer.decompress, space);
    };
    return { key: this.#key(field), sizeBytes: this.#sizeBytesMax(field), load };
  }

  /** Upper bound of the bytes of memory that reading a field takes, working memory included. */
  #sizeBytesMax(field: number): number {
    const source = this.#sources[field]!;
    const { rows, chunks } = this.#footer.footer.rowGroups[this.#index]!;
    const chunk = chunks[source.field + 1]!;
    const { content } = this.#footer.footer.columns[source.field + 1]!;
    if (source.conversion === 'none') return decodingBytesMax(chunk, content);
    return conversionBytesMax(rows) + readingBytesMax(chunk);
  }

  async searchStreamed(
    field: number,
    needles: readonly KernelNeedle[],
    counters: ReadCounters,
  ): Promise<boolean | null> {
    const { field: stored, conversion } = this.#sources[field]!;
    if (this.#threads === null || conversion !== 'none') return null;
    const { uncompressedBytes, dictionaryPageBytes } =
      this.#footer.footer.rowGroups[this.#index]!.chunks[stored + 1]!;
    const isLong = dictionaryPageBytes === 0 && uncompressedBytes >= streamedBytesMin;
    if (!isLong || this.#footer.footer.codec !== 'lz4') return null;
    const file = this.#segment.absolutePath;
    if (file === undefined) return null;
    if (!this.#segment.pool.isToStream(this.#key(field), uncompressedBytes)) return null;
    const address = { rowGroup: this.#index, column: stored + 1 };
    const chunk = storedChunk(this.#footer, address, this.#segment.path);
    return searchStored(this.#threads, { file, chunk, needles }, counters);
  }

  isInMemory(field: number): boolean {
    return this.#segment.pool.hasDecoded(this.#key(field));
  }

  #key(field: number): string {
    return poolKeys(this.#source)[field]!;
  }
}
