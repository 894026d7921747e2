import { assert, LogstrataError } from '../core/errors.js';
import { typeFacts, type FieldType, type Schema } from '../core/schema.js';
import { copyBytes } from '../core/utf8.js';
import { heap, type Arena } from '../core/arena.js';
import { sharedMemory } from '../core/shared-memory.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import { copyBytes as copyArray, copyShifted, copyWords } from '../kernels/copy.js';
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

/** Rows from several pages, as slices. Slice i has the rows [fromOf[i], toOf[i]) of the page pageOf[i]. */
export interface RowSlices {
  readonly rows: number;
  readonly pages: readonly RecordBatch[];
  readonly pageOf: Uint32Array;
  readonly fromOf: Uint32Array;
  readonly toOf: Uint32Array;
}

/** Rows to take from columns, like `RowSlices`. Without `pageOf` there is one column; without `toOf` each slice is one row. */
type Taken = Pick<RowSlices, 'rows' | 'fromOf'> & {
  readonly pageOf: Uint32Array | null;
  readonly toOf: Uint32Array | null;
};

/** Offsets of a bytes column have 32 bits, so it can't have more bytes. */
const columnBytesMax = 2 ** 32 - 1;
/** A loop copies shorter ranges faster than a call does. */
const loopBytesMax = 64;

/** Slices with all rows of the batches, in order. */
export function wholeBatches(batches: readonly RecordBatch[]): RowSlices {
  return slicesOf(batches.map((batch) => ({ batch, from: 0, to: batch.length })));
}

/** The rows [from, to) of a batch. */
export interface BatchRows {
  readonly batch: RecordBatch;
  readonly from: number;
  readonly to: number;
}

/** Rows of batches as slices, in order. */
export function slicesOf(taken: readonly BatchRows[]): RowSlices {
  const pages: RecordBatch[] = [];
  const pageOf = Uint32Array.from(taken, ({ batch, from, to }) => {
    assert(
      from >= 0 && from <= to && to <= batch.length,
      `no rows ${from} to ${to} in a batch of ${batch.length}`,
    );
    if (batch !== pages.at(-1)) pages.push(batch);
    return pages.length - 1;
  });
  return {
    rows: taken.reduce((sum, { from, to }) => sum + to - from, 0),
    pages,
    pageOf,
    fromOf: Uint32Array.from(taken, ({ from }) => from),
    toOf: Uint32Array.from(taken, ({ to }) => to),
  };
}

/** Copies all columns of the rows. Throws `limit` like `gatherColumn`. */
export function gatherBatch(slices: RowSlices, schema: Schema): RecordBatch {
  const columns = schema.fields.map((_, field) => gatherColumn(slices, field, schema));
  return { length: slices.rows, columns };
}

/** Copies one column of the rows, without a dictionary. Throws `limit` when its strings have more bytes than 32-bit offsets can address. */
export function gatherColumn(
  slices: RowSlices,
  field: number,
  schema: Schema,
  arena: Arena = heap,
): PlainColumn {
  const { name, type } = schema.fields[field]!;
  return takePlain(columnsOf(slices, field), slices, typeFacts[type].column, arena, `string field "${name}"`);
}

/** Maximum bytes of memory that `gatherColumn` allocates from its arena. */
export function gatheredBytesMax(slices: RowSlices, field: number, type: FieldType): number {
  const words = 8 * (slices.rows + 1);
  return typeFacts[type].column === 'bytes' ? words + stringBytes(columnsOf(slices, field), slices) : words;
}

/** Maximum bytes of memory that `gatherBatch` allocates for the values. */
export function gatheredBatchBytesMax(slices: RowSlices, schema: Schema): number {
  return schema.fields.reduce((sum, { type }, field) => sum + gatheredBytesMax(slices, field, type), 0);
}

/** A column of the rows without copying, if the slices are a whole batch and kernels can read the column in place; else null. */
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
 * The rows `indices` of a batch, in that order; an index may occur more than once. Dictionary columns become plain, because the order of a
 * dictionary's values is that of the first rows in its own column.
 */
export function takeRows(batch: RecordBatch, indices: Uint32Array): RecordBatch {
  return { length: indices.length, columns: batch.columns.map((column) => takeColumn(column, indices)) };
}

/** The rows `indices` of a column, as a plain column. An index after the last row gives the empty string or 0. */
export function takeColumn(column: Column, indices: Uint32Array): PlainColumn {
  const taken = { rows: indices.length, pageOf: null, fromOf: indices, toOf: null };
  if (column.kind !== 'dictionary') return takePlain([column], taken, column.kind);
  const codes = new Uint16Array(indices.length);
  for (let i = 0; i < indices.length; i++) codes[i] = column.codes[indices[i]!]!;
  return plainColumn({ ...column, length: indices.length, codes, validity: takeValidity([column], taken) });
}

