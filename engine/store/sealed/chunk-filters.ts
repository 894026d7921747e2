import type { BytesColumn, PlainColumn } from '../../columns/column.js';
import { heap, type Arena } from '../../core/arena.js';
import { typeFacts, type Field } from '../../core/schema.js';
import { bloomBitsOfValue } from '../../parquet/bloom-filter.js';
import { buildGramFilter, gramSizeUsual, type GramFilter, type GramFilterSize } from './gram-filter.js';
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
  readonly grams: GramFilterSize;
}

/** The sizes of a segment's filters. */
export const segmentFilterSizes: FilterSizes = { bloomBits: bloomBitsOfValue, grams: gramSizeUsual };

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
  sizes: FilterSizes,
  arena: Arena = heap,
): ChunkFilters {
  if (!typeFacts[field.type].hasFilters) return noChunkFilters;
  if (present.length === 0 && rows > 0) return { grams: null, values: noValues };
  const isBytes = present.kind === 'bytes';
  const grams = isBytes ? buildGramFilter(present, field.index, sizes.grams, arena) : null;
  const isSearched = grams !== null && field.index !== true && isBytes && areTexts(present);
  return { grams, values: buildValueFilter(present, field.index, isSearched ? 0 : sizes.bloomBits) };
}

/** Strings with at least this many blanks on average are texts. */
const textBlanksMin = 2;
/** Number of strings, spread over the column, in which blanks are counted. */
const sampleRows = 1024;

/**
 * Whether strings are texts, which are searched for words. Their gram filter also rules out most row groups that a sketch lets pass, so they
 * need no Bloom filter, which would take twice the bytes of the sketch.
 */
function areTexts({ bytes, offsets, length }: BytesColumn): boolean {
  const step = Math.ceil(length / sampleRows);
  let blanks = 0;
  let rows = 0;
  for (let row = 0; row < length; row += step, rows++)
    for (let at = offsets[row]!; at < offsets[row + 1]!; at++) if (bytes[at] === 0x20) blanks++;
  return blanks >= textBlanksMin * rows;
}
