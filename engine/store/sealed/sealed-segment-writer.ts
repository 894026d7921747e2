import { crc32 } from 'node:zlib';
import { assert } from '../../core/errors.js';
import type { PlainColumn } from '../../columns/column.js';
import type { RowSlices } from '../../columns/take.js';
import { heap } from '../../core/arena.js';
import { rowGroupRowsMax, segmentRowGroupsMax } from '../../core/limits.js';
import { encodeChunk, type EncodedChunk } from '../../parquet/chunk-encoder.js';
import { type Codec, type Compress, openCompressor } from '../../parquet/compression.js';
import { heapEncodeSpace, type EncodeSpace } from '../../parquet/column-space.js';
import { cursorColumn, type ChunkPlace, type FileColumn, writeFooter } from '../../parquet/footer.js';
import { magic, tailBytes } from '../../parquet/format.js';
import { int64Of, type Bounds } from '../../parquet/statistics.js';
import { placementField, type Schema } from '../../core/schema.js';
import { fillCursors } from '../manifest/cursor-column.js';
import type { Directory, WritableFile } from '../disk/directory.js';
import { FilterWriter } from './filter-writer.js';
import type { Run, SegmentEntry, SegmentFacts } from '../manifest/manifest.js';
import { encodeRowGroup, type EncodedRowGroup } from './row-group-encoder.js';
import { encodeHeader, headerBytesOf, rowGroupChecksum } from './segment-header.js';
import { encodeSummary, filterBytes, noFilters, type FilterPlaces } from './segment-filters.js';
import { writeMetadata, type SegmentMetadata } from './segment-metadata.js';

/** What the manifest says of a segment, except what only its publisher knows. */
export type WrittenSegment = Omit<SegmentFacts, 'schemaVersion'>;

interface WrittenChunk {
  readonly place: ChunkPlace;
  readonly checksum: number;
}

interface WrittenRowGroup {
  readonly rows: number;
  /** One chunk for each field. */
  readonly chunks: readonly WrittenChunk[];
}

/**
 * Writes a sealed segment, which is a Parquet file. The `_cursor` chunks come last, so that everything else can be written before the
 * ordinals are known. Layout: magic; the header, whose content is written last; for each row group the chunks of the fields, then their
 * gram filters and value filters; the sketches; the `_cursor` chunks; the summary; the footer. Rows must come in order of position. Format:
 * `docs/format.md`.
 */
export class SegmentWriter {
  #state: 'writing' | 'ended' = 'writing';
  #position = 0;
  readonly #headerBytes: number;
  readonly #rowGroupsMax: number;
  readonly #rowGroups: WrittenRowGroup[] = [];
  readonly #filters: FilterWriter;

