import { assert } from '../terms/assert.js';
import { isValid } from './column.js';
import type {
  BytesColumn,
  Column,
  DictionaryColumn,
  Float64Column,
  Int64Column,
  PlainColumn,
  RecordBatch,
  Validity,
} from './column.js';
import { LogstrataError } from '../terms/errors.js';
import { valueKinds, type Schema } from '../terms/schema.js';
import { copyBytes } from '../terms/utf8.js';
import { bitmapBytes } from '../kernels/bitmap.js';

/** Offsets of a bytes column are 32-bit; more than this would not fit. */
const columnBytesMax = 2 ** 32 - 1;

/**
 * The rows `indices` of a batch, in that order; an index may come more than once. Columns come out plain, because the
 * order of a dictionary's values is that of the rows it was made for.
 */
export function takeRows(batch: RecordBatch, indices: Uint32Array): RecordBatch {
  return { length: indices.length, columns: batch.columns.map((column) => takeColumn(column, indices)) };
}

/** Rows [from, to) of a batch. Columns share memory with the batch where they can; dictionaries come out plain. */
export function sliceBatch(batch: RecordBatch, from: number, to: number): RecordBatch {
  assert(
    from >= 0 && from <= to && to <= batch.length,
    `no rows ${from} to ${to} in a batch of ${batch.length}`,
  );
  return { length: to - from, columns: batch.columns.map((column) => sliceColumn(column, from, to)) };
}

/**
 * All rows of the batches, one after another, as plain columns. Throws `limit` when the strings of a column are more
 * than 32-bit offsets can hold.
 */
export function concatBatches(schema: Schema, batches: readonly RecordBatch[]): RecordBatch {
  const length = batches.reduce((sum, batch) => sum + batch.length, 0);
  const columns = schema.fields.map((field, i) => {
    const parts = batches.map((batch) => plainColumn(batch.columns[i]!));
    switch (valueKinds[field.type]) {
      case 'int64':
        return concatInts(parts as Int64Column[], length);
      case 'float64':
        return concatFloats(parts as Float64Column[], length);
      case 'bytes':
        return concatStrings(parts as BytesColumn[], length, field.name);
    }
  });
  return { length, columns };
}

/** The same values without a dictionary. */
export function plainColumn(column: Column): PlainColumn {
  if (column.kind !== 'dictionary') return column;
  return { ...takePlain(column.values, dictionaryIndices(column)), validity: column.validity };
}

/** The entry of each row; that of a null row is past the last one, so that its slot takes no value of another row. */
function dictionaryIndices({ codes, validity, values, length }: DictionaryColumn): Uint32Array {
  const entries = Uint32Array.from(codes.subarray(0, length));
  if (validity === null) return entries;
  for (let row = 0; row < length; row++) if (!isValid(validity, row)) entries[row] = values.length;
  return entries;
}

function takeColumn(column: Column, indices: Uint32Array): PlainColumn {
  const validity = takeValidity(column.validity, indices);
  if (column.kind !== 'dictionary') return { ...takePlain(column, indices), validity };
  const all = dictionaryIndices(column);
  const entries = new Uint32Array(indices.length);
  for (let i = 0; i < indices.length; i++) entries[i] = all[indices[i]!]!;
  return { ...takePlain(column.values, entries), validity };
}

/** Gathers values and leaves the validity to the caller. An index past the column, as null rows may have, gives 0 or ''. */
function takePlain(column: PlainColumn, indices: Uint32Array): PlainColumn {
  const length = indices.length;
  switch (column.kind) {
    case 'int64':
      return { kind: 'int64', length, values: takeInts(column.values, indices), validity: null };
    case 'float64': {
      const values = new Float64Array(length);
      takeFloats(column.values, indices, values);
      return { kind: 'float64', length, values, validity: null };
    }
    case 'bytes':
      return takeStrings(column, indices);
  }
}

function takeInts(values: BigInt64Array, indices: Uint32Array): BigInt64Array {
  // Halves, because reading a bigint may allocate one.
  const source = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const target = new Int32Array(indices.length * 2);
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i]! * 2;
    target[2 * i] = source[index]!;
    target[2 * i + 1] = source[index + 1]!;
  }
  return new BigInt64Array(target.buffer);
}

function takeFloats(source: Float64Array, indices: Uint32Array, target: Float64Array): void {
  const length = source.length;
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i]!;
    target[i] = index < length ? source[index]! : 0;
  }
}

function takeStrings(column: BytesColumn, indices: Uint32Array): BytesColumn {
  const offsets = new Uint32Array(indices.length + 1);
  const bytesCount = takenOffsets(column, indices, offsets);
  checkBytes(bytesCount);
  const bytes = new Uint8Array(bytesCount);
  takeBytes(column, indices, offsets, bytes);
  return { kind: 'bytes', length: indices.length, offsets, bytes, validity: null };
}

