import { DamageError, isLogstrataError } from '../../terms/errors.js';
import type { Column } from '../../columns/column.js';
import { rowGroupRowsMax } from '../../terms/limits.js';
import { magic } from '../../parquet/format.js';
import type { Schema } from '../../terms/schema.js';
import { fillCursors } from './cursor-column.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import { openSegment } from '../disk/removal-name.js';
import { piecesOf, type StoredFilter } from './filter-piece.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { decodeCheckedChunk, hasMagic, readSegmentFooter, type SegmentFooter } from './segment-file.js';
import { describesSegment, readHeader } from './segment-header.js';
import { decodeSummary, filterParts } from './segment-filters.js';
import { hasChecksum } from './value-filter.js';

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
 * runs. Yields each damage, in bounded memory. Throws only failures of the file system.
 */
export async function* verifySegment(
  directory: Directory,
  path: string,
  entry: SegmentEntry,
  schema: Schema,
): AsyncGenerator<SegmentDamage> {
  let file: ReadableFile;
  try {
    file = await openSegment(directory, path);
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    yield segmentDamage(0, 'the file is not there');
    return;
  }
  try {
    yield* verifyOpenFile(file, entry, schema);
  } finally {
    await file.close();
  }
}

function segmentDamage(offset: number, reason: string): SegmentDamage {
  return { offset, rowGroup: null, column: null, reason, costs: 'segment' };
}

async function* verifyOpenFile(
  file: ReadableFile,
  entry: SegmentEntry,
  schema: Schema,
): AsyncGenerator<SegmentDamage> {
  const bytes = await file.size();
  if (bytes > entry.bytes) {
    const reason = `the file has ${bytes} bytes, expected ${entry.bytes}`;
    yield { offset: entry.bytes, rowGroup: null, column: null, reason, costs: 'nothing' };
  }
  if (!hasMagic(await file.read(0, magic.length))) {
    const reason = 'the file does not begin with "PAR1", so other tools cannot open it';
    yield { offset: 0, rowGroup: null, column: null, reason, costs: 'nothing' };
  }
  yield* verifyHeader(file, entry);
  let segment: SegmentFooter;
  try {
    segment = await readSegmentFooter(file, entry, schema);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    yield segmentDamage(error.offset ?? entry.footerOffset, error.message);
    return;
  }
  yield* verifyTiling(segment, entry);
  const { gramFilters, valueFilters, sketches } = segment.metadata;
  const verifyFilter = (filter: StoredFilter): AsyncGenerator<SegmentDamage> =>
    verifyPieces(file, filter, entry.rowGroupRows.length, schema);
  let firstRow = 0;
  for (const [rowGroup, { rows, chunks }] of segment.footer.rowGroups.entries()) {
    for (let column = 0; column < chunks.length; column++) {
      yield* verifyChunk(file, segment, entry, rowGroup, column, firstRow);
    }
    for (const place of gramFilters)
      if (place.rowGroup === rowGroup) yield* verifyFilter({ kind: 'grams', place });
    for (const place of valueFilters)
      if (place.rowGroup === rowGroup) yield* verifyFilter({ kind: 'values', place });
    firstRow += rows;
  }
  for (const place of sketches) yield* verifyFilter({ kind: 'sketches', place });
  yield* verifySummary(file, entry);
}

async function* verifyHeader(file: ReadableFile, entry: SegmentEntry): AsyncGenerator<SegmentDamage> {
  const header = await readHeader(file);
  if (header !== null && describesSegment(header, entry)) return;
  const reason =
    header === null
      ? 'the header does not match its checksum: only the footer still describes the segment'
      : 'the header belongs to another segment';
  yield { offset: magic.length, rowGroup: null, column: null, reason, costs: 'nothing' };
}

