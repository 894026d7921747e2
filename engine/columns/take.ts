import { assert } from '../terms/assert.js';
import { LogstrataError } from '../terms/errors.js';
import { valueKinds, type FieldType, type Schema } from '../terms/schema.js';
import { copyBytes } from '../terms/utf8.js';
import { heap, type Arena } from '../memory/arena.js';
import { sharedMemory } from '../memory/shared-memory.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import { copyBytes as copyArray, copyShifted } from '../kernels/copy.js';
import {
  halvesOf,
  isValid,
  numberColumn,
  type BytesColumn,
  type Column,
  type DictionaryColumn,
  type NumberColumn,
  type PlainColumn,
  type RecordBatch,
  type Validity,
} from './column.js';

/** Rows out of some pages: for each slice, in order, its page and its rows [from, to). */
export interface RowSlices {
  readonly rows: number;
  readonly pages: readonly RecordBatch[];
  readonly pageOf: Uint32Array;
  readonly fromOf: Uint32Array;
  readonly toOf: Uint32Array;
}

/** Rows that are taken out of columns, as `RowSlices` has them. Without `pageOf` there is one column, without `toOf` each slice is one row. */
type Taken = Pick<RowSlices, 'rows' | 'fromOf'> & {
  readonly pageOf: Uint32Array | null;
  readonly toOf: Uint32Array | null;
};

/** Offsets of a bytes column are 32-bit; more than this would not fit. */
const columnBytesMax = 2 ** 32 - 1;
/** Shorter ranges are copied faster by a loop than by a call. */
const loopBytesMax = 64;

/** All rows of batches, one after another. */
export function wholeBatches(batches: readonly RecordBatch[]): RowSlices {
  const toOf = Uint32Array.from(batches, ({ length }) => length);
  return {
    rows: toOf.reduce((sum, rows) => sum + rows, 0),
    pages: batches,
    pageOf: toOf.map((_, page) => page),
    fromOf: new Uint32Array(batches.length),
    toOf,
  };
}

/** Rows [from, to) of a batch. */
function slicesOfBatch(batch: RecordBatch, from: number, to: number): RowSlices {
  assert(
    from >= 0 && from <= to && to <= batch.length,
    `no rows ${from} to ${to} in a batch of ${batch.length}`,
  );
  const zero = new Uint32Array(1);
  return {
    rows: to - from,
    pages: [batch],
    pageOf: zero,
    fromOf: Uint32Array.of(from),
    toOf: Uint32Array.of(to),
  };
}

/** All columns of the rows, in memory of their own. Throws `limit` as `gatherColumn` does. */
export function gatherBatch(slices: RowSlices, schema: Schema): RecordBatch {
  const columns = schema.fields.map((_, field) => gatherColumn(slices, field, schema));
  return { length: slices.rows, columns };
}

/** One column of the rows, without a dictionary. Throws `limit` when its strings are more than 32-bit offsets can hold. */
export function gatherColumn(
  slices: RowSlices,
  field: number,
  schema: Schema,
  arena: Arena = heap,
): PlainColumn {
  const { name, type } = schema.fields[field]!;
  return takePlain(plainColumns(slices, field), slices, valueKinds[type], arena, `string field "${name}"`);
}

/** What a column of the slices needs of a room, at most. */
export function gatheredBytesMax(slices: RowSlices, field: number, type: FieldType): number {
  const words = 8 * (slices.rows + 1);
  return valueKinds[type] === 'bytes'
    ? words + stringBytes(plainColumns(slices, field) as BytesColumn[], slices)
    : words;
}

/** One column of the rows where it lies, if kernels can read it there; null where it has to be put together. */
export function columnInPlace({ rows, pages, fromOf }: RowSlices, field: number): PlainColumn | null {
  if (fromOf.length !== 1 || fromOf[0] !== 0 || pages[0]!.length !== rows) return null;
  const column = pages[0]!.columns[field]!;
  if (column.kind === 'dictionary') return null;
  const memory = sharedMemory();
  if (column.kind !== 'bytes') return memory.holds(column.values) ? column : null;
  const isHeld = memory.holds(column.bytes) && memory.holds(column.offsets);
  return isHeld && column.offsets[0] === 0 ? column : null;
}

