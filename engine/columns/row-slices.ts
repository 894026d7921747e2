import { type Column, isValid, type PlainColumn, type RecordBatch } from './column.js';
import { plainColumn } from './batch.js';
import { LogstrataError } from '../terms/errors.js';
import { heapRoom, type Room } from '../memory/room.js';
import { valueKinds, type FieldType, type Schema } from '../terms/schema.js';
import { sharedMemory } from '../memory/shared-memory.js';
import { copyBytes as copyArray, copyShifted } from '../kernels/copy.js';
import { copyBytes } from '../terms/utf8.js';
import { bitmapBytes } from '../kernels/bitmap.js';

/** Rows out of some pages: for each slice, in order, its page and its rows [from, to). */
export interface RowSlices {
  readonly rows: number;
  readonly pages: readonly RecordBatch[];
  readonly pageOf: Uint32Array;
  readonly fromOf: Uint32Array;
  readonly toOf: Uint32Array;
}

/** All rows of a batch. */
export function wholeBatch(batch: RecordBatch): RowSlices {
  return wholeBatches([batch]);
}

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

/** Offsets of a bytes column are 32-bit; more than this would not fit. */
const columnBytesMax = 2 ** 32 - 1;
/** Shorter ranges are copied faster by a loop than by a call. */
const loopBytesMax = 64;

/** What a column of the slices needs of a room, at most. */
export function gatheredBytesMax(slices: RowSlices, field: number, type: FieldType): number {
  const words = 8 * (slices.rows + 1);
  return type === 'string' ? words + stringBytes(slices, plainColumns(slices, field)) : words;
}

/** One column of the rows where it lies, if kernels can read it there; null where it has to be put together. */
export function columnInPlace({ rows, pages, fromOf }: RowSlices, field: number): PlainColumn | null {
  if (fromOf.length !== 1 || fromOf[0] !== 0 || pages[0]!.length !== rows) return null;
  const column = pages[0]!.columns[field]!;
  const memory = sharedMemory();
  if (memory === null || column.kind === 'dictionary') return null;
  if (column.kind === 'bytes')
    return memory.holds(column.bytes) && memory.holds(column.offsets) && column.offsets[0] === 0
      ? column
      : null;
  return memory.holds(column.values) ? column : null;
}

/** One column of the rows, without a dictionary. Throws `limit` when its strings are more than 32-bit offsets can hold. */
export function gatherColumn(
  slices: RowSlices,
  field: number,
  schema: Schema,
  room: Room = heapRoom,
): PlainColumn {
  const columns = plainColumns(slices, field);
  const { name, type } = schema.fields[field]!;
  const validity = gatherValidity(slices, columns);
  const kind = valueKinds[type];
  if (kind === 'bytes') return { ...gatherStrings(slices, columns, name, room), validity };
  const { buffer, byteOffset } = room(slices.rows * 8);
  const halves = new Int32Array(buffer, byteOffset, slices.rows * 2);
  gatherWords(slices, columns, halves);
  const { rows: length } = slices;
  if (kind === 'float64') {
    return { kind, length, values: new Float64Array(buffer, byteOffset, length), validity };
  }
  return { kind, length, values: new BigInt64Array(buffer, byteOffset, length), validity };
}

/** All columns of the rows, in memory of their own. */
export function gatherBatch(slices: RowSlices, schema: Schema): RecordBatch {
  const columns = schema.fields.map((_, field) => gatherColumn(slices, field, schema));
  return { length: slices.rows, columns };
}

function plainColumns({ pages }: RowSlices, field: number): PlainColumn[] {
  return pages.map((page) => plainColumn(page.columns[field]!));
}

/** Copies 8-byte values as halves, because reading a bigint may allocate one. */
function gatherWords(slices: RowSlices, columns: readonly PlainColumn[], target: Int32Array): void {
  const { pageOf, fromOf, toOf } = slices;
  const sources = columns.map((column) => {
    if (column.kind === 'bytes') throw new TypeError('strings are no numbers');
    return new Int32Array(column.values.buffer, column.values.byteOffset, column.length * 2);
  });
  let at = 0;
  for (let i = 0; i < pageOf.length; i++) {
    const source = sources[pageOf[i]!]!;
    const from = 2 * fromOf[i]!;
    const to = 2 * toOf[i]!;
    if (to - from > loopBytesMax / 4) target.set(source.subarray(from, to), at);
    else for (let k = from; k < to; k++) target[at + k - from] = source[k]!;
    at += to - from;
  }
}

function stringBytes({ pageOf, fromOf, toOf }: RowSlices, columns: readonly PlainColumn[]): number {
  let sum = 0;
  for (let i = 0; i < pageOf.length; i++) {
    const column = columns[pageOf[i]!]!;
    if (column.kind !== 'bytes') throw new TypeError('numbers are no strings');
    sum += column.offsets[toOf[i]!]! - column.offsets[fromOf[i]!]!;
  }
  return sum;
}

function gatherStrings(
  slices: RowSlices,
  columns: readonly PlainColumn[],
  name: string,
  room: Room,
): PlainColumn & { kind: 'bytes' } {
  const { rows, pageOf, fromOf, toOf } = slices;
  const bytesCount = stringBytes(slices, columns);
  if (bytesCount > columnBytesMax) {
    throw new LogstrataError(
      'limit',
      `string field "${name}" would hold ${bytesCount} bytes, at most ${columnBytesMax} are possible`,
    );
  }
  const words = room((rows + 1) * 4);
  const offsets = new Uint32Array(words.buffer, words.byteOffset, rows + 1);
  const bytes = room(bytesCount);
  offsets[0] = 0;
  let row = 1;
  let at = 0;
  for (let i = 0; i < pageOf.length; i++) {
    const column = columns[pageOf[i]!]!;
    if (column.kind !== 'bytes') throw new TypeError('numbers are no strings');
    const from = fromOf[i]!;
    const to = toOf[i]!;
    const start = column.offsets[from]!;
    const end = column.offsets[to]!;
    copyShifted(column.offsets, from + 1, to + 1, at - start, offsets, row);
    row += to - from;
    if (end - start > loopBytesMax) copyArray(column.bytes, start, end, bytes, at);
    else copyBytes(column.bytes, start, end, bytes, at);
    at += end - start;
  }
  return { kind: 'bytes', length: rows, offsets, bytes, validity: null };
}

/** The nulls of the rows; null when there are none. */
function gatherValidity(slices: RowSlices, columns: readonly Column[]): Uint8Array | null {
  if (columns.every(({ validity }) => validity === null)) return null;
  const { rows, pageOf, fromOf, toOf } = slices;
  const bits = new Uint8Array(bitmapBytes(rows));
  let row = 0;
  let nulls = false;
  for (let i = 0; i < pageOf.length; i++) {
    const { validity } = columns[pageOf[i]!]!;
    for (let from = fromOf[i]!; from < toOf[i]!; from++, row++) {
      if (isValid(validity, from)) bits[row >> 3]! |= 1 << (row & 7);
      else nulls = true;
    }
  }
  return nulls ? bits : null;
}