/** Like `takeColumn`, but keeps the dictionary of a dictionary column. */
export function takeColumnRows(column: Column, indices: Uint32Array): Column {
  if (column.kind !== 'dictionary') return takeColumn(column, indices);
  const taken = { rows: indices.length, pageOf: null, fromOf: indices, toOf: null };
  const codes = column.codes.slice(0, indices.length);
  for (let i = 0; i < indices.length; i++) codes[i] = column.codes[indices[i]!]!;
  return { ...column, length: indices.length, codes, validity: takeValidity([column], taken) };
}

/** The same values, without a dictionary, and null in the rows whose bits are set. */
export function withNulls(column: Column, nulls: Uint8Array): PlainColumn {
  const { length } = column;
  const validity = new Uint8Array(bitmapBytes(length));
  const indices = new Uint32Array(length);
  for (let row = 0; row < length; row++) {
    const isKept = !isValid(nulls, row) && isValid(column.validity, row);
    if (isKept) validity[row >> 3]! |= 1 << (row & 7);
    indices[row] = isKept ? row : length;
  }
  if (column.kind === 'dictionary') return plainColumn({ ...column, validity });
  return { ...takeColumn(column, indices), validity };
}

/** The same values without a dictionary. */
export function plainColumn(column: Column): PlainColumn {
  if (column.kind !== 'dictionary') return column;
  const { length, values, validity } = column;
  const fromOf = new Uint32Array(1);
  const all = { rows: length, pageOf: null, fromOf, toOf: Uint32Array.of(length) };
  return { ...takeValues([column], all, values.kind), validity };
}

/** The dictionary entries that occur in the column, each once, in the order of the dictionary. */
export function entriesInUse({ codes, validity, values, length }: DictionaryColumn): PlainColumn {
  const isUsed = new Uint8Array(values.length);
  for (let row = 0; row < length; row++)
    if (validity === null || isValid(validity, row)) isUsed[codes[row]!] = 1;
  const used = new Uint32Array(isUsed.reduce((sum, one) => sum + one, 0));
  for (let entry = 0, at = 0; entry < isUsed.length; entry++) if (isUsed[entry] === 1) used[at++] = entry;
  return takeColumn(values, used);
}

