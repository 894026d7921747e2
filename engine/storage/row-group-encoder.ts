import { assert } from '../assert.js';
import { plainColumn } from '../batch.js';
import type { Column } from '../column.js';
import { rowGroupRowsMax } from '../limits.js';
import type { ChunkEncoder, EncodedChunk } from '../parquet/chunk-encoder.js';
import { presentValues } from '../parquet/present-values.js';
import type { Field, Schema } from '../schema.js';
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
  assert(rows >= 1 && rows <= rowGroupRowsMax, `a row group has 1 to ${rowGroupRowsMax} rows, not ${rows}`);
  assert(columns.length === schema.fields.length, 'a row group has a column for each field');
  const chunks = schema.fields.map((field, i) => {
    const column = columns[i]!;
    assert(column.length === rows, `column "${field.name}" has ${column.length} rows instead of ${rows}`);
    assertKind(column, field);
    return encoder.encode(column, field.type === 'time' ? 'ascending' : 'any', true);
  });
  const gramFilters = schema.fields.flatMap((field, i) => {
    const chunk = chunks[i]!;
    const isDictionary = chunk.dictionaryPageBytes > 0;
    if (field.type !== 'string' || isDictionary || chunk.nullCount === rows) return [];
    const filter = gramFilterOf(columns[i]!, field);
    return filter === null ? [] : [{ field: i, filter }];
  });
  return { rows, chunks, gramFilters };
}

function gramFilterOf(column: Column, field: Field): GramFilter | null {
  const present = plainColumn(presentValues(column));
  assert(present.kind === 'bytes', 'only strings have grams');
  return buildGramFilter(present, field.index);
}

function assertKind(column: Column, field: Field): void {
  const { kind } = column.kind === 'dictionary' ? column.values : column;
  const expected = field.type === 'string' ? 'bytes' : field.type === 'float' ? 'float64' : 'int64';
  assert(kind === expected, `column "${field.name}" is ${kind}, expected ${expected}`);
}
