import {
  arraysOf,
  columnBytes,
  type Column,
  type DictionaryColumn,
  type PlainColumn,
} from '../../columns/column.js';
import { copyColumn } from '../../columns/convert-column.js';
import { entriesInUse, plainColumn } from '../../columns/take.js';
import type { ForeignRead } from '../../foreign/foreign-file.js';
import { countRange } from '../../kernels/bitmap.js';
import { bufferBytes } from '../../core/allocator.js';
import { RangeArena } from '../../core/arena.js';
import { withKeptScratch } from '../../core/scratch.js';
import { presentValues, distinctValuesMax, doValuesRepeat } from '../../parquet/value-encoder.js';
import { boundsOf, type Bounds } from '../../parquet/statistics.js';
import { typeFacts, type Field } from '../../core/schema.js';
import { taskIn, type Finished } from '../../workers/task.js';
import {
  filtersOfValues,
  noChunkFilters,
  type ChunkFilters,
  type FilterSizes,
} from '../sealed/chunk-filters.js';
import { gramSizeSmall } from '../sealed/gram-filter.js';
import { bloomBitsOfValue } from '../../parquet/bloom-filter.js';
import { buildValueFilter } from '../sealed/value-filter.js';
import { readAllSpans } from './span-placements.js';
import type { FileIdentity } from './attached-list.js';
import type { ValueChange } from './column-source.js';
import { assertSameFile } from './plan-file.js';

/** A column of a row group of an attached file that is to be indexed. */
export interface IndexJob {
  readonly read: ForeignRead;
  readonly attached: FileIdentity;
  readonly change: ValueChange;
  readonly field: Field;
  /** Whether the file has several spans, whose sketches rule out most of them before their Bloom filters are asked. */
  readonly hasSketches: boolean;
}

/** The index of a column in one span. */
export interface SpanIndex {
  readonly nullCount: number;
  /** Minimum and maximum; null if there are none, or if they are too long to keep. */
  readonly bounds: Bounds | null;
  readonly filters: ChunkFilters;
}

/** The index of a column in one row group. */
export interface ColumnIndex {
  readonly spans: readonly SpanIndex[];
  /** crc32 of the column chunk's bytes; null if unknown. */
  readonly checksum: number | null;
  /** Bytes of the decoded values. */
  readonly decodedBytes: number;
}

/** Reads a column and builds its filters. Throws `DamageError` for a file that has changed, is gone or is malformed. */
export async function work({
  read,
  attached,
  change,
  field,
  hasSketches,
}: IndexJob): Promise<Finished<ColumnIndex>> {
  await assertSameFile(read.path, read.format, attached);
  const { columns, checksum } = await readAllSpans(read, change);
  const decodedBytes = columns.reduce((sum, column) => sum + columnBytes(column), 0);
  const sizes: FilterSizes = {
    bloomBits: hasSketches ? sketchedBloomBits : bloomBitsOfValue,
    grams: gramSizeSmall,
  };
  const spans = columns.map((column) => indexOf(column, field, sizes));
  return { result: { spans, checksum, decodedBytes }, transfer: [] };
}

/**
 * Bits of a Bloom filter for each distinct value where a sketch is asked first: 4 % of other values seem to be there, and 0.6 % in both. No other
 * program reads the filters of an index, so that they need not be as good alone as those of segments.
 */
const sketchedBloomBits = 7.5;

function indexOf(column: Column, field: Field, sizes: FilterSizes): SpanIndex {
  const ofDictionary =
    field.index === undefined && column.kind === 'dictionary' ? indexOfEntries(column) : null;
  if (ofDictionary !== null) return ofDictionary;
  return withStringsHeld(presentValues(plainColumn(column)), (present) => {
    const repeats = present.length > 0 && field.index === undefined && doValuesRepeat(present);
    return {
      nullCount: column.length - present.length,
      bounds: boundsOf(present),
      filters: repeats
        ? filtersOfRepeated(column, present, field, sizes)
        : filtersOfValues(present, column.length, field, sizes),
    };
  });
}

/** Memory that the kernels need besides the strings and a case-folded copy: bitmaps of grams, and a table of the distinct ones. */
const callBytesMax = 8 * 1024 * 1024;

/** Calls `use` with the strings in the kernels' memory, if there is room for them. Otherwise each kernel call copies them there. */
function withStringsHeld<T>(column: PlainColumn, use: (held: PlainColumn) => T): T {
  if (column.kind !== 'bytes') return use(column);
  const sizeBytes = arraysOf(column).reduce((sum, { byteLength }) => sum + bufferBytes(byteLength), 0);
  return withKeptScratch(sizeBytes, column.bytes.length + callBytesMax, (kept) =>
    use(kept === null ? column : copyColumn(column, new RangeArena(kept).take)),
  );
}

/**
 * Indexes a column by the entries of its dictionary, without reading the rows; null if the values repeat too little. As in our own
 * segments, a dictionary of repeating values tells which values a span has, so no filters are built.
 */
function indexOfEntries(column: DictionaryColumn): SpanIndex | null {
  const { length, validity } = column;
  const present = validity === null ? length : countRange(validity, 0, length);
  const used = entriesInUse(column);
  if (present === 0 || used.length > distinctValuesMax(present)) return null;
  return { nullCount: length - present, bounds: boundsOf(used), filters: noChunkFilters };
}

/**
 * Filters for values that repeat. Other programs also write repeating values without a dictionary. Such a column gets a filter of whole
 * values, which is small, and no gram filter, so its texts are searched.
 */
function filtersOfRepeated(
  column: Column,
  present: PlainColumn,
  { type, index }: Field,
  { bloomBits }: FilterSizes,
): ChunkFilters {
  if (column.kind === 'dictionary' || !typeFacts[type].hasFilters) return noChunkFilters;
  return { grams: null, values: buildValueFilter(present, index, bloomBits) };
}

/** Indexes a column of a row group on a thread. */
export const indexTask = taskIn(import.meta.url, { work }, true);
