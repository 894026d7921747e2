import { arraysOf, type Column } from '../../columns/column.js';
import { nullColumn, copyColumn } from '../../columns/convert-column.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import { boundValues } from '../../parquet/statistics.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { bufferBytes } from '../../core/allocator.js';
import { assert } from '../../core/errors.js';
import { hourMs } from '../../core/cursor.js';
import { streamedBytesMin } from '../../core/limits.js';
import { isPlacedBy, placementField, readingOf, type Field, type Schema } from '../../core/schema.js';
import type { AttachedFile } from '../attached/attached-list.js';
import {
  chunkOf,
  columnSource,
  constantColumn,
  constantZone,
  zoneOfChunk,
  type ColumnSource,
} from '../attached/column-source.js';
import { DeletedOfFile } from '../attached/deleted-rows.js';
import type { Description, Descriptions } from '../attached/descriptions.js';
import type { Directory } from '../disk/directory.js';
import { isSameReading } from '../attached/file-index.js';
import {
  decodePlacements,
  type SpanPlacement,
  spansOfFile,
  type FileSpan,
} from '../attached/span-placements.js';
import type { ReadSpans } from '../attached/span-tasks.js';
import type { ForeignMeans } from '../attached/foreign-work.js';
import { AttachedReader, type ColumnReading } from './attached-reader.js';
import type { BufferPool, ColumnRequest } from './buffer-pool.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import type { FileFilters } from './filter-request.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ReadCounters } from './read-counters.js';
import { SegmentProbing } from './segment-probing.js';
import type {
  ChunkSize,
  HeldColumns,
  ColumnUse,
  HoldOptions,
  OpenRowGroup,
  RowGroup,
  SnapshotRun,
  ReadRows,
  WantedRows,
} from './snapshot.js';

/**
 * An attached file, opened for reading. A span of it is what a row group of a sealed segment is: its rows are put in the order of their
 * positions when they are decoded. Columns are read when they are first needed, and kept in the pool like those of segments.
 */
export class AttachedSegment {
  #file: AttachedFile;
  readonly spans: readonly FileSpan[];
  readonly placements: readonly SpanPlacement[];
  /** Asks the filters of the index; null where there is none. */
  #probing: SegmentProbing | null;
  /** Begins the names of its columns in the pool. */
  readonly #poolPrefix: string;
  /** Bytes of columns that have been decoded, by their names in the pool: the file says nothing that could be relied on. */
  readonly #sizes = new Map<string, number>();
  readonly reader: AttachedReader;
  readonly deleted: DeletedOfFile;

  /** Throws `DamageError` where the placements are not those of the rows. Nothing of the file itself is read yet. */
  constructor(
    private readonly directory: Directory,
    private readonly agent: string,
    file: AttachedFile,
    private readonly descriptions: Descriptions,
    readonly pool: BufferPool,
    means: ForeignMeans,
  ) {
    this.#file = file;
    this.spans = spansOfFile(file.rowGroupRows);
    const spanRows = this.spans.map(({ from, to }) => to - from);
    this.placements = decodePlacements(file.placements, spanRows, file.runs.length);
    this.reader = new AttachedReader(means);
    this.deleted = new DeletedOfFile(file.deleted, this.spans);
    this.#poolPrefix = `attached/${agent}/${file.id}/`;
    this.#probing = this.#probingOf(file);
  }

  get file(): AttachedFile {
    return this.#file;
  }

  /** Takes a newer entry of the same file, which may lie elsewhere now, or have an index. */
  take(file: AttachedFile): void {
    const isIndexedAnew = file.index?.file !== this.#file.index?.file;
    this.#file = file;
    if (!isIndexedAnew) return;
    this.descriptions.forget(file.id);
    this.#probing?.forget();
    this.#probing = this.#probingOf(file);
  }

