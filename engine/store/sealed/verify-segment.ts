import { DamageError, isLogstrataError } from '../../core/errors.js';
import type { Column } from '../../columns/column.js';
import { rowGroupRowsMax } from '../../core/limits.js';
import { magic } from '../../parquet/format.js';
import type { Schema } from '../../core/schema.js';
import { fillCursors } from '../manifest/cursor-column.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import { openSegment } from '../disk/real-directory.js';
import { isWhole, piecesOf, readPiece, type StoredFilter } from './filter-piece.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import {
  decodeStoredChunk,
  hasMagic,
  storedChunk,
  readSegmentFooter,
  type SegmentFooter,
} from './segment-file.js';
import { describesSegment, readHeader } from './segment-header.js';
import { decodeSummary, filterParts } from './segment-filters.js';

/** One damaged place of a segment, and what it costs. */
export interface SegmentDamage {
  readonly offset: number;
  /** Null if the damage does not belong to one row group. */
  readonly rowGroup: number | null;
  readonly column: string | null;
  readonly reason: string;
  /**
   * Which rows can no longer be answered: those of the whole segment, those of the row group, or none. Filters, the first bytes, the header
   * and the `_cursor` column cost nothing, because no answer depends on them.
   */
  readonly costs: 'segment' | 'rowGroup' | 'nothing';
}

/**
 * Reads every byte of a segment and verifies the checksums, decodes every page, and compares the positions in the file with the manifest's
 * runs. Returns each damage. Throws only failures of the file system.
 */
export async function verifySegment(
  directory: Directory,
  path: string,
  entry: SegmentEntry,
  schema: Schema,
): Promise<SegmentDamage[]> {
  let file: ReadableFile;
  try {
    file = await openSegment(directory, path);
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    return [{ offset: 0, rowGroup: null, column: null, reason: 'the file is not there', costs: 'segment' }];
  }
  try {
    const verification = new Verification(file, entry, schema);
    await verification.run();
    return verification.damages;
  } finally {
    await file.close();
  }
}

/** Reads one file. */
class Verification {
  readonly damages: SegmentDamage[] = [];

  constructor(
    private readonly file: ReadableFile,
    private readonly entry: SegmentEntry,
    private readonly schema: Schema,
  ) {}

  async run(): Promise<void> {
    const entry = this.entry;
    const bytes = await this.file.size();
    if (bytes > entry.bytes) this.#found(entry.bytes, `the file has ${bytes} bytes, expected ${entry.bytes}`);
    if (!hasMagic(await this.file.read(0, magic.length)))
      this.#found(0, 'the file does not begin with "PAR1", so other tools cannot open it');
    await this.#verifyHeader();
    let segment: SegmentFooter;
    try {
      segment = await readSegmentFooter(this.file, entry, this.schema);
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      this.#found(error.offset ?? entry.footerOffset, error.message, { costs: 'segment' });
      return;
    }
    this.#verifyTiling(segment);
    const { gramFilters, valueFilters, sketches } = segment.metadata;
    let firstRow = 0;
    for (const [rowGroup, { rows, chunks }] of segment.footer.rowGroups.entries()) {
      for (let column = 0; column < chunks.length; column++)
        await this.#verifyChunk(segment, rowGroup, column, firstRow);
      for (const place of gramFilters)
        if (place.rowGroup === rowGroup) await this.#verifyFilter({ kind: 'grams', place });
      for (const place of valueFilters)
        if (place.rowGroup === rowGroup) await this.#verifyFilter({ kind: 'values', place });
      firstRow += rows;
    }
    for (const place of sketches) await this.#verifyFilter({ kind: 'sketches', place });
    await this.#verifySummary();
  }

