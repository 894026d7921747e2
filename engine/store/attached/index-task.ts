import { columnBytes, type Column, type DictionaryColumn, type PlainColumn } from '../../columns/column.js';
import { entriesInUse, plainColumn } from '../../columns/take.js';
import type { ForeignRead } from '../../foreign/foreign-file.js';
import { countRange } from '../../kernels/bitmap.js';
import { presentValues } from '../../parquet/present-values.js';
import { boundsOf, type Bounds } from '../../parquet/statistics.js';
import { distinctValues, distinctValuesMax } from '../../parquet/value-encoder.js';
import type { Field } from '../../terms/schema.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { filtersOfValues, noChunkFilters, type ChunkFilters } from '../sealed/chunk-filters.js';
import { readAllSpans } from './all-spans.js';
import type { FileIdentity } from './attached-file.js';
import type { ValueChange } from './column-source.js';
import { assertSameFile } from './same-file.js';

/** A column of a row group of an attached file, which is to be indexed. */
export interface IndexJob {
  readonly read: ForeignRead;
  readonly attached: FileIdentity;
  readonly change: ValueChange;
  readonly field: Field;
}

/** What the index has of a column in one span. */
export interface SpanIndex {
  readonly nullCount: number;
  /** Null where there are none, or they are too long to keep. */
  readonly bounds: Bounds | null;
  readonly filters: ChunkFilters;
}

/** What the index has of a column in one row group. */
export interface ColumnIndex {
  readonly spans: readonly SpanIndex[];
  /** crc32 of the chunk's bytes; null where it is not known. */
  readonly checksum: number | null;
  /** Of the decoded values. */
  readonly decodedBytes: number;
}

/** Reads a column and makes its filters. Throws `DamageError` for a file that has changed, is gone or is malformed. */
export async function work({ read, attached, change, field }: IndexJob): Promise<Finished<ColumnIndex>> {
  await assertSameFile(read.path, read.format, attached);
  const { columns, checksum } = await readAllSpans(read, change);
  const decodedBytes = columns.reduce((sum, column) => sum + columnBytes(column), 0);
  const spans = columns.map((column) => indexOf(column, field));
  return { result: { spans, checksum, decodedBytes }, transfer: [] };
}

function indexOf(column: Column, field: Field): SpanIndex {
  const ofDictionary =
    field.index === undefined && column.kind === 'dictionary' ? indexOfEntries(column) : null;
  if (ofDictionary !== null) return ofDictionary;
  const present = presentValues(plainColumn(column));
  const repeats = present.length > 0 && field.index === undefined && distinctValues(present) !== null;
  return {
    nullCount: column.length - present.length,
    bounds: boundsOf(present),
    filters: repeats
      ? filtersOfRepeated(column, present, field)
      : filtersOfValues(present, column.length, field),
  };
}

/**
 * What the entries of a dictionary alone tell, without a look at each row's value; null where they repeat too little for that. A dictionary
 * of values that repeat tells by itself what a span has, as in segments of ours, so that there are no filters.
 */
function indexOfEntries(column: DictionaryColumn): SpanIndex | null {
  const { length, validity } = column;
  const present = validity === null ? length : countRange(validity, 0, length);
  const used = entriesInUse(column);
  if (present === 0 || used.length > distinctValuesMax(present)) return null;
  return { nullCount: length - present, bounds: boundsOf(used), filters: noChunkFilters };
}

/**
 * Other programs write values that repeat without a dictionary, too: then whole values have a filter, which is small, and texts are searched.
 * Entries that are there twice are more than their values.
 */
function filtersOfRepeated(column: Column, present: PlainColumn, field: Field): ChunkFilters {
  if (column.kind === 'dictionary') return noChunkFilters;
  return { ...filtersOfValues(present, column.length, field), grams: null };
}

/** Has a column of a row group indexed. */
export const indexTask: Task<IndexJob, ColumnIndex> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};
