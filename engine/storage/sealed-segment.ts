import type { Column } from '../column.js';
import type { ColumnLease } from '../scan/column-lease.js';
import { placementField, type Schema } from '../schema.js';
import type { QueryThreads } from '../scan/query-threads.js';
import type { ColumnUse, OpenRowGroup, ReadCounters, RowGroup, ZoneMap } from '../scan/snapshot.js';
import { decodingBytesMax, readingBytesMax } from '../parquet/chunk-decoder.js';
import type { ColumnSpace } from '../parquet/column-space.js';
import type { Bounds } from '../parquet/statistics.js';
import type { BufferPool, ColumnRequest } from './buffer-pool.js';
import {
  conversionBytesMax,
  conversionOf,
  convertZone,
  nullColumn,
  type Conversion,
} from './convert-column.js';
import { copyColumn } from './copy-column.js';
import type { Directory, ReadableFile } from './directory.js';
import { GramProbing } from './gram-probing.js';
import type { SegmentEntry } from './manifest.js';
import {
  decodeConverted,
  readBytesInto,
  readSegmentFooter,
  storedChunk,
  withFile,
  type SegmentFooter,
} from './segment-file.js';

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
  }

  /** `schema` is the one that the segment was written with. Nothing is read yet, so damage shows when it is needed. */
  static open(
    directory: Directory,
    path: string,
    entry: SegmentEntry,
    schema: Schema,
    pool: BufferPool,
  ): Promise<SealedSegment> {
    return Promise.resolve(new SealedSegment(directory, path, entry, schema, pool));
  }

  get path(): string {
    return this.#path;
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
    return this.#entry.rowGroupRows.map((rows, index) => ({
      rows,
      file: this.#entry.file,
      index,
      hot: false,
      timeMinMs: hasTimes ? this.#entry.timeMinMs : null,
      timeMaxMs: hasTimes ? this.#entry.timeMaxMs : null,
      open: async (threads = null) =>
        new SealedRowGroup(this, await this.footer(), index, target, sources, threads),
    }));
  }

  /** The footer, read and checked once. Throws `DamageError`; a failure is not kept. */
  footer(): Promise<SegmentFooter> {
    this.#footer ??= this.withFile((file) => readSegmentFooter(file, this.#entry, this.#schema)).catch(
      (error: unknown) => {
        this.#footer = undefined;
        throw error;
      },
    );
    return this.#footer;
  }

  /** Columns of a row group through the pool: `requests` has their keys within the row group. */
  async pin(
    rowGroup: number,
    requests: readonly ColumnRequest[],
    counters: ReadCounters,
    lease: ColumnLease,
    use: ColumnUse,
  ): Promise<Column[]> {
    const prefix = `${this.#poolPrefix()}${rowGroup}/`;
    const keyed = requests.map((request) => ({ ...request, key: prefix + request.key }));
    const pinned = await this.#pool.pin(keyed, use, lease);
    for (const { cached } of pinned) {
      if (cached) counters.columnsCached++;
      else counters.columnsDecoded++;
    }
    return pinned.map(({ column }) => column);
  }

  openFile(): Promise<ReadableFile> {
    return this.#directory.openRead(this.#path);
  }

  /** Whether the column of a key within the row group is in the pool. */
  isPooled(rowGroup: number, key: string): boolean {
    return this.#pool.has(`${this.#poolPrefix()}${rowGroup}/${key}`);
  }

  /** Absolute, where other threads can read the file. */
  get absolutePath(): string | undefined {
    return this.#directory.absolutePath?.(this.#path);
  }

  withFile<T>(use: (file: ReadableFile) => Promise<T>): Promise<T> {
    return withFile(this.#directory, this.#path, use);
  }

  /** Gives back what the segment holds in memory. The file stays. */
  close(): Promise<void> {
    this.#footer = undefined;
    this.#pool.evict(this.#poolPrefix());
    return Promise.resolve();
  }

  #poolPrefix(): string {
    return `${this.#directory.location}/${this.#path}/`;
  }
}

class SealedRowGroup implements OpenRowGroup {
  readonly #segment: SealedSegment;
  readonly #footer: SegmentFooter;
  readonly #index: number;
  readonly #target: Schema;
  readonly #sources: readonly FieldSource[];
  readonly #threads: QueryThreads | null;

