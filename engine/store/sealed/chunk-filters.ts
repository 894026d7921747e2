import type { PlainColumn } from '../../columns/column.js';
import { heap, type Arena } from '../../memory/arena.js';
import type { Field } from '../../terms/schema.js';
import { bloomBitsOfValue } from '../../parquet/bloom-filter.js';
import { buildGramFilter, gramFillUsual, type GramFilter } from './gram-filter.js';
import { buildValueFilter, noValues, type ValueFilter } from './value-filter.js';

/** The filters of a column in a row group. */
export interface ChunkFilters {
  readonly grams: GramFilter | null;
  readonly values: ValueFilter | null;
}

/** How large filters are. Larger ones let fewer row groups pass that have no match. */
export interface FilterSizes {
  /** Bits of a Bloom filter for each distinct value. */
  readonly bloomBits: number;
  /** The largest share of a gram filter's bits to be set. */
  readonly gramFill: number;
}

/** The sizes of a segment's filters. */
export const segmentFilterSizes: FilterSizes = { bloomBits: bloomBitsOfValue, gramFill: gramFillUsual };

export const noChunkFilters: ChunkFilters = { grams: null, values: null };

/**
 * Builds the filters that a field asks for.
 *
 * @param present the column's values, without nulls and without a dictionary
 * @param rows number of rows, including nulls
 * @param arena allocates memory that is not needed afterwards
 */
export function filtersOfValues(
  present: PlainColumn,
  rows: number,
  field: Field,
  { bloomBits, gramFill }: FilterSizes,
  arena: Arena = heap,
): ChunkFilters {
  if (field.type !== 'string' && field.type !== 'int') return noChunkFilters;
  if (present.length === 0 && rows > 0) return { grams: null, values: noValues };
  return {
    grams: present.kind === 'bytes' ? buildGramFilter(present, field.index, gramFill, arena) : null,
    values: buildValueFilter(present, field.index, bloomBits),
  };
}
