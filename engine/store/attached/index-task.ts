import {
  arraysOf,
  columnBytes,
  type Column,
  type DictionaryColumn,
  type PlainColumn,
} from '../../columns/column.js';
import { copyColumn } from '../../columns/copy-column.js';
import { entriesInUse, plainColumn } from '../../columns/take.js';
import type { ForeignRead } from '../../foreign/foreign-file.js';
import { countRange } from '../../kernels/bitmap.js';
import { bufferBytes } from '../../memory/allocator.js';
import { RangeArena } from '../../memory/arena.js';
import { withKeptScratch } from '../../memory/scratch.js';
import { presentValues } from '../../parquet/present-values.js';
import { boundsOf, type Bounds } from '../../parquet/statistics.js';
import { distinctValuesMax, doValuesRepeat } from '../../parquet/value-encoder.js';
import type { Field } from '../../terms/schema.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { filtersOfValues, noChunkFilters, type ChunkFilters } from '../sealed/chunk-filters.js';
import { buildValueFilter } from '../sealed/value-filter.js';
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
  return withStringsHeld(presentValues(plainColumn(column)), (present) => {
    const repeats = present.length > 0 && field.index === undefined && doValuesRepeat(present);
    return {
      nullCount: column.length - present.length,
      bounds: boundsOf(present),
      filters: repeats
        ? filtersOfRepeated(column, present, field)
        : filtersOfValues(present, column.length, field),
    };
  });
}

/** What kernels need beside strings and a folded copy of them: bitmaps of grams, and a table of the distinct ones. */
const callBytesMax = 8 * 1024 * 1024;

/** Has `use` work with strings that lie in the kernels' memory, where there is room: else each of the calls copies them there. */
function withStringsHeld<T>(column: PlainColumn, use: (held: PlainColumn) => T): T {
  if (column.kind !== 'bytes') return use(column);
  const sizeBytes = arraysOf(column).reduce((sum, { byteLength }) => sum + bufferBytes(byteLength), 0);
  return withKeptScratch(sizeBytes, column.bytes.length + callBytesMax, (kept) =>
    use(kept === null ? column : copyColumn(column, new RangeArena(kept).take)),
  );
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
function filtersOfRepeated(column: Column, present: PlainColumn, { type, index }: Field): ChunkFilters {
  if (column.kind === 'dictionary' || (type !== 'string' && type !== 'int')) return noChunkFilters;
  return { grams: null, values: buildValueFilter(present, index) };
}

/** Has a column of a row group indexed. */
export const indexTask: Task<IndexJob, ColumnIndex> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};
