import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { assert, DamageError } from '../../core/errors.js';
import { headerBytesMax, segmentHeaderRunsMax } from '../../core/limits.js';
import { magic } from '../../parquet/format.js';
import type { Schema } from '../../core/schema.js';
import { asObject, countField, countsField, parseJsonObject } from '../disk/checked-json.js';
import type { ReadableFile } from '../disk/directory.js';
import { flatRuns, readSchema, readSegmentFacts } from '../manifest/manifest-format.js';
import type { SegmentFacts } from '../manifest/manifest.js';
import { segmentFormat } from './segment-metadata.js';

/**
 * The header of a sealed segment. It follows the first magic number, in a place that no Parquet reader reads, and repeats what the manifest
 * says of the segment, its schema, and the offsets of its row groups. It is as far from the footer as possible, so that damage at one end
 * of the file leaves the other.
 *
 * Layout: `LSEG`; the length of the header and of its record (uint32, little-endian); the record, which is deflated JSON; zeros; the crc32
 * of all that. The length is fixed when the file is created; the content is written when the file is finished.
 */
export interface SegmentHeader {
  /** As in the manifest, except that the last runs are left out if there are too many. */
  readonly facts: SegmentFacts;
  readonly schema: Schema;
  /** Offset in the file of the first chunk of each row group. */
  readonly rowGroupOffsets: readonly number[];
  /** `rowGroupChecksum` of each row group. */
  readonly rowGroupChecksums: readonly number[];
}

const headerMagic = Uint8Array.of(0x4c, 0x53, 0x45, 0x47);
const fixedBytes = 12;
const checksumBytes = 4;

/**
 * Space for the record without the schema. It takes some 400 bytes for one row group and a day's hours, 900 for 64 row groups; each late
 * row adds 2 to 8.
 */
const roomBytes = 1536;

/**
 * The same for a segment of one row group, where the number of runs is known: 236 bytes if the numbers have as many digits as possible, and
 * at most 11 per run.
 */
const singleGroupRoomBytes = 288;
const runRoomBytes = 11;

/** The first row group begins at a multiple of this. */
const alignmentBytes = 512;

/**
 * Length of the header of a segment with this schema. For a segment of a single row group, of at most `singleGroupRuns` runs, it is as short as
 * possible, because agents with a few records a day have a file for each day.
 */
export function headerBytesOf(schema: Schema, singleGroupRuns: number | null = null): number {
  const known = singleGroupRuns === null ? roomBytes : singleGroupRoomBytes + singleGroupRuns * runRoomBytes;
  const room = Math.min(roomBytes, known);
  const wanted = magic.length + fixedBytes + deflate({ schema }).length + room + checksumBytes;
  return Math.ceil(wanted / alignmentBytes) * alignmentBytes - magic.length;
}

/** The crc32 of the concatenated crc32s (little-endian) of a row group's field chunks, in the order of the schema. */
export function rowGroupChecksum(chunkChecksums: readonly number[]): number {
  const bytes = new DataView(new ArrayBuffer(4 * chunkChecksums.length));
  for (const [i, checksum] of chunkChecksums.entries()) bytes.setUint32(4 * i, checksum, true);
  return crc32(new Uint8Array(bytes.buffer));
}

function deflate(record: object): Uint8Array {
  return deflateRawSync(JSON.stringify(record), { level: 9 });
}

/** Encodes a header in `headerBytes` bytes, as returned by `headerBytesOf` for its schema. Leaves out the last runs if not all fit. */
export function encodeHeader(header: SegmentHeader, headerBytes: number): Uint8Array {
  const bytes = new Uint8Array(headerBytes);
  const record = fittingRecord(header, bytes.length - fixedBytes - checksumBytes);
  const view = new DataView(bytes.buffer);
  bytes.set(headerMagic);
  view.setUint32(4, bytes.length, true);
  view.setUint32(8, record.length, true);
  bytes.set(record, fixedBytes);
  const end = bytes.length - checksumBytes;
  view.setUint32(end, crc32(bytes.subarray(0, end)), true);
  return bytes;
}

/** The record with as many runs as fit into `bytesMax`. */
function fittingRecord({ facts, ...rest }: SegmentHeader, bytesMax: number): Uint8Array {
  const withRuns = (count: number): Uint8Array => {
    const runs = flatRuns(facts.runs.slice(0, count));
    return deflate({ format: segmentFormat, ...rest, ...facts, runs });
  };
  let count = Math.min(facts.runs.length, segmentHeaderRunsMax);
  let record = withRuns(count);
  while (record.length > bytesMax) {
    // One run always fits, because `roomBytes` exceeds the rest of the record even with all row groups.
    assert(count > 1, 'a header has room for a run');
    count = Math.max(1, Math.floor((count * bytesMax) / record.length));
    record = withRuns(count);
  }
  return record;
}

/** Reads the header of a segment's file; null if there is none or if it is damaged. */
export async function readHeader(file: ReadableFile): Promise<SegmentHeader | null> {
  const head = await file.read(magic.length, fixedBytes);
  if (head.length < fixedBytes || headerMagic.some((byte, i) => byte !== head[i])) return null;
  const bytes = uint32At(head, 4);
  const recordEnd = fixedBytes + uint32At(head, 8);
  const end = bytes - checksumBytes;
  if (bytes > headerBytesMax || recordEnd > end) return null;
  const stored = await file.read(magic.length, bytes);
  if (stored.length < bytes || crc32(stored.subarray(0, end)) !== uint32At(stored, end)) return null;
  try {
    const header = readRecord(inflateRawSync(stored.subarray(fixedBytes, recordEnd)).toString());
    return header.facts.headerBytes === bytes ? header : null;
  } catch (error) {
    // A record with a valid checksum that cannot be decoded has a newer format. The footer will tell.
    if (error instanceof DamageError) return null;
    throw error;
  }
}

/** Whether a header belongs to the segment. */
export function describesSegment({ facts }: SegmentHeader, entry: SegmentFacts): boolean {
  return facts.footerOffset === entry.footerOffset && facts.footerChecksum === entry.footerChecksum;
}

function uint32At(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
}

function readRecord(text: string): SegmentHeader {
  const record = parseJsonObject(text, 'the header');
  const format = countField(record, 'format');
  if (format !== segmentFormat)
    throw new DamageError(`the segment's format is ${format}, expected ${segmentFormat}`, {});
  const facts = readSegmentFacts(record);
  const schema = readSchema(asObject(record['schema'], 'schema'));
  const rowGroupOffsets = countsField(record, 'rowGroupOffsets');
  const rowGroupChecksums = countsField(record, 'rowGroupChecksums');
  const groups = facts.rowGroupRows.length;
  if (rowGroupOffsets.length !== groups || rowGroupChecksums.length !== groups)
    throw new DamageError('the header does not list all row groups', {});
  return { facts, schema, rowGroupOffsets, rowGroupChecksums };
}
