import { assert } from '../../core/errors.js';
import type { PlainColumn } from '../../columns/column.js';
import { columnInPlace, gatherColumn, gatheredBytesMax, type RowSlices } from '../../columns/take.js';
import { rowGroupRowsMax } from '../../core/limits.js';
import { encodeChunk, type EncodedChunk } from '../../parquet/chunk-encoder.js';
import type { Compress } from '../../parquet/compression.js';
import type { Arena } from '../../core/arena.js';
import { encodeSpaceBytes, withEncodeSpace } from '../../parquet/column-space.js';
import { presentValues } from '../../parquet/value-encoder.js';
import { typeFacts, type Field, type Schema } from '../../core/schema.js';
import { filtersOfValues, noChunkFilters, segmentFilterSizes, type ChunkFilters } from './chunk-filters.js';
import type { RowGroupFilters } from './filter-writer.js';
import type { GramFilter } from './gram-filter.js';
import type { ValueFilter } from './value-filter.js';

/** An encoded row group without its `_cursor` chunk. It does not depend on its place in the file. */
export interface EncodedRowGroup extends RowGroupFilters {
  readonly rows: number;
  /** One chunk for each field. */
  readonly chunks: readonly EncodedChunk[];
}

/**
 * Encodes 1 to `rowGroupRowsMax` rows, with their filters. A column that is not contiguous in the kernels' memory is gathered where it is
 * encoded. `output` allocates the chunks.
 */
export function encodeRowGroup(
  schema: Schema,
  slices: RowSlices,
  compress: Compress,
  output: Arena,
): EncodedRowGroup {
  const { rows } = slices;
  assert(rows >= 1 && rows <= rowGroupRowsMax, `a row group has 1 to ${rowGroupRowsMax} rows, not ${rows}`);
  const gramFilters: { field: number; filter: GramFilter }[] = [];
  const valueFilters: (ValueFilter | null)[] = [];
  const chunks = schema.fields.map((field, i) =>
    withEncodeSpace(gatheredBytesMax(slices, i, field.type), rows, output, (space) => {
      const column = columnInPlace(slices, i) ?? gatherColumn(slices, i, schema, space.take);
      assertKind(column, field);
      const chunk = encodeChunk(column, typeFacts[field.type].parquet.encoding, true, compress, space);
      const filters = filtersOf(column, chunk, field, space.reusePage);
      if (filters.grams !== null) gramFilters.push({ field: i, filter: filters.grams });
      valueFilters.push(filters.values);
      return chunk;
    }),
  );
  return { rows, chunks, gramFilters, valueFilters };
}

/** Upper bound on the kernel memory for encoding the rows of slices. */
export function encodingBytesMax(schema: Schema, slices: RowSlices): number {
  const sizes = schema.fields.map(({ type }, i) =>
    encodeSpaceBytes(gatheredBytesMax(slices, i, type), slices.rows),
  );
  return Math.max(...sizes);
}

/** The filters of a column. A dictionary-encoded chunk needs none, because its dictionary lists all values. */
function filtersOf(column: PlainColumn, chunk: EncodedChunk, field: Field, arena: Arena): ChunkFilters {
  if (chunk.dictionaryPageBytes > 0) return noChunkFilters;
  return filtersOfValues(presentValues(column), column.length, field, segmentFilterSizes, arena);
}

function assertKind({ kind }: PlainColumn, field: Field): void {
  const expected = typeFacts[field.type].column;
  assert(kind === expected, `column "${field.name}" is ${kind}, expected ${expected}`);
}
