import { codecNumber, FormatError } from '../parquet/format.js';
import {
  type DecodedSpans,
  type ForeignRead,
  wantedSpan,
  withErrorsNamed,
  withDistinctNames,
  type ForeignChunk,
  type ForeignFile,
} from './foreign-file.js';
import { JsonText } from './value-texts.js';
import { buildRows, buildSpans, type RowSource } from './span-columns.js';
import { arrowIndexOf, type ArrowBatch, type ArrowIndex } from './arrow-index.js';
import { BatchBuffers, ReadingTally, fieldPlaces, placeBytes, type FieldPlace } from './batch-buffers.js';
import { FieldReader } from './field-reader.js';
import { presenceOf } from './leaf-reader.js';
import { foreignHashedBuffersMax } from '../core/limits.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import { contentHash, withForeignSource, type ForeignSource } from './foreign-source.js';
import { arrowColumnOf } from './arrow-schema.js';

/**
 * Decodes a column of a record batch of an Arrow file or stream. The package apache-arrow would not do: it refuses a schema that
 * has a list view or run-end-encoded values anywhere, believes what the metadata claims, and needs whole buffers. Of uncompressed buffers it reads only what the wanted span
 * needs. Compressed ones are read as a whole, and other spans are returned too while they fit into memory. Blocks while it
 * reads: for worker threads. Throws `DamageError` with the path, offset, row group and column, `limit` where too much memory
 * is needed, `not_found` and `io`.
 */
export async function decodeArrow(read: ForeignRead): Promise<DecodedSpans> {
  return await withErrorsNamed(read, decode);
}

async function decode(read: ForeignRead): Promise<DecodedSpans> {
  const { column, columnIndex, rowGroup, rowGroupRows, chunk, rows: wantedRows } = read;
  const index = await arrowIndexOf(read);
  const batch = index.batches[rowGroup];
  if (batch === undefined || batch.offset !== chunk.offset || batch.rows !== rowGroupRows)
    throw new FormatError('the file has changed: its batches are different', chunk.offset);
  let place = fieldPlaces(index.fields, batch)[columnIndex];
  const outer: FieldPlace[] = [];
  for (const child of column.inner?.path ?? []) {
    if (place !== undefined) outer.push(place);
    place = place?.children[child];
  }
  if (place === undefined)
    throw new FormatError('the file has changed: its schema is different', chunk.offset);
  const tally = new ReadingTally();
  const buffers = await BatchBuffers.open(read, batch, tally);
  const wanted = wantedSpan(read);
  const isWhole = batch.codec !== codecNumber.none || wanted.to - wanted.from === rowGroupRows;
  const { from, to } = isWhole ? { from: 0, to: rowGroupRows } : wanted;
  const reader = await new FieldReader(read, index, rowGroup, tally).read({ place, buffers, from, to });
  const { leaf, text } = reader;
  // A part of a structure is missing where the structure is.
  const isThere = outer.map((each) => presenceOf({ place: each, buffers, from, to }));
  const isMissing = (at: number): boolean => isThere.some((is) => !is(at)) || reader.isMissing(at);
  if (column.values.kind !== 'json' && leaf === null)
    throw new FormatError('the file has changed: its schema is different', chunk.offset);
  const json = new JsonText();
  let row = wantedRows?.[0] ?? from;
  const rows: RowSource = {
    text,
    value: () => (isMissing(row++) ? null : leaf!(row - 1)),
    json: () => {
      if (isMissing(row++)) return null;
      reader.write(row - 1, json);
      return json.take();
    },
    skip: (count) => (row += count),
  };
  return {
    ...(isWhole && wantedRows === undefined ? buildSpans(read, rows) : buildRows(read, rows)),
    pages: null,
    bytesRead: tally.bytesRead,
    checksum: isWhole ? tally.checksum : null,
  };
}

/** Number of bytes of each buffer that go into the file's hash. */
const hashedBytes = 256;

/**
 * Describes an Arrow file or stream, whose record batches count as row groups. Reads the footer and the batch headers; of a
 * stream all headers. Throws `DamageError` with the path and offset for a malformed file, `unsupported`, `not_found` and
 * `io`.
 */
export async function readArrowFile(place: ForeignPlace): Promise<ForeignFile> {
  const index = await arrowIndexOf(place);
  return await withForeignSource(place, async (source) => {
    const columns = withDistinctNames(index.fields.map(arrowColumnOf));
    const rowGroups = index.batches.map((batch) => ({
      rows: batch.rows,
      chunks: fieldPlaces(index.fields, batch).map((field) => chunkOf(field, batch)),
    }));
    return {
      format: 'arrow',
      rows: rowGroups.reduce((sum, { rows }) => sum + rows, 0),
      footerHash: contentHash(await hashedContent(index, source)),
      ...(index.isOpen ? { isOpen: true } : {}),
      writtenBy: '',
      columns,
      rowGroups,
    };
  });
}

function chunkOf(place: FieldPlace, batch: ArrowBatch): ForeignChunk {
  const { type, nullCount } = place;
  // Dictionaries, runs and unions have nulls in their children, and floats that are not finite become null, so the stored
  // count is not ours.
  const isKnown =
    place.field.dictionary === null && !['null', 'float', 'union', 'run end encoded'].includes(type.kind);
  const bytes = placeBytes(place, batch);
  return {
    offset: batch.offset,
    bytes,
    codec: 0,
    uncompressedBytes: bytes,
    nullCount: type.kind === 'null' ? place.rows : isKnown ? nullCount : null,
    min: null,
    max: null,
    bloomFilter: null,
  };
}

/**
 * The bytes that identify a file: the headers, and the first bytes of buffers (of at most `foreignHashedBuffersMax`).
 * Headers alone do not depend on the values, so two days of logs could have equal ones.
 */
async function hashedContent({ headers, batches }: ArrowIndex, source: ForeignSource): Promise<Uint8Array> {
  const parts = [...headers];
  let rest = foreignHashedBuffersMax;
  for (const { bodyAt, buffers } of batches)
    for (let i = 0; i < buffers.length && rest > 0; i += 2, rest--)
      parts.push(await source.read(bodyAt + buffers[i]!, Math.min(hashedBytes, buffers[i + 1]!)));
  return Buffer.concat(parts);
}
