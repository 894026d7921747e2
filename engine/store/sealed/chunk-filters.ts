import type { PlainColumn } from '../../columns/column.js';
import type { Field } from '../../terms/schema.js';
import { buildGramFilter, type GramFilter } from './gram-filter.js';
import { buildValueFilter, noValues, type ValueFilter } from './value-filter.js';

/** The filters of a column in a row group. */
export interface ChunkFilters {
  readonly grams: GramFilter | null;
  readonly values: ValueFilter | null;
}

export const noChunkFilters: ChunkFilters = { grams: null, values: null };

/**
 * Builds the filters that a field asks for.
 *
 * @param present the column's values, without nulls and without a dictionary
 * @param rows number of rows, including nulls
 * @param bloomBits bits of the Bloom filter for each distinct value
 */
export function filtersOfValues(
  present: PlainColumn,
  rows: number,
  field: Field,
  bloomBits?: number,
): ChunkFilters {
  if (field.type !== 'string' && field.type !== 'int') return noChunkFilters;
  if (present.length === 0 && rows > 0) return { grams: null, values: noValues };
  return {
    grams: present.kind === 'bytes' ? buildGramFilter(present, field.index) : null,
    values: buildValueFilter(present, field.index, bloomBits),
  };
}
