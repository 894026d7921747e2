import { assert } from '../../terms/assert.js';
import {
  plainColumn,
  columnInPlace,
  gatherColumn,
  gatheredBytesMax,
  type RowSlices,
} from '../../columns/take.js';
import type { Column } from '../../columns/column.js';
import { deltaBytesMax } from '../../kernels/delta.js';
import { rowGroupRowsMax } from '../../terms/limits.js';
import type { ChunkEncoder, ChunkEncoding, EncodedChunk } from '../../parquet/chunk-encoder.js';
import type { Room } from '../../memory/room.js';
import { encodeSpaceBytes, withEncodeSpace, type EncodeSpace } from '../../parquet/encode-space.js';
import { presentValues } from '../../parquet/present-values.js';
import { valueKinds, type Field, type FieldType, type Schema } from '../../terms/schema.js';
import { buildGramFilter, type GramFilter } from './gram-filter.js';

/** A row group as it is written, but for its `_cursor` chunk. Where it will stand in the file changes nothing in it. */
export interface EncodedRowGroup {
  readonly rows: number;
  /** One for each field. */
  readonly chunks: readonly EncodedChunk[];
  readonly gramFilters: readonly { readonly field: number; readonly filter: GramFilter }[];
}

/** Encodes 1 to `rowGroupRowsMax` rows. The columns are those of the schema, in its order. */
export function encodeRowGroup(
  encoder: ChunkEncoder,
  schema: Schema,
  columns: readonly Column[],
  rows: number,
): EncodedRowGroup {
  assert(columns.length === schema.fields.length, 'a row group has a column for each field');
  return joinFields(
    schema,
    rows,
    columns.map((column, i) => encodeField(encoder, schema.fields[i]!, column, rows, null)),
  );
}

/** Encodes the rows of slices: a column that does not lie whole in the kernels' memory is put together where it is encoded. Chunks lie in memory that `output` gives. */
export function encodeSlices(
  encoder: ChunkEncoder,
  schema: Schema,
  slices: RowSlices,
  output: Room,
): EncodedRowGroup {
  const { rows } = slices;
  const encoded = schema.fields.map((field, i) => {
    const { valueBytes, pageBytes } = columnBytesMax(slices, i, field.type);
    return withEncodeSpace(valueBytes, pageBytes, output, (space) =>
      encodeField(
        encoder,
        field,
        columnInPlace(slices, i) ?? gatherColumn(slices, i, schema, space.room),
        rows,
        space,
      ),
    );
  });
  return joinFields(schema, rows, encoded);
}

/** Kernel memory that encoding the rows of slices takes, at most. */
export function encodingBytesMax(schema: Schema, slices: RowSlices): number {
  const sizes = schema.fields.map((field, i) => {
    const { valueBytes, pageBytes } = columnBytesMax(slices, i, field.type);
    return encodeSpaceBytes(valueBytes, pageBytes);
  });
  return Math.max(...sizes);
}

function columnBytesMax(
  slices: RowSlices,
  field: number,
  type: FieldType,
): { readonly valueBytes: number; readonly pageBytes: number } {
  const valueBytes = gatheredBytesMax(slices, field, type);
  return { valueBytes, pageBytes: valueBytes + deltaBytesMax(slices.rows) };
}

interface EncodedField {
  readonly chunk: EncodedChunk;
  readonly filter: GramFilter | null;
}

function joinFields(schema: Schema, rows: number, fields: readonly EncodedField[]): EncodedRowGroup {
  return {
    rows,
    chunks: fields.map(({ chunk }) => chunk),
    gramFilters: fields.flatMap(({ filter }, field) => (filter === null ? [] : [{ field, filter }])),
  };
}

function encodeField(
  encoder: ChunkEncoder,
  field: Field,
  column: Column,
  rows: number,
  space: EncodeSpace | null,
): EncodedField {
  assert(rows >= 1 && rows <= rowGroupRowsMax, `a row group has 1 to ${rowGroupRowsMax} rows, not ${rows}`);
  assert(column.length === rows, `column "${field.name}" has ${column.length} rows instead of ${rows}`);
  assertKind(column, field);
  const chunk = encoder.encode(column, encodingOf(field.type), true, space);
  const isDictionary = chunk.dictionaryPageBytes > 0;
  const isUnfiltered = field.type !== 'string' || isDictionary || chunk.nullCount === rows;
  return { chunk, filter: isUnfiltered ? null : gramFilterOf(column, field) };
}

function encodingOf(type: FieldType): ChunkEncoding {
  return type === 'time' ? 'ascending' : type === 'bool' ? 'bits' : 'any';
}

function gramFilterOf(column: Column, field: Field): GramFilter | null {
  const present = plainColumn(presentValues(column));
  assert(present.kind === 'bytes', 'only strings have grams');
  return buildGramFilter(present, field.index);
}

function assertKind(column: Column, field: Field): void {
  const { kind } = column.kind === 'dictionary' ? column.values : column;
  const expected = valueKinds[field.type];
  assert(kind === expected, `column "${field.name}" is ${kind}, expected ${expected}`);
}