/** Verifies that the parts of the file, each of which has a checksum, neither overlap nor leave gaps. */
function* verifyTiling(segment: SegmentFooter, entry: SegmentEntry): Generator<SegmentDamage> {
  const places = segment.footer.rowGroups.flatMap((group) =>
    group.chunks.map(({ offset, bytes }) => ({ offset, bytes })),
  );
  places.push(...filterParts(segment.metadata, segment.footer.rowGroups.length));
  places.sort((a, b) => a.offset - b.offset);
  places.push({
    offset: entry.footerOffset - entry.summaryBytes,
    bytes: entry.summaryBytes + entry.footerBytes,
  });
  let end = magic.length + entry.headerBytes;
  for (const place of places) {
    if (place.offset !== end) {
      yield segmentDamage(
        end,
        `the parts of the file are not adjacent: one ends at ${end}, the next begins at ${place.offset}`,
      );
      return;
    }
    end += place.bytes;
  }
  if (end !== entry.bytes)
    yield segmentDamage(end, `the file's parts end at ${end}, expected ${entry.bytes}`);
}

async function* verifyChunk(
  file: ReadableFile,
  segment: SegmentFooter,
  entry: SegmentEntry,
  rowGroup: number,
  column: number,
  firstRow: number,
): AsyncGenerator<SegmentDamage> {
  const { offset, bytes: length } = segment.footer.rowGroups[rowGroup]!.chunks[column]!;
  const { name } = segment.footer.columns[column]!;
  // Answers take positions from the manifest's runs. Only other tools read this column.
  const costs = column === 0 ? 'nothing' : 'rowGroup';
  const found = (reason: string, at = offset): SegmentDamage => {
    return { offset: at, rowGroup, column: name, reason, costs };
  };
  const bytes = await file.read(offset, length);
  if (bytes.length !== length) {
    yield found(`the file ends within column "${name}" of row group ${rowGroup}`, offset + bytes.length);
    return;
  }
  let decoded: Column;
  try {
    decoded = decodeCheckedChunk(bytes, segment, { rowGroup, column }, file.path);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    yield found(error.message, error.offset);
    return;
  }
  if (column === 0 && !hasPositions(decoded, entry, firstRow)) {
    const reason = `the positions of row group ${rowGroup} differ from the runs in the manifest`;
    yield { ...found(reason), costs: 'rowGroup' };
  }
}

function hasPositions(column: Column, entry: SegmentEntry, firstRow: number): boolean {
  if (column.kind !== 'int64' || column.length > rowGroupRowsMax) return false;
  const expected = new BigInt64Array(column.length);
  fillCursors(entry.runs, firstRow, expected);
  return Buffer.compare(new Uint8Array(expected.buffer), new Uint8Array(column.values.buffer)) === 0;
}

/** What can't be skipped where a filter is damaged. */
const costsOfFilter = {
  grams: 'the gram filter of column "%" does not match its checksum: searches can\'t skip the row group',
  values: 'the value filter of column "%" does not match its checksum: filters can\'t skip the row group',
  sketches: 'the sketches of column "%" do not match their checksum: filters can\'t skip row groups by them',
} as const;

async function* verifyPieces(
  file: ReadableFile,
  filter: StoredFilter,
  rowGroups: number,
  schema: Schema,
): AsyncGenerator<SegmentDamage> {
  const { kind, place } = filter;
  const column = schema.fields[place.field]!.name;
  const rowGroup = kind === 'sketches' ? null : place.rowGroup;
  const reason = costsOfFilter[kind].replace('%', () => column);
  for (const { offset: at, bytes, checksumOffset } of piecesOf(filter, rowGroups)) {
    const offset = place.offset + at;
    const piece = await file.read(offset, bytes);
    if (piece.length < bytes || !hasChecksum(piece, await file.read(place.offset + checksumOffset, 4)))
      yield { offset, rowGroup, column, reason, costs: 'nothing' };
  }
}

async function* verifySummary(file: ReadableFile, entry: SegmentEntry): AsyncGenerator<SegmentDamage> {
  if (entry.summaryBytes === 0) return;
  const offset = entry.footerOffset - entry.summaryBytes;
  const stored = await file.read(offset, entry.summaryBytes);
  if (decodeSummary(stored, entry.rowGroupRows.length) !== null) return;
  const reason = 'the summary does not match its checksum: filters are not used';
  yield { offset, rowGroup: null, column: null, reason, costs: 'nothing' };
}