  private constructor(
    private readonly directory: Directory,
    private readonly path: string,
    private readonly schema: Schema,
    private readonly codec: Codec,
    private readonly compress: Compress,
    /** Null while paused, and after the end. */
    private file: WritableFile | null,
    singleGroupRuns: number | null,
  ) {
    this.#rowGroupsMax = singleGroupRuns === null ? segmentRowGroupsMax : 1;
    this.#headerBytes = headerBytesOf(schema, singleGroupRuns);
    this.#filters = new FilterWriter(schema.fields.length, async (bytes) => {
      const offset = this.#position;
      await this.#write(bytes);
      return offset;
    });
  }

  /**
   * Creates the file in an existing folder. Throws `exists` if there is one.
   *
   * @param options.singleGroupRuns if not null, the segment gets only one row group, of at most this many runs. Its header is then shorter.
   */
  static async create(
    directory: Directory,
    path: string,
    schema: Schema,
    { codec, singleGroupRuns = null }: { readonly codec: Codec; readonly singleGroupRuns?: number | null },
  ): Promise<SegmentWriter> {
    const compress = await openCompressor(codec);
    const file = await directory.create(path);
    const writer = new SegmentWriter(directory, path, schema, codec, compress, file, singleGroupRuns);
    try {
      await writer.#write(magic);
      writer.#position += writer.#headerBytes;
    } catch (error) {
      await writer.abort();
      throw error;
    }
    return writer;
  }

  /** Number of row groups so far, at most `segmentRowGroupsMax`. */
  get rowGroups(): number {
    return this.#rowGroups.length;
  }

  /** Encodes and writes 1 to `rowGroupRowsMax` rows, without positions. The columns must be those of the schema, in order. */
  async appendRowGroup(slices: RowSlices): Promise<void> {
    await this.writeRowGroup(encodeRowGroup(this.schema, slices, this.compress, heap));
  }

  /** Writes a row group that was encoded for this segment's schema and codec. */
  async writeRowGroup({ rows, chunks, ...filters }: EncodedRowGroup): Promise<void> {
    assert(
      this.#state === 'writing' && !this.#filters.hasEnded,
      'a segment whose rows have ended takes no more',
    );
    assert(
      this.#rowGroups.length < this.#rowGroupsMax,
      `a segment has at most ${segmentRowGroupsMax} row groups, and one that was to have one has no other`,
    );
    const stored: WrittenChunk[] = [];
    for (const chunk of chunks) stored.push(await this.#writeChunk(chunk));
    for (const [field, bloomFilter] of (await this.#filters.write(filters)).entries()) {
      if (bloomFilter === null) continue;
      stored[field] = { ...stored[field]!, place: { ...stored[field]!.place, bloomFilter } };
    }
    this.#rowGroups.push({ rows, chunks: stored });
  }

  async #writeChunk({ bytes, checksum, ...chunk }: EncodedChunk): Promise<WrittenChunk> {
    const place = { ...chunk, offset: this.#position, bytes: bytes.length };
    await this.#write(bytes);
    return { place, checksum };
  }

  /** Writes the sketches of all row groups, then pauses. No row group can be added afterwards. */
  async endRows(): Promise<void> {
    await this.#filters.end();
    await this.pause();
  }

  /** Closes the file until the next call, because a process can only have a limited number of open files. */
  async pause(): Promise<void> {
    await this.file?.close();
    this.file = null;
  }

  /**
   * Writes the positions, the summary, the footer and the header, and syncs the content. The caller syncs the folder. `runs` must ascend by
   * position and by row, and cover every row.
   */
  async finish(
    runs: readonly Run[],
    schemaVersion: number,
    removed?: SegmentEntry['removed'],
  ): Promise<WrittenSegment> {
    assert(this.#state === 'writing', 'a segment is finished once');
    await this.#filters.end();
    const rows = this.#rowGroups.reduce((sum, group) => sum + group.rows, 0);
    const cursorChunks: WrittenChunk[] = [];
    let firstRow = 0;
    for (const group of this.#rowGroups) {
      cursorChunks.push(await this.#writeChunk(encodeCursors(runs, firstRow, group.rows, this.compress)));
      firstRow += group.rows;
    }
    const filters = this.#filters.places;
    const summary = encodeSummary(filters, this.#rowGroups.length);
    await this.#write(summary);
    const metadata = { schemaVersion, runs, removed, summaryBytes: summary.length };
    const footer = this.#footer(metadata, rows, cursorChunks, filters);
    const footerOffset = this.#position;
    await this.#write(footer);
    const written = {
      bytes: this.#position,
      rows,
      rowGroupRows: this.#rowGroups.map((group) => group.rows),
      runs,
      ...this.#timeBounds(),
      footerOffset,
      footerBytes: footer.length,
      footerChecksum: crc32(footer),
      codec: this.codec,
      gramFilterBytes: filterBytes(
        { ...noFilters, gramFilters: filters.gramFilters },
        this.#rowGroups.length,
      ),
      valueFilterBytes: filterBytes({ ...filters, gramFilters: [] }, this.#rowGroups.length),
      summaryBytes: summary.length,
      headerBytes: this.#headerBytes,
    };
    await this.#writeHeader({ ...written, schemaVersion });
    const file = await this.#open();
    await file.sync();
    await this.pause();
    this.#state = 'ended';
    return written;
  }

  /** Writes the header into the space reserved after the first magic number. */
  async #writeHeader(facts: SegmentFacts): Promise<void> {
    const header = {
      facts,
      schema: this.schema,
      rowGroupOffsets: this.#rowGroups.map(({ chunks }) => chunks[0]!.place.offset),
      rowGroupChecksums: this.#rowGroups.map(({ chunks }) =>
        rowGroupChecksum(chunks.map(({ checksum }) => checksum)),
      ),
    };
    const file = await this.#open();
    await file.write(magic.length, encodeHeader(header, this.#headerBytes));
  }

  /** The footer: the Thrift structure, its length and the magic number. */
  #footer(
    metadata: Pick<SegmentMetadata, 'runs' | 'schemaVersion' | 'removed' | 'summaryBytes'>,
    rows: number,
    cursorChunks: readonly WrittenChunk[],
    filters: FilterPlaces,
  ): Uint8Array {
    const chunksOf = (group: WrittenRowGroup, i: number): WrittenChunk[] => [
      cursorChunks[i]!,
      ...group.chunks,
    ];
    const columns: FileColumn[] = [
      { name: cursorColumn, content: 'cursor' },
      ...this.schema.fields.map((field) => ({ name: field.name, content: field.type })),
    ];
    const structure = writeFooter({
      columns,
      rows,
      codec: this.codec,
      rowGroups: this.#rowGroups.map((group, i) => ({
        rows: group.rows,
        chunks: chunksOf(group, i).map((chunk) => chunk.place),
      })),
      keyValues: writeMetadata({
        ...metadata,
        schema: this.schema,
        checksums: this.#rowGroups.map((group, i) => chunksOf(group, i).map((chunk) => chunk.checksum)),
        ...filters,
        headerBytes: this.#headerBytes,
      }),
    });
    const footer = new Uint8Array(structure.length + tailBytes);
    footer.set(structure);
    new DataView(footer.buffer).setUint32(structure.length, structure.length, true);
    footer.set(magic, footer.length - magic.length);
    return footer;
  }

  #timeBounds(): { timeMinMs: number | null; timeMaxMs: number | null } {
    const field = placementField(this.schema);
    return timeBoundsOf(field < 0 ? [] : this.#rowGroups.map(({ chunks }) => chunks[field]!.place.bounds));
  }

  /** Closes and removes the file. Does nothing after `finish`. */
  async abort(): Promise<void> {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    try {
      await this.pause();
    } finally {
      await this.directory.remove(this.path);
    }
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const file = await this.#open();
    await file.write(this.#position, bytes);
    this.#position += bytes.length;
  }

  async #open(): Promise<WritableFile> {
    this.file ??= await this.directory.openWrite(this.path);
    return this.file;
  }
}

let cursorSpace: { readonly values: BigInt64Array; readonly space: EncodeSpace } | undefined;

/**
 * Encodes the positions of `rows` rows from `firstRow` on. The working memory is kept for the next call: as it is larger than the result,
 * new memory for each segment would mostly wait for the garbage collector.
 */
function encodeCursors(
  runs: readonly Run[],
  firstRow: number,
  rows: number,
  compress: Compress,
): EncodedChunk {
  cursorSpace ??= { values: new BigInt64Array(rowGroupRowsMax), space: heapEncodeSpace(rowGroupRowsMax) };
  const values = cursorSpace.values.subarray(0, rows);
  fillCursors(runs, firstRow, values);
  const column: PlainColumn = { kind: 'int64', length: rows, values, validity: null };
  return encodeChunk(column, 'ascending', false, compress, cursorSpace.space);
}

/** The bounds of a segment's times, from the bounds of the placement field in each row group. */
export function timeBoundsOf(rowGroups: readonly (Bounds | null)[]): {
  timeMinMs: number | null;
  timeMaxMs: number | null;
} {
  let min: bigint | null = null;
  let max: bigint | null = null;
  for (const bounds of rowGroups) {
    if (bounds === null) continue;
    const low = int64Of(bounds.min);
    const high = int64Of(bounds.max);
    if (min === null || low < min) min = low;
    if (max === null || high > max) max = high;
  }
  return {
    timeMinMs: min === null ? null : atMost(min),
    timeMaxMs: max === null ? null : 0 - atMost(-max),
  };
}

/** The largest double that is at most `value`, so that bounds stay valid for times beyond 2^53. */
function atMost(value: bigint): number {
  const nearest = Number(value);
  if (BigInt(nearest) <= value) return nearest;
  return nearest - Math.abs(nearest) * Number.EPSILON;
}