function takenOffsets(column: BytesColumn, indices: Uint32Array, offsets: Uint32Array): number {
  const source = column.offsets;
  const length = column.length;
  let at = 0;
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i]!;
    if (index < length) at += source[index + 1]! - source[index]!;
    offsets[i + 1] = at;
  }
  return at;
}

function takeBytes(
  column: BytesColumn,
  indices: Uint32Array,
  offsets: Uint32Array,
  target: Uint8Array,
): void {
  const length = column.length;
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i]!;
    if (index < length) {
      copyBytes(column.bytes, column.offsets[index]!, column.offsets[index + 1]!, target, offsets[i]!);
    }
  }
}

function takeValidity(validity: Validity, indices: Uint32Array): Validity {
  if (validity === null) return null;
  const taken = new Uint8Array(bitmapBytes(indices.length));
  let present = 0;
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i]!;
    const bit = (validity[index >> 3]! >> (index & 7)) & 1;
    taken[i >> 3]! |= bit << (i & 7);
    present += bit;
  }
  return present === indices.length ? null : taken;
}

function sliceColumn(column: Column, from: number, to: number): PlainColumn {
  const length = to - from;
  const validity = sliceValidity(column.validity, from, to);
  switch (column.kind) {
    case 'int64':
      return { kind: 'int64', length, values: column.values.subarray(from, to), validity };
    case 'float64':
      return { kind: 'float64', length, values: column.values.subarray(from, to), validity };
    case 'bytes':
      return {
        kind: 'bytes',
        length,
        offsets: column.offsets.subarray(from, to + 1),
        bytes: column.bytes,
        validity,
      };
    case 'dictionary': {
      const codes = column.codes.subarray(from, to);
      const entries = dictionaryIndices({ ...column, length, codes, validity });
      return { ...takePlain(column.values, entries), validity };
    }
  }
}

function sliceValidity(validity: Validity, from: number, to: number): Validity {
  if (validity === null) return null;
  const sliced = new Uint8Array(bitmapBytes(to - from));
  return appendValidity(sliced, 0, validity, from, to) ? sliced : null;
}

/** Copies the bits [from, to) of `source` to `target` from bit `at` on; returns whether one of them was null. */
function appendValidity(target: Uint8Array, at: number, source: Validity, from: number, to: number): boolean {
  let nulls = false;
  for (let row = from; row < to; row++, at++) {
    if (isValid(source, row)) target[at >> 3]! |= 1 << (at & 7);
    else nulls = true;
  }
  return nulls;
}

function concatValidity(parts: readonly Column[], length: number): Validity {
  if (parts.every((part) => part.validity === null)) return null;
  const validity = new Uint8Array(bitmapBytes(length));
  let row = 0;
  let nulls = false;
  for (const part of parts) {
    if (appendValidity(validity, row, part.validity, 0, part.length)) nulls = true;
    row += part.length;
  }
  return nulls ? validity : null;
}

function concatInts(parts: readonly Int64Column[], length: number): Int64Column {
  const values = new BigInt64Array(length);
  let row = 0;
  for (const part of parts) {
    values.set(part.values.subarray(0, part.length), row);
    row += part.length;
  }
  return { kind: 'int64', length, values, validity: concatValidity(parts, length) };
}

function concatFloats(parts: readonly Float64Column[], length: number): Float64Column {
  const values = new Float64Array(length);
  let row = 0;
  for (const part of parts) {
    values.set(part.values.subarray(0, part.length), row);
    row += part.length;
  }
  return { kind: 'float64', length, values, validity: concatValidity(parts, length) };
}

function concatStrings(parts: readonly BytesColumn[], length: number, name: string): BytesColumn {
  let bytesCount = 0;
  for (const part of parts) bytesCount += part.offsets[part.length]! - part.offsets[0]!;
  checkBytes(bytesCount, name);
  const offsets = new Uint32Array(length + 1);
  const bytes = new Uint8Array(bytesCount);
  let row = 0;
  let at = 0;
  for (const part of parts) {
    const first = part.offsets[0]!;
    const last = part.offsets[part.length]!;
    bytes.set(part.bytes.subarray(first, last), at);
    rebaseOffsets(part, at - first, offsets, row);
    row += part.length;
    at += last - first;
  }
  return { kind: 'bytes', length, offsets, bytes, validity: concatValidity(parts, length) };
}

function rebaseOffsets(part: BytesColumn, shift: number, offsets: Uint32Array, row: number): void {
  for (let i = 1; i <= part.length; i++) offsets[row + i] = part.offsets[i]! + shift;
}

function checkBytes(bytesCount: number, name?: string): void {
  if (bytesCount <= columnBytesMax) return;
  const what = name === undefined ? 'a string column' : `string field "${name}"`;
  throw new LogstrataError(
    'limit',
    `${what} would hold ${bytesCount} bytes, at most ${columnBytesMax} are possible`,
  );
}
