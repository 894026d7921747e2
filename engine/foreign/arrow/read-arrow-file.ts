import { foreignHashedBuffersMax } from '../../terms/limits.js';
import type { ForeignChunk, ForeignFile, ForeignPlace } from '../foreign-file.js';
import { contentHash } from '../source/content-hash.js';
import { withForeignSource, type ForeignSource } from '../source/foreign-source.js';
import { arrowColumnOf } from './arrow-column.js';
import { arrowIndexOf, type ArrowBatch, type ArrowIndex } from './arrow-index.js';
import { fieldPlaces, placeBytes, type FieldPlace } from './buffer-plan.js';

/** Of each buffer, the hash of a file has so many bytes. */
const hashedBytes = 256;

/**
 * Describes an Arrow file or stream, whose record batches are its row groups: reads the footer and the headers of batches, or all headers
 * of a stream. Throws `DamageError` with the path and offset for what is malformed, `unsupported`, `not_found` and `io`.
 */
export async function readArrowFile(place: ForeignPlace): Promise<ForeignFile> {
  const index = await arrowIndexOf(place);
  return await withForeignSource(place, async (source) => {
    const columns = index.fields.map(arrowColumnOf);
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
  // Dictionaries, runs and unions have nulls inside, and what is no finite number becomes null.
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
 * What makes a file the same as another: the headers, and the first bytes of its buffers. Headers say nothing of the values, so that those
 * of two days may be the same.
 */
async function hashedContent({ headers, batches }: ArrowIndex, source: ForeignSource): Promise<Uint8Array> {
  const parts = [...headers];
  let rest = foreignHashedBuffersMax;
  for (const { bodyAt, buffers } of batches)
    for (let i = 0; i < buffers.length && rest > 0; i += 2, rest--)
      parts.push(await source.read(bodyAt + buffers[i]!, Math.min(hashedBytes, buffers[i + 1]!)));
  return Buffer.concat(parts);
}