  /** Notes a damage. Unless `more` says so, it costs nothing and belongs to no row group. */
  #found(offset: number, reason: string, more: Partial<SegmentDamage> = {}): void {
    this.damages.push({ offset, rowGroup: null, column: null, reason, costs: 'nothing', ...more });
  }

  async #verifyHeader(): Promise<void> {
    const header = await readHeader(this.file);
    if (header === null)
      this.#found(
        magic.length,
        'the header does not match its checksum: only the footer still describes the segment',
      );
    else if (!describesSegment(header, this.entry))
      this.#found(magic.length, 'the header belongs to another segment');
  }

  /** Verifies that the parts of the file, each of which has a checksum, neither overlap nor leave gaps. */
  #verifyTiling({ footer, metadata }: SegmentFooter): void {
    const entry = this.entry;
    const chunks = footer.rowGroups.flatMap((group) => group.chunks);
    const places: { readonly offset: number; readonly bytes: number }[] = [
      ...chunks,
      ...filterParts(metadata, footer.rowGroups.length),
    ];
    places.sort((a, b) => a.offset - b.offset);
    places.push({
      offset: entry.footerOffset - entry.summaryBytes,
      bytes: entry.summaryBytes + entry.footerBytes,
    });
    let end = magic.length + entry.headerBytes;
    for (const place of places) {
      if (place.offset !== end) {
        const reason = `the parts of the file are not adjacent: one ends at ${end}, the next begins at ${place.offset}`;
        this.#found(end, reason, { costs: 'segment' });
        return;
      }
      end += place.bytes;
    }
    if (end !== entry.bytes)
      this.#found(end, `the file's parts end at ${end}, expected ${entry.bytes}`, { costs: 'segment' });
  }

  async #verifyChunk(
    segment: SegmentFooter,
    rowGroup: number,
    column: number,
    firstRow: number,
  ): Promise<void> {
    const { offset, bytes: length } = segment.footer.rowGroups[rowGroup]!.chunks[column]!;
    const { name } = segment.footer.columns[column]!;
    // Answers take positions from the manifest's runs. Only other tools read this column.
    const more = { rowGroup, column: name, costs: column === 0 ? 'nothing' : 'rowGroup' } as const;
    const bytes = await this.file.read(offset, length);
    if (bytes.length !== length) {
      const reason = `the file ends within column "${name}" of row group ${rowGroup}`;
      this.#found(offset + bytes.length, reason, more);
      return;
    }
    let decoded: Column;
    try {
      const chunk = storedChunk(segment, { rowGroup, column }, this.file.path);
      decoded = decodeStoredChunk(bytes, chunk, segment.decompress);
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      this.#found(error.offset ?? offset, error.message, more);
      return;
    }
    if (column > 0 || hasPositions(decoded, this.entry, firstRow)) return;
    const reason = `the positions of row group ${rowGroup} differ from the runs in the manifest`;
    this.#found(offset, reason, { ...more, costs: 'rowGroup' });
  }

  async #verifyFilter(filter: StoredFilter): Promise<void> {
    const { kind, place } = filter;
    const column = this.schema.fields[place.field]!.name;
    const rowGroup = kind === 'sketches' ? null : place.rowGroup;
    const reason = reasonOfFilter[kind].replace('%', () => column);
    for (const { offset: at, bytes, checksumOffset: after } of piecesOf(
      filter,
      this.entry.rowGroupRows.length,
    )) {
      const offset = place.offset + at;
      const piece = { offset, bytes, checksumOffset: place.offset + after };
      if (!isWhole(await readPiece(this.file, piece), bytes))
        this.#found(offset, reason, { rowGroup, column });
    }
  }

  async #verifySummary(): Promise<void> {
    const { summaryBytes, footerOffset, rowGroupRows } = this.entry;
    if (summaryBytes === 0) return;
    const offset = footerOffset - summaryBytes;
    if (decodeSummary(await this.file.read(offset, summaryBytes), rowGroupRows.length) === null)
      this.#found(offset, 'the summary does not match its checksum: filters are not used');
  }
}

/** What can't be skipped where a filter is damaged. */
const reasonOfFilter = {
  grams: 'the gram filter of column "%" does not match its checksum: searches can\'t skip the row group',
  values: 'the value filter of column "%" does not match its checksum: filters can\'t skip the row group',
  sketches: 'the sketches of column "%" do not match their checksum: filters can\'t skip row groups by them',
} as const;

function hasPositions(column: Column, entry: SegmentEntry, firstRow: number): boolean {
  if (column.kind !== 'int64' || column.length > rowGroupRowsMax) return false;
  const expected = new BigInt64Array(column.length);
  fillCursors(entry.runs, firstRow, expected);
  return Buffer.compare(new Uint8Array(expected.buffer), new Uint8Array(column.values.buffer)) === 0;
}
