import type { Column } from '../../columns/column.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { streamedBytesMin } from '../../core/limits.js';
import { SharedWork } from '../../core/waiting.js';
import { bitmapBytes, setRange } from '../../kernels/bitmap.js';
import { placementField, type Schema } from '../../core/schema.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ChunkSize, HeldColumns, ColumnUse, HoldOptions, OpenRowGroup, RowGroup } from './snapshot.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import { decodingBytesMax, readingBytesMax } from '../../parquet/chunk-decoder.js';
import type { ColumnSpace } from '../../parquet/column-space.js';
import type { FooterRowGroup } from '../../parquet/footer.js';
import { boundValues } from '../../parquet/statistics.js';
import type { BufferPool, ColumnRequest } from './buffer-pool.js';
import {
  conversionBytesMax,
  conversionOf,
  convertZone,
  nullColumn,
  type Conversion,
  copyColumn,
} from '../../columns/convert-column.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import { storedSchema, type SegmentEntry } from '../manifest/manifest.js';
import type { FileFilters } from './filter-request.js';
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
  type StoredChunk,
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
  readonly #reading = new SharedWork(async (counters?: ReadCounters) => {
    if (counters !== undefined) counters.bytesRead += this.entry.footerBytes;
    return (this.knownFooter = await this.withFile((file) =>
      readSegmentFooter(file, this.entry, this.schema),
    ));
  });
  readonly #probing: SegmentProbing;

  /**
   * `schema` is the one that the segment was written with. Reads nothing from the file, so damage is reported by the first read.
   *
   * @param knownFooter the footer once it has been read; one that is given replaces the file's own where that cannot be read
   */
  constructor(
    private readonly directory: Directory,
    readonly path: string,
    private readonly entry: SegmentEntry,
    private readonly schema: Schema,
    readonly pool: BufferPool,
    private knownFooter?: SegmentFooter,
  ) {
    this.#probing = new SegmentProbing(directory, path, entry, (counters) => this.footer(counters));
  }

  /** The row groups in file order. They show the fields of `target`, whatever schema the segment was written with. */
  rowGroups(target: Schema): RowGroup[] {
    const stored = storedSchema(this.entry, this.schema);
    const shown = storedSchema(this.entry, target);
    const sources = shown.fields.map((field): FieldSource => {
      const position = stored.fields.findIndex((own) => own.name === field.name);
      if (position < 0) return { field: -1, conversion: 'toNull' };
      return { field: position, conversion: conversionOf(stored.fields[position]!.type, field.type) };
    });
    const placement = placementField(target);
    // The entry's time bounds belong to the placement field of the segment's own schema; `target` may have another one.
    const hasTimes =
      placement >= 0 &&
      sources[placement]!.field === placementField(this.schema) &&
      sources[placement]!.conversion === 'none';
    const storedFields = sources.map(storedField);
    const filters: FileFilters = {
      rowGroups: this.entry.rowGroupRows.length,
      ask: (ask) => this.#probing.ask(ask, storedFields, this.knownFooter),
    };
    return this.entry.rowGroupRows.map((rows, index) => {
      const source: RowGroupSource = { segment: this, index, target: shown, sources, keys: null, zones: [] };
      return {
        rows,
        file: this.entry.file,
        index,
        hot: false,
        hides: this.entry.removed !== undefined,
        timeMinMs: hasTimes ? this.entry.timeMinMs : null,
        timeMaxMs: hasTimes ? this.entry.timeMaxMs : null,
        filters,
        opened: (threads = null) =>
          this.knownFooter === undefined ? null : new SealedRowGroup(source, this.knownFooter, threads),
        open: async (threads = null, counters) =>
          new SealedRowGroup(source, this.knownFooter ?? (await this.footer(counters)), threads),
      };
    });
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
    return this.knownFooter ?? this.#reading.run(counters);
  }

  withFile<T>(use: (file: ReadableFile) => Promise<T>): Promise<T> {
    return withFile(this.directory, this.path, use);
  }

  /** Absolute path of the file; undefined where other threads cannot read it. */
  get absolutePath(): string | undefined {
    return this.#probing.absolutePath;
  }

  /** Frees what the segment holds in memory. The file is not touched. */
  close(): void {
    this.knownFooter = undefined;
    this.#probing.forget();
    this.pool.evict(this.#poolPrefix());
  }

  #poolPrefix(): string {
    return `${this.directory.location}/${this.path}/`;
  }
}

/** What a row group is opened from. Shared by all openings of it, so that keys and zone maps are made once. */
interface RowGroupSource {
  readonly segment: SealedSegment;
  readonly index: number;
  readonly target: Schema;
  readonly sources: readonly FieldSource[];
  /** The buffer pool's key for each field; null until they are needed. */
  keys: readonly string[] | null;
  /** Zone maps by field, cached on first use: decoding bounds from the footer's bytes takes longer than comparing them. */
  readonly zones: (ZoneMap | null)[];
}

function storedField({ field, conversion }: FieldSource): number {
  if (conversion === 'none') return field;
  return conversion === 'toNull' ? notStored.atAll : notStored.otherwise;
}