  constructor(
    segment: SealedSegment,
    footer: SegmentFooter,
    index: number,
    target: Schema,
    sources: readonly FieldSource[],
    threads: QueryThreads | null,
  ) {
    this.#segment = segment;
    this.#footer = footer;
    this.#index = index;
    this.#target = target;
    this.#sources = sources;
    this.#threads = threads;
  }

  zone(field: number): ZoneMap | null {
    const source = this.#sources[field]!;
    const { rows, chunks } = this.#footer.footer.rowGroups[this.#index]!;
    if (source.field < 0) return { nullCount: rows, rows, min: null, max: null };
    const { nullCount, bounds } = chunks[source.field + 1]!;
    const type = this.#footer.metadata.schema.fields[source.field]!.type;
    const stored = { nullCount, rows, ...boundValues(bounds, type === 'float', type === 'string') };
    return convertZone(stored, source.conversion);
  }

  async mayContain(field: number, folded: Uint8Array, counters: ReadCounters): Promise<boolean> {
    const source = this.#sources[field]!;
    if (source.conversion === 'toNull') return false;
    const place = this.#footer.metadata.gramFilters.find(
      (filter) => filter.rowGroup === this.#index && filter.field === source.field,
    );
    // Numbers that are read as text have no filter, nor has what a dictionary answers exactly.
    if (place === undefined || source.conversion !== 'none') return true;
    const probing = new GramProbing(place, folded, 0);
    if (probing.wanted() === null) return true;
    const path = this.#segment.absolutePath;
    if (this.#threads !== null && path !== undefined) {
      const { offset, gramBytes, gramBits, trigramBits } = place;
      return this.#threads.mayContain({ path, offset, gramBytes, gramBits, trigramBits }, folded, counters);
    }
    return this.#segment.withFile((file) => probe(file, place.offset, probing, counters));
  }

  async columns(
    fields: readonly number[],
    counters: ReadCounters,
    lease: ColumnLease,
    use: ColumnUse = 'again',
  ): Promise<Column[]> {
    // One opened file serves all columns that have to be read.
    const reading = new SharedFile(this.#segment);
    try {
      const requests = fields.map((field) => this.#request(field, counters, reading));
      return await this.#segment.pin(this.#index, requests, counters, lease, use);
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
        key: this.#variant(field),
        sizeBytes: conversionBytesMax(rows),
        load: (space) => Promise.resolve(copyColumn(nullColumn(type, rows), space)),
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
    return { key: this.#variant(field), sizeBytes: this.#sizeBytesMax(field), load };
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

  isAtHand(field: number): boolean {
    return this.#segment.isPooled(this.#index, this.#variant(field));
  }

  /** Tells apart what the chunk of a field is converted to. */
  #variant(field: number): string {
    const { field: position, conversion } = this.#sources[field]!;
    const { type } = this.#target.fields[field]!;
    return conversion === 'toNull' ? `null-${type}` : `${position}-${type}`;
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

/** Reads the pieces of the filter at `offset` that are wanted; returns whether it allows for the needle. */
async function probe(
  file: ReadableFile,
  offset: number,
  probing: GramProbing,
  counters: ReadCounters,
): Promise<boolean> {
  for (let piece = probing.wanted(); piece !== null; piece = probing.wanted()) {
    const stored = await file.read(offset + piece.offset, piece.storedBytes);
    counters.gramPiecesRead++;
    counters.bytesRead += stored.length;
    probing.take(piece, stored);
  }
  return probing.mayContain;
}

/** Bounds as the scan compares them. */
function boundValues(
  bounds: Bounds | null,
  isFloat: boolean,
  isString: boolean,
): Pick<ZoneMap, 'min' | 'max'> {
  if (bounds === null) return { min: null, max: null };
  const { min, max } = bounds;
  if (isString) return { min, max };
  // A bound of another length can't be read, and a missing bound rules nothing out.
  if (min.length !== 8 || max.length !== 8) return { min: null, max: null };
  return isFloat ? { min: float64Of(min), max: float64Of(max) } : { min: int64Of(min), max: int64Of(max) };
}

function int64Of(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigInt64(0, true);
}

function float64Of(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