/**
 * The rows `indices` of a batch, in that order; an index may come more than once. Columns come out plain, because the
 * order of a dictionary's values is that of the rows it was made for.
 */
export function takeRows(batch: RecordBatch, indices: Uint32Array): RecordBatch {
  return { length: indices.length, columns: batch.columns.map((column) => takeColumn(column, indices)) };
}

/** The rows `indices` of a column, as a plain one. Strings past the last row are empty, and numbers 0. */
export function takeColumn(column: Column, indices: Uint32Array): PlainColumn {
  const taken = { rows: indices.length, pageOf: null, fromOf: indices, toOf: null };
  if (column.kind !== 'dictionary') return takePlain([column], taken, column.kind);
  const codes = new Uint16Array(indices.length);
  for (let i = 0; i < indices.length; i++) codes[i] = column.codes[indices[i]!]!;
  return plainColumn({ ...column, length: indices.length, codes, validity: takeValidity([column], taken) });
}

/** The same, with the dictionary of a column that has one. */
export function takeColumnRows(column: Column, indices: Uint32Array): Column {
  if (column.kind !== 'dictionary') return takeColumn(column, indices);
  const taken = { rows: indices.length, pageOf: null, fromOf: indices, toOf: null };
  const codes = column.codes.slice(0, indices.length);
  for (let i = 0; i < indices.length; i++) codes[i] = column.codes[indices[i]!]!;
  return { ...column, length: indices.length, codes, validity: takeValidity([column], taken) };
}

/** The same values without a dictionary. */
export function plainColumn(column: Column): PlainColumn {
  if (column.kind !== 'dictionary') return column;
  return { ...takeColumn(column.values, entriesOf(column)), validity: column.validity };
}

/** The dictionary entry of each row. A null row gets the entry behind the last, which `takeColumn` reads as 0 or the empty string. */
function entriesOf({ codes, validity, values, length }: DictionaryColumn): Uint32Array {
  const entries = new Uint32Array(codes.subarray(0, length));
  if (validity === null) return entries;
  for (let row = 0; row < length; row++) if (!isValid(validity, row)) entries[row] = values.length;
  return entries;
}

/** The entries of the dictionary that rows of the column have, each once, in the order of the dictionary. */
export function entriesInUse({ codes, validity, values, length }: DictionaryColumn): PlainColumn {
  const isUsed = new Uint8Array(values.length);
  for (let row = 0; row < length; row++)
    if (validity === null || isValid(validity, row)) isUsed[codes[row]!] = 1;
  const used = new Uint32Array(isUsed.reduce((sum, one) => sum + one, 0));
  for (let entry = 0, at = 0; entry < isUsed.length; entry++) if (isUsed[entry] === 1) used[at++] = entry;
  return takeColumn(values, used);
}

/** Rows [from, to) of a batch. Columns share memory with the batch where they can; dictionaries come out plain. */
export function sliceBatch(batch: RecordBatch, from: number, to: number): RecordBatch {
  const slice = slicesOfBatch(batch, from, to);
  return { length: slice.rows, columns: batch.columns.map((column) => sliceColumn(column, slice)) };
}

function sliceColumn(column: Column, slice: RowSlices): PlainColumn {
  const from = slice.fromOf[0]!;
  const to = slice.toOf[0]!;
  const rows = { length: to - from, validity: takeValidity([column], slice) };
  switch (column.kind) {
    case 'int64':
      return { ...column, ...rows, values: column.values.subarray(from, to) };
    case 'float64':
      return { ...column, ...rows, values: column.values.subarray(from, to) };
    case 'bytes':
      return { ...column, ...rows, offsets: column.offsets.subarray(from, to + 1) };
    case 'dictionary':
      return plainColumn({ ...column, ...rows, codes: column.codes.subarray(from, to) });
  }
}

function plainColumns({ pages }: RowSlices, field: number): PlainColumn[] {
  return pages.map((page) => plainColumn(page.columns[field]!));
}

