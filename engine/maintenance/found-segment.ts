import { crc32 } from 'node:zlib';
import { DamageError, LogstrataError } from '../terms/errors.js';
import { metadataBytesMax } from '../terms/limits.js';
import { readFooter } from '../parquet/footer-reader.js';
import { FormatError, magic, tailBytes } from '../parquet/format.js';
import { placementField, type Schema } from '../terms/schema.js';
import type { Directory, ReadableFile } from '../store/disk/directory.js';
import { filterBytes, noFilters } from '../store/sealed/segment-filters.js';
import type { SegmentEntry } from '../store/manifest/manifest.js';
import { isUnsupported, writtenByAnother } from '../store/disk/format-version.js';
import { hasMagic, readBytes, withFile } from '../store/sealed/segment-file.js';
import { readHeader } from '../store/sealed/segment-header.js';
import { readMetadata } from '../store/sealed/segment-metadata.js';
import { timeBoundsOf } from '../store/sealed/sealed-segment-writer.js';

/** What a segment file says of itself, if no manifest lists it. */
export interface FoundSegment {
  /** If only the header was readable, the runs may not cover all rows. */
  readonly entry: SegmentEntry;
  readonly schema: Schema;
}

/**
 * Reads a segment's manifest entry from its footer, or if that is damaged, from its header. Facts that only a manifest knows are missing:
 * what the segment replaced, and what retention has removed of it. Throws `DamageError` if neither can be read.
 *
 * @param file path relative to the agent's folder
 */
export function readFoundSegment(directory: Directory, agent: string, file: string): Promise<FoundSegment> {
  return withFile(directory, `${agent}/${file}`, async (open) => {
    try {
      return await describe(open, file);
    } catch (error) {
      if (!(error instanceof FormatError) && !(error instanceof LogstrataError)) throw error;
      if (isUnsupported(error)) throw writtenByAnother(open.path, open.path, error);
      if (error instanceof LogstrataError && error.code !== 'damaged') throw error;
      throw new DamageError(`neither its header nor its footer describes it: ${error.message}`, {
        path: open.path,
        cause: error,
      });
    }
  });
}

async function describe(open: ReadableFile, file: string): Promise<FoundSegment> {
  const header = await readHeader(open);
  if (header === null) return describeByFooter(file, await footerAtEnd(open));
  const { facts, schema } = header;
  const { footerOffset, footerBytes, footerChecksum } = facts;
  const stored = await open.read(footerOffset, footerBytes);
  if (crc32(stored) === footerChecksum) return describeByFooter(file, { stored, footerOffset });
  return { entry: { ...facts, file, replaces: [] }, schema };
}

interface StoredFooter {
  readonly footerOffset: number;
  /** The footer's Thrift structure, its length and the magic number. */
  readonly stored: Uint8Array;
}

async function footerAtEnd(open: ReadableFile): Promise<StoredFooter> {
  const bytes = await open.size();
  const tail = await readBytes(open, Math.max(0, bytes - tailBytes), tailBytes);
  if (!hasMagic(tail.subarray(tailBytes - magic.length)))
    throw new DamageError('it does not end with "PAR1"', {});
  const structureBytes = new DataView(tail.buffer, tail.byteOffset, tailBytes).getUint32(0, true);
  const footerBytes = structureBytes + tailBytes;
  if (footerBytes > Math.min(bytes, metadataBytesMax))
    throw new DamageError(`it claims a footer of ${footerBytes} bytes`, {});
  const footerOffset = bytes - footerBytes;
  return { footerOffset, stored: await readBytes(open, footerOffset, footerBytes) };
}

function describeByFooter(file: string, { footerOffset, stored }: StoredFooter): FoundSegment {
  const footer = readFooter(stored.subarray(0, stored.length - tailBytes));
  const metadata = readMetadata(footer.keyValues);
  const { schema, schemaVersion, runs, gramFilters, headerBytes, summaryBytes } = metadata;
  const rowGroups = footer.rowGroups.length;
  const placement = placementField(schema);
  const bounds =
    placement < 0 ? [] : footer.rowGroups.map((group) => group.chunks[placement + 1]?.bounds ?? null);
  const entry: SegmentEntry = {
    file,
    bytes: footerOffset + stored.length,
    rows: footer.rows,
    rowGroupRows: footer.rowGroups.map(({ rows }) => rows),
    runs,
    ...timeBoundsOf(bounds),
    footerOffset,
    footerBytes: stored.length,
    footerChecksum: crc32(stored),
    schemaVersion,
    codec: footer.codec,
    gramFilterBytes: filterBytes({ ...noFilters, gramFilters }, rowGroups),
    valueFilterBytes: filterBytes({ ...metadata, gramFilters: [] }, rowGroups),
    summaryBytes,
    replaces: [],
    headerBytes,
  };
  assertCovered(entry);
  return { entry, schema };
}

/** Asserts that the runs ascend and cover every row once. Throws `damaged`. */
function assertCovered(entry: SegmentEntry): void {
  let row = 0;
  let before: SegmentEntry['runs'][number] | undefined;
  for (const run of entry.runs) {
    const ascends =
      before === undefined ||
      run.partition > before.partition ||
      (run.partition === before.partition && run.firstOrdinal >= before.firstOrdinal + before.rows);
    if (run.firstRow !== row || run.rows < 1 || !ascends)
      throw new DamageError('its runs do not follow one another', {});
    row += run.rows;
    before = run;
  }
  const groupRows = entry.rowGroupRows.reduce((sum, rows) => sum + rows, 0);
  if (row !== entry.rows || row === 0 || groupRows !== row)
    throw new DamageError(`its runs have ${row} rows, its row groups ${groupRows} of ${entry.rows}`, {});
}