/** The rows [from, to) of a batch. Columns share memory with the batch where possible; dictionary columns become plain. */
export function sliceBatch(batch: RecordBatch, from: number, to: number): RecordBatch {
  const slice = slicesOf([{ batch, from, to }]);
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

function columnsOf({ pages }: RowSlices, field: number): Column[] {
  return pages.map((page) => page.columns[field]!);
}

function takePlain(
  columns: readonly Column[],
  taken: Taken,
  kind: PlainColumn['kind'],
  arena = heap,
  name?: string,
): PlainColumn {
  return { ...takeValues(columns, taken, kind, arena, name), validity: takeValidity(columns, taken) };
}

/** Copies the values, without saying which are null. */
function takeValues(
  columns: readonly Column[],
  taken: Taken,
  kind: PlainColumn['kind'],
  arena = heap,
  name = 'a string column',
): PlainColumn {
  if (kind === 'bytes') return takeStrings(columns, taken, name, arena);
  const { buffer, byteOffset } = arena(taken.rows * 8);
  takeWords(columns, taken, new Int32Array(buffer, byteOffset, taken.rows * 2));
  return numberColumn(kind, taken.rows, buffer, byteOffset, null);
}

/** A column with its values: those of its rows, or, with `codes`, those of its dictionary. */
interface Source {
  readonly codes: DictionaryColumn['codes'] | null;
  readonly validity: Validity;
  readonly values: PlainColumn;
}

function sourceOf(column: Column): Source {
  const { validity } = column;
  return column.kind === 'dictionary'
    ? { codes: column.codes, validity, values: column.values }
    : { codes: null, validity, values: column };
}

/** Copies 8-byte values as halves. */
function takeWords(columns: readonly Column[], { pageOf, fromOf, toOf }: Taken, target: Int32Array): void {
  const sources = columns.map((column) => {
    const { values, ...source } = sourceOf(column);
    return { ...source, halves: halvesOf((values as NumberColumn).values) };
  });
  let source = sources[0]!;
  let at = 0;
  for (let i = 0; i < fromOf.length; i++) {
    if (pageOf !== null) source = sources[pageOf[i]!]!;
    const { codes, halves, validity } = source;
    const from = 2 * fromOf[i]!;
    const to = toOf === null ? from + 2 : 2 * toOf[i]!;
    if (codes !== null) takeEntryWords(codes, validity, halves, from / 2, to / 2, target, at);
    else if (to - from > loopBytesMax / 4) copyWords(halves, from, to, target, at);
    else if (to <= halves.length) for (let k = from; k < to; k++) target[at + k - from] = halves[k]!;
    else target.fill(0, at, at + 2);
    at += to - from;
  }
}

/** Copies the dictionary's values of the rows [from, to) to target[at …), and 0 for nulls. */
function takeEntryWords(
  codes: DictionaryColumn['codes'],
  validity: Validity,
  halves: Int32Array,
  from: number,
  to: number,
  target: Int32Array,
  at: number,
): void {
  for (let row = from; row < to; row++, at += 2) {
    const hasValue = isValid(validity, row);
    const entry = 2 * codes[row]!;
    target[at] = hasValue ? halves[entry]! : 0;
    target[at + 1] = hasValue ? halves[entry + 1]! : 0;
  }
}

function stringBytes(columns: readonly Column[], { pageOf, fromOf, toOf }: Taken): number {
  const sources = columns.map(sourceOf);
  let sum = 0;
  for (let i = 0; i < fromOf.length; i++) {
    const { codes, validity, values } = sources[pageOf === null ? 0 : pageOf[i]!]!;
    const { offsets, length } = values as BytesColumn;
    const from = fromOf[i]!;
    const to = toOf === null ? from + 1 : toOf[i]!;
    if (codes !== null) sum += entryBytes(codes, validity, offsets, from, to);
    else if (to <= length) sum += offsets[to]! - offsets[from]!;
  }
  return sum;
}

/** Bytes of the dictionary's strings of the rows [from, to). */
function entryBytes(
  codes: DictionaryColumn['codes'],
  validity: Validity,
  offsets: Uint32Array,
  from: number,
  to: number,
): number {
  let sum = 0;
  for (let row = from; row < to; row++) {
    const entry = codes[row]!;
    if (isValid(validity, row)) sum += offsets[entry + 1]! - offsets[entry]!;
  }
  return sum;
}

function takeStrings(columns: readonly Column[], taken: Taken, name: string, arena: Arena): BytesColumn {
  const { rows, pageOf, fromOf, toOf } = taken;
  const bytesCount = stringBytes(columns, taken);
  if (bytesCount > columnBytesMax) {
    throw new LogstrataError(
      'limit',
      `${name} would have ${bytesCount} bytes, more than the maximum of ${columnBytesMax}`,
    );
  }
  const words = arena((rows + 1) * 4);
  const offsets = new Uint32Array(words.buffer, words.byteOffset, rows + 1);
  const target: BytesColumn = {
    kind: 'bytes',
    length: rows,
    offsets,
    bytes: arena(bytesCount),
    validity: null,
  };
  const { bytes } = target;
  offsets[0] = 0;
  let column = columns[0]! as BytesColumn | DictionaryColumn;
  let row = 1;
  let at = 0;
  for (let i = 0; i < fromOf.length; i++) {
    if (pageOf !== null) column = columns[pageOf[i]!]! as BytesColumn | DictionaryColumn;
    const from = fromOf[i]!;
    const to = toOf === null ? from + 1 : toOf[i]!;
    if (column.kind === 'dictionary') {
      at = takeEntryStrings(column, from, to, target, row, at);
      row += to - from;
      continue;
    }
    if (to > column.length) {
      offsets[row++] = at;
      continue;
    }
    const start = column.offsets[from]!;
    const end = column.offsets[to]!;
    if (to - from === 1) offsets[row] = at + end - start;
    else copyShifted(column.offsets, from + 1, to + 1, at - start, offsets, row);
    copyString(column.bytes, start, end, bytes, at);
    row += to - from;
    at += end - start;
  }
  return target;
}

/** Copies the dictionary's strings of the rows [from, to) behind target.bytes[0, at), and their ends to target.offsets[row …). Returns the new end. */
function takeEntryStrings(
  { codes, validity, values }: DictionaryColumn,
  from: number,
  to: number,
  target: BytesColumn,
  row: number,
  at: number,
): number {
  const { offsets, bytes } = values as BytesColumn;
  for (let i = from; i < to; i++) {
    if (isValid(validity, i)) {
      const start = offsets[codes[i]!]!;
      const end = offsets[codes[i]! + 1]!;
      copyString(bytes, start, end, target.bytes, at);
      at += end - start;
    }
    target.offsets[row++] = at;
  }
  return at;
}

function copyString(source: Uint8Array, start: number, end: number, target: Uint8Array, at: number): void {
  if (end - start > loopBytesMax) copyArray(source, start, end, target, at);
  else copyBytes(source, start, end, target, at);
}

/** The validity of the rows; null when none is null. */
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