function takePlain(
  columns: readonly PlainColumn[],
  taken: Taken,
  kind: PlainColumn['kind'],
  arena = heap,
  name = 'a string column',
): PlainColumn {
  const validity = takeValidity(columns, taken);
  if (kind === 'bytes')
    return { ...takeStrings(columns as readonly BytesColumn[], taken, name, arena), validity };
  const { buffer, byteOffset } = arena(taken.rows * 8);
  takeWords(columns as readonly NumberColumn[], taken, new Int32Array(buffer, byteOffset, taken.rows * 2));
  return numberColumn(kind, taken.rows, buffer, byteOffset, validity);
}

/** Copies 8-byte values as halves. */
function takeWords(
  columns: readonly NumberColumn[],
  { pageOf, fromOf, toOf }: Taken,
  target: Int32Array,
): void {
  const sources = columns.map(({ values }) => halvesOf(values));
  let source = sources[0]!;
  let at = 0;
  for (let i = 0; i < fromOf.length; i++) {
    if (pageOf !== null) source = sources[pageOf[i]!]!;
    const from = 2 * fromOf[i]!;
    const to = toOf === null ? from + 2 : 2 * toOf[i]!;
    if (to - from > loopBytesMax / 4) target.set(source.subarray(from, to), at);
    else if (to <= source.length) for (let k = from; k < to; k++) target[at + k - from] = source[k]!;
    else target.fill(0, at, at + 2);
    at += to - from;
  }
}

function stringBytes(columns: readonly BytesColumn[], { pageOf, fromOf, toOf }: Taken): number {
  let sum = 0;
  for (let i = 0; i < fromOf.length; i++) {
    const { offsets, length } = columns[pageOf === null ? 0 : pageOf[i]!]!;
    const to = toOf === null ? fromOf[i]! + 1 : toOf[i]!;
    if (to <= length) sum += offsets[to]! - offsets[fromOf[i]!]!;
  }
  return sum;
}

function takeStrings(columns: readonly BytesColumn[], taken: Taken, name: string, arena: Arena): BytesColumn {
  const { rows, pageOf, fromOf, toOf } = taken;
  const bytesCount = stringBytes(columns, taken);
  if (bytesCount > columnBytesMax) {
    throw new LogstrataError(
      'limit',
      `${name} would hold ${bytesCount} bytes, at most ${columnBytesMax} are possible`,
    );
  }
  const words = arena((rows + 1) * 4);
  const offsets = new Uint32Array(words.buffer, words.byteOffset, rows + 1);
  const bytes = arena(bytesCount);
  offsets[0] = 0;
  let column = columns[0]!;
  let row = 1;
  let at = 0;
  for (let i = 0; i < fromOf.length; i++) {
    if (pageOf !== null) column = columns[pageOf[i]!]!;
    const from = fromOf[i]!;
    const to = toOf === null ? from + 1 : toOf[i]!;
    if (to > column.length) {
      offsets[row++] = at;
      continue;
    }
    const start = column.offsets[from]!;
    const end = column.offsets[to]!;
    if (to - from === 1) offsets[row] = at + end - start;
    else copyShifted(column.offsets, from + 1, to + 1, at - start, offsets, row);
    if (end - start > loopBytesMax) copyArray(column.bytes, start, end, bytes, at);
    else copyBytes(column.bytes, start, end, bytes, at);
    row += to - from;
    at += end - start;
  }
  return { kind: 'bytes', length: rows, offsets, bytes, validity: null };
}

/** The nulls of the rows; null when there are none. */
function takeValidity(columns: readonly Column[], { rows, pageOf, fromOf, toOf }: Taken): Validity {
  if (columns.every(({ validity }) => validity === null)) return null;
  const bits = new Uint8Array(bitmapBytes(rows));
  let { validity } = columns[0]!;
  let row = 0;
  let present = 0;
  for (let i = 0; i < fromOf.length; i++) {
    if (pageOf !== null) ({ validity } = columns[pageOf[i]!]!);
    const to = toOf === null ? fromOf[i]! + 1 : toOf[i]!;
    for (let from = fromOf[i]!; from < to; from++, row++) {
      const bit = validity === null ? 1 : (validity[from >> 3]! >> (from & 7)) & 1;
      bits[row >> 3]! |= bit << (row & 7);
      present += bit;
    }
  }
  return present === rows ? null : bits;
}