class SealedRowGroup implements OpenRowGroup {
  constructor(
    private readonly source: RowGroupSource,
    private readonly footer: SegmentFooter,
    private readonly threads: JobQueue | null,
  ) {}

  chunkSize(field: number): ChunkSize | undefined {
    const source = this.source.sources[field]!;
    // The segment holds no value of this field: the column is all null and nothing is read for it.
    if (source.conversion === 'toNull') return undefined;
    return this.#rowGroup.chunks[source.field + 1];
  }

  zone(field: number): ZoneMap | null {
    return (this.source.zones[field] ??= this.#readZone(field));
  }

  #readZone(field: number): ZoneMap | null {
    const source = this.source.sources[field]!;
    const { rows, chunks } = this.#rowGroup;
    if (source.field < 0) return { nullCount: rows, rows, min: null, max: null };
    const { nullCount, bounds } = chunks[source.field + 1]!;
    const type = this.footer.metadata.schema.fields[source.field]!.type;
    const stored = { nullCount, rows, ...boundValues(bounds, type) };
    return convertZone(stored, source.conversion);
  }

  columnsInMemory(fields: readonly number[], counters: ReadCounters, use?: ColumnUse): HeldColumns | null {
    const keys = fields.map((field) => this.#key(field));
    return this.source.segment.pool.pinDecoded(keys, counters, use);
  }

  columns(fields: readonly number[], counters: ReadCounters, options?: HoldOptions): Promise<HeldColumns> {
    const keys = fields.map((field) => this.#key(field));
    const requestOf = async (i: number): Promise<ColumnRequest> => this.#request(fields[i]!, counters);
    return this.source.segment.pool.hold(keys, requestOf, counters, options);
  }

  async hidden(counters: ReadCounters, options?: HoldOptions): Promise<Uint8Array> {
    const { columns, release } = await this.columns([this.source.sources.length - 1], counters, options);
    try {
      const [{ validity, length } = columns[0]!] = columns;
      const all = new Uint8Array(bitmapBytes(length));
      if (validity === null) setRange(all, 0, length);
      return validity?.slice() ?? all;
    } finally {
      release();
    }
  }

  #request(field: number, counters: ReadCounters): ColumnRequest {
    const { segment, sources, target } = this.source;
    const { field: stored, conversion } = sources[field]!;
    const { type } = target.fields[field]!;
    const { rows, chunks } = this.#rowGroup;
    const key = this.#key(field);
    if (conversion === 'toNull') {
      const load = async (space: ColumnSpace): Promise<Column> =>
        copyColumn(nullColumn(type, rows), space.kept);
      return { key, sizeBytes: conversionBytesMax(rows), load };
    }
    const chunk = this.#chunk(stored);
    const place = chunks[stored + 1]!;
    const sizeBytes =
      conversion === 'none'
        ? decodingBytesMax(place, chunk.content)
        : conversionBytesMax(rows) + readingBytesMax(place);
    const load = async (space: ColumnSpace): Promise<Column> => {
      counters.bytesRead += chunk.bytes;
      const file = segment.absolutePath;
      if (this.threads !== null && file !== undefined)
        return readChunk(this.threads, { file, chunk, conversion, type }, space);
      const bytes = space.working(chunk.bytes);
      await segment.withFile((open) => readBytesInto(open, chunk.offset, bytes));
      return decodeConverted(bytes, chunk, { conversion, type }, this.footer.decompress, space);
    };
    return { key, sizeBytes, load };
  }

  get #rowGroup(): FooterRowGroup {
    return this.footer.footer.rowGroups[this.source.index]!;
  }

  /** The chunk of a field of the segment's own schema. */
  #chunk(stored: number): StoredChunk {
    return storedChunk(
      this.footer,
      { rowGroup: this.source.index, column: stored + 1 },
      this.source.segment.path,
    );
  }

  async searchStreamed(
    field: number,
    needles: readonly KernelNeedle[],
    counters: ReadCounters,
  ): Promise<boolean | null> {
    const { field: stored, conversion } = this.source.sources[field]!;
    if (this.threads === null || conversion !== 'none') return null;
    const { segment } = this.source;
    const { uncompressedBytes, dictionaryPageBytes } = this.#rowGroup.chunks[stored + 1]!;
    const isLong = dictionaryPageBytes === 0 && uncompressedBytes >= streamedBytesMin;
    if (!isLong || this.footer.footer.codec !== 'lz4') return null;
    const file = segment.absolutePath;
    if (file === undefined || !segment.pool.isToStream(this.#key(field), uncompressedBytes)) return null;
    return searchStored(this.threads, { file, chunk: this.#chunk(stored), needles }, counters);
  }

  isInMemory(field: number): boolean {
    return this.source.segment.pool.hasDecoded(this.#key(field));
  }

  /** The keys are made once, because looking up a newly built string in a map is slow. */
  #key(field: number): string {
    const { source } = this;
    return (source.keys ??= source.segment.poolKeys(source.index, source.target, source.sources))[field]!;
  }
}