  #probingOf({ index }: AttachedFile): SegmentProbing | null {
    if (index === undefined) return null;
    const { file, summaryOffset, summaryBytes } = index;
    const rowGroupRows = this.spans.map(({ from, to }) => to - from);
    const entry = { footerOffset: summaryOffset + summaryBytes, summaryBytes, rowGroupRows };
    return new SegmentProbing(this.directory, `${this.agent}/${file}`, entry);
  }

  /** The filters of the index, which may come later. */
  #filters({ fields }: Schema): FileFilters {
    // Found once for each index: thousands of files are asked by one query.
    let stored: { readonly by: SegmentProbing; readonly fields: readonly number[] } | null = null;
    return {
      rowGroups: this.spans.length,
      ask: (ask) => {
        const by = this.#probing;
        if (by === null) return null;
        if (stored?.by !== by) stored = { by, fields: fields.map((field) => this.indexOf(field)) };
        return by.ask(ask, stored.fields, undefined);
      },
    };
  }

  /** The spans in the order of the file, with the fields of `target`. */
  rowGroups(target: Schema): RowGroup[] {
    const hasTimes = this.#hasTimes(target);
    const filters = this.#filters(target);
    const pathOf = (): string => this.#file.path;
    return this.spans.map((span, index) => {
      const rows = span.to - span.from;
      const keys = target.fields.map((field) => this.poolKey(index, field));
      const bounds = hasTimes ? spanBounds(this.#file, this.placements[index]!) : null;
      const rowGroup: RowGroup = {
        rows,
        // A file may be renamed while it is attached.
        get file() {
          return pathOf();
        },
        index,
        hot: false,
        hides: this.deleted.has(index),
        table: this.#file.table,
        timeMinMs: bounds?.min ?? null,
        timeMaxMs: bounds?.max ?? null,
        filters,
        opened: (threads = null) =>
          this.described === undefined ? null : new OpenSpan(source, this.described, threads),
        open: async (threads = null) =>
          new OpenSpan(source, this.described ?? (await this.#describe(threads)), threads),
      };
      const source = { segment: this, target, span, index, rows, keys, rowGroup };
      return rowGroup;
    });
  }

  /** Whether the field that places new records placed these rows too. */
  #hasTimes({ fields }: Schema): boolean {
    const field = fields[placementField({ fields })];
    const { placedBy } = this.#file;
    return field !== undefined && placedBy !== null && isPlacedBy(placedBy, field);
  }

  /** Gives the positions of the rows in partitions from `liveFrom` on, cut where the spans are. */
  eachRun(rowGroups: readonly RowGroup[], liveFrom: number, take: (run: SnapshotRun) => void): void {
    const { runs } = this.#file;
    const nextOrdinals = runs.map(({ firstOrdinal }) => firstOrdinal);
    this.placements.forEach(({ hours }, span) => {
      let firstRow = 0;
      for (const { hour, rows } of hours) {
        const { partition } = runs[hour]!;
        const firstOrdinal = nextOrdinals[hour]!;
        if (partition >= liveFrom)
          take({ rowGroup: rowGroups[span]!, firstRow, rows, partition, firstOrdinal });
        nextOrdinals[hour] = firstOrdinal + rows;
        firstRow += rows;
      }
    });
  }

  /** Position of a field in the index; -1 where it has none, or of other values. */
  indexOf(field: Field): number {
    const fields = this.#file.index?.fields ?? [];
    return fields.findIndex((own) => own.name === field.name && isSameReading(own, field));
  }

  /** What is known of the file, where it is in memory. */
  get described(): Description | undefined {
    return this.descriptions.known(this.#file.id);
  }

  #describe(threads: JobQueue | null): Promise<Description> {
    return this.descriptions.read(this.#file, this.reader.work(threads));
  }

  poolKey(span: number, field: Field): string {
    return `${this.#poolPrefix}${span}/${field.type}/${readingOf(field)}`;
  }

  /** A column of a span through the pool, which has `column` decoded already unless that is null. */
  request(key: string, column: Column | null, decode: () => Promise<Column>): ColumnRequest {
    if (column !== null) this.#sizes.set(key, sizeBytesOf(column));
    return {
      key,
      sizeBytes: this.#sizes.get(key)!,
      load: async (space) => copyColumn(column ?? (await decode()), space.kept),
    };
  }

  /** Reads a column of span number `index` of the file. Other spans that come with it are offered to the pool. */
  async readColumn(index: number, field: Field, reading: ColumnReading): Promise<Column> {
    const { spans, isOwn } = await this.reader.read(reading);
    const { span } = reading;
    if (isOwn) this.#offer(index - span.index, span.index, field, spans);
    return spans.find((found) => found.span === span.index)!.column;
  }

  /** Placements of the spans of a row group, of which one is span number `index` of the file. */
  placementsBeside(index: number): SpanPlacement[] {
    const { rowGroup, index: among } = this.spans[index]!;
    const first = index - among;
    let end = index + 1;
    while (this.spans[end]?.rowGroup === rowGroup) end++;
    return this.placements.slice(first, end);
  }

  #offer(firstSpan: number, wanted: number, field: Field, spans: ReadSpans['spans']): void {
    for (const { span, column } of spans) {
      if (span === wanted) continue;
      const key = this.poolKey(firstSpan + span, field);
      this.pool.offer(this.request(key, column, () => Promise.resolve(column)));
    }
  }

  /** Gives back what it holds in memory. The file stays. */
  close(): void {
    this.descriptions.forget(this.#file.id);
    this.#probing?.forget();
    this.pool.evict(this.#poolPrefix);
  }
}

/** The most bytes that a copy of a column asks of its space. */
function sizeBytesOf(column: Column): number {
  return arraysOf(column).reduce((sum, { byteLength }) => sum + bufferBytes(byteLength), 0);
}

/** What a span is opened from. Shared by all openings of it, so that keys are made once. */
interface SpanSource {
  readonly segment: AttachedSegment;
  readonly target: Schema;
  readonly span: FileSpan;
  readonly index: number;
  readonly rows: number;
  /** The pool's key for each field. */
  readonly keys: readonly string[];
  readonly rowGroup: RowGroup;
}

/** Bounds of the times in a span: those of its hours where no time was clamped, else those of the file. */
function spanBounds(
  { timeMinMs, timeMaxMs, nowMs, runs }: AttachedFile,
  { hours }: SpanPlacement,
): { min: number; max: number } | null {
  if (timeMinMs === null || timeMaxMs === null) return null;
  if (timeMinMs < hourMs || timeMaxMs > nowMs) return { min: timeMinMs, max: timeMaxMs };
  const first = runs[hours.at(0)!.hour]!.partition;
  const last = runs[hours.at(-1)!.hour]!.partition;
  return { min: Math.max(timeMinMs, first * hourMs), max: Math.min(timeMaxMs, (last + 1) * hourMs - 1) };
}

class OpenSpan implements OpenRowGroup {
  readonly #sources: (ColumnSource | undefined)[] = [];

  constructor(
    private readonly source: SpanSource,
    private readonly description: Description,
    private readonly threads: JobQueue | null,
  ) {}

  #sourceOf(field: number): ColumnSource {
    const { target, segment } = this.source;
    return (this.#sources[field] ??= columnSource(
      target.fields[field]!,
      this.description.file,
      segment.file,
    ));
  }

  /** Spans of one row group of the file are read together. */
  chunkSize(field: number): ChunkSize | undefined {
    const source = this.#sourceOf(field);
    if (source.kind !== 'column') return undefined;
    return chunkOf(this.description.file.rowGroups[this.source.span.rowGroup]!, source);
  }

  zone(field: number): ZoneMap | null {
    const { rows, target, span } = this.source;
    const source = this.#sourceOf(field);
    switch (source.kind) {
      case 'missing':
        return { nullCount: rows, rows, min: null, max: null };
      case 'constant':
        return constantZone(source.text, target.fields[field]!.type, rows);
      case 'column': {
        const indexed = this.#indexedZone(field);
        if (indexed !== null) return indexed;
        const rowGroup = this.description.file.rowGroups[span.rowGroup]!;
        return zoneOfChunk(source, chunkOf(rowGroup, source), rowGroup.rows, rows);
      }
    }
  }

  #indexedZone(field: number): ZoneMap | null {
    const { rows, target, segment, index } = this.source;
    const { name, type } = target.fields[field]!;
    const known = this.description.facts?.fields[segment.indexOf(target.fields[field]!)];
    const zone = known?.zones[index];
    assert(known === undefined || zone !== undefined, `the index has each span of field ${name}`);
    if (zone === undefined) return null;
    return { nullCount: zone.nullCount, rows, ...boundValues(zone.bounds, type) };
  }

  async isRuledOutByFile(questions: readonly FilterQuestion[], counters: ReadCounters): Promise<boolean> {
    const { segment, span } = this.source;
    // The index has filters of its own, with checksums.
    if (this.description.facts !== null) return false;
    const reading = {
      file: segment.file,
      description: this.description,
      span,
      threads: this.threads,
      counters,
    };
    return segment.reader.isRuledOut(reading, questions, (field) => this.#sourceOf(field));
  }

  async hidden(counters: ReadCounters): Promise<Uint8Array> {
    const { segment, index, span } = this.source;
    const rowsOf = (places: Uint32Array): Promise<Uint32Array> => {
      const time: Field = { name: 'time', type: 'time', attached: segment.file.placedBy ?? undefined };
      const source = columnSource(time, this.description.file, segment.file);
      assert(source.kind === 'column', 'rows in no order have a column that placed them');
      const reading = { ...this.#readingOf(source, counters), indexedField: -1 };
      return segment.reader.fileRows(reading, [{ span: span.index, places }]);
    };
    const { isOrdered } = segment.placements[index]!;
    return (await segment.deleted.hidden(index, isOrdered ? null : rowsOf)).slice();
  }

  isInMemory(field: number): boolean {
    const { segment, keys } = this.source;
    return segment.pool.hasDecoded(keys[field]!);
  }

  columnsInMemory(fields: readonly number[], counters: ReadCounters, use?: ColumnUse): HeldColumns | null {
    return this.source.segment.pool.pinDecoded(this.#keys(fields), counters, use);
  }

  columns(fields: readonly number[], counters: ReadCounters, options?: HoldOptions): Promise<HeldColumns> {
    const requestOf = (i: number): Promise<ColumnRequest> => this.#request(fields[i]!, counters);
    return this.source.segment.pool.hold(this.#keys(fields), requestOf, counters, options);
  }

  #keys(fields: readonly number[]): string[] {
    return fields.map((field) => this.source.keys[field]!);
  }

  prefersRows(fields: readonly number[]): boolean {
    return fields.some((field) => {
      const source = this.#sourceOf(field);
      return source.kind === 'column' && source.column.way === 'complete' && !this.isInMemory(field);
    });
  }

  async rowsOf(
    fields: readonly number[],
    wanted: readonly WantedRows[],
    counters: ReadCounters,
  ): Promise<ReadRows | null> {
    const { segment, target, span, rowGroup } = this.source;
    const isBeside = (other: RowGroup): boolean =>
      other.filters === rowGroup.filters && segment.spans[other.index]!.rowGroup === span.rowGroup;
    const taken = wanted.filter((one) => isBeside(one.rowGroup) && isFew(one));
    if (!taken.some((one) => one.rowGroup === rowGroup)) return null;
    const places = taken.map((one) => ({ span: segment.spans[one.rowGroup.index]!.index, places: one.rows }));
    const length = taken.reduce((sum, { rows }) => sum + rows.length, 0);
    const readings = fields.flatMap((field) => {
      const source = this.#sourceOf(field);
      return source.kind === 'column' ? [this.#reading(field, source, counters)] : [];
    });
    const read = await segment.reader.readRows(readings, places);
    let next = 0;
    const columns = fields.map((field) => {
      const source = this.#sourceOf(field);
      return source.kind === 'column' ? read[next++]! : columnOf(source, target.fields[field]!, length);
    });
    return { columns, taken };
  }

  async searchStreamed(
    field: number,
    needles: readonly KernelNeedle[],
    counters: ReadCounters,
  ): Promise<boolean | null> {
    const { segment, target, span, keys } = this.source;
    const source = this.#sourceOf(field);
    // What a filter of the index has not ruled out is likely there.
    if (this.threads === null || source.kind !== 'column' || this.description.facts !== null) return null;
    const { column, change } = source;
    if (column.way !== 'fast' || target.fields[field]!.type !== 'string' || change.conversion !== 'none')
      return null;
    const rowGroup = this.description.file.rowGroups[span.rowGroup]!;
    const { uncompressedBytes } = chunkOf(rowGroup, source);
    const spanBytes = Math.round((uncompressedBytes * this.source.rows) / rowGroup.rows);
    if (spanBytes < streamedBytesMin || !segment.pool.isToStream(keys[field]!, spanBytes)) return null;
    return segment.reader.search(this.#reading(field, source, counters), needles, this.threads);
  }

  #reading(
    field: number,
    source: ColumnSource & { readonly kind: 'column' },
    counters: ReadCounters,
  ): ColumnReading {
    const { segment, target } = this.source;
    return {
      ...this.#readingOf(source, counters),
      indexedField: segment.indexOf(target.fields[field]!),
    };
  }

  #readingOf(
    source: ColumnSource & { readonly kind: 'column' },
    counters: ReadCounters,
  ): Omit<ColumnReading, 'indexedField'> {
    const { segment, span, index } = this.source;
    return {
      file: segment.file,
      description: this.description,
      source,
      span,
      placements: segment.placementsBeside(index),
      threads: this.threads,
      counters,
    };
  }

  /** Decodes a column before it is requested, unless it is in memory: only then is known how much memory it takes. */
  async #request(field: number, counters: ReadCounters): Promise<ColumnRequest> {
    const { segment, keys } = this.source;
    const decode = (): Promise<Column> => this.#decode(field, counters);
    return segment.request(keys[field]!, this.isInMemory(field) ? null : await decode(), decode);
  }

  async #decode(field: number, counters: ReadCounters): Promise<Column> {
    const { segment, target, rows, index } = this.source;
    const source = this.#sourceOf(field);
    if (source.kind !== 'column') return columnOf(source, target.fields[field]!, rows);
    return segment.readColumn(index, target.fields[field]!, this.#reading(field, source, counters));
  }
}

/** The column of a field that is no column of the file. */
function columnOf(source: Exclude<ColumnSource, { kind: 'column' }>, { type }: Field, rows: number): Column {
  return source.kind === 'missing' ? nullColumn(type, rows) : constantColumn(source.text, type, rows);
}

/** Of this many rows, at most one may be wanted for rows to be read by themselves. With more, whole columns are better, which are kept. */
const rowsPerWanted = 4;

function isFew({ rows, rowGroup }: WantedRows): boolean {
  return rows.length * rowsPerWanted <= rowGroup.rows;
}
