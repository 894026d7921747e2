import { foreignHashedBuffersMax } from '../../terms/limits.js';
import { withDistinctNames } from '../distinct-names.js';
import type { ForeignChunk, ForeignFile, ForeignPlace } from '../foreign-file.js';
import { contentHash } from '../source/content-hash.js';
import { withForeignSource, type ForeignSource } from '../source/foreign-source.js';
import { arrowColumnOf } from './arrow-column.js';
import { arrowIndexOf, type ArrowBatch, type ArrowIndex } from './arrow-index.js';
import { fieldPlaces, placeBytes, type FieldPlace } from './buffer-plan.js';

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
