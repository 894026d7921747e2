import { FormatError } from '../parquet/format.js';
import { halfFloat, signedInteger, type JsonText } from './value-texts.js';
import type { BatchBuffers, FieldPlace } from './batch-buffers.js';
import { storedTypeOf } from './arrow-schema.js';
import { formatOf, type LeafValue } from './stored-type.js';

/** Gives the values of a field in a range of rows of a batch. Methods throw `FormatError` for malformed data. */
export interface ValueReader {
  isMissing(row: number): boolean;
  /** Reads the value of a row that is not null; null where the field is nested. */
  readonly leaf: ((row: number) => LeafValue) | null;
  /** Text of a value that `leaf` returned. */
  readonly text: (value: LeafValue) => string;
  /** Writes a row as JSON; a null row as `null`. */
  write(row: number, json: JsonText): void;
}

/** Rows [from, to) of a field in a batch. */
export interface FieldRange {
  readonly place: FieldPlace;
  readonly buffers: BatchBuffers;
  readonly from: number;
  readonly to: number;
}

/** Returns a function that tells whether a row is not null. */
export function presenceOf(range: FieldRange): (row: number) => boolean {
  const { place, buffers } = range;
  if (place.nullCount === 0 || buffers.storedBytes(place.buffer) === 0) return () => true;
  return bitsOf(range, 0);
}

/** Reads the bits of the field's buffer number `index`, addressed by row. */
function bitsOf({ place, buffers, from, to }: FieldRange, index: number): (row: number) => boolean {
  const first = Math.floor(from / 8);
  const bytes = buffers.read(place.buffer + index, first, Math.ceil(to / 8));
  return (row) => (bytes[Math.floor(row / 8) - first]! & (1 << (row & 7))) !== 0;
}

/** Reads the elements [from, to) of a buffer, of `width` bytes each. */
export function elementsOf(
  buffers: BatchBuffers,
  buffer: number,
  width: number,
  from: number,
  to: number,
): DataView {
  const bytes = buffers.read(buffer, from * width, to * width);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/**
 * Reads the offsets of the rows [from, to) into the field's bytes or items, and the end offset of the last row. Checks that
 * they ascend.
 */
export function offsetsOf({ place, buffers, from, to }: FieldRange, bits: number): Float64Array {
  const offsets = new Float64Array(to - from + 1);
  if (to === from) return offsets;
  const view = elementsOf(buffers, place.buffer + 1, bits / 8, from, to + 1);
  let before = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = bits === 32 ? view.getInt32(4 * i, true) : Number(view.getBigInt64(8 * i, true));
    if (offset < before || !Number.isSafeInteger(offset))
      throw new FormatError('the offsets are not in ascending order', 0);
    offsets[i] = offset;
    before = offset;
  }
  return offsets;
}

/**
 * A reader of values that are not nested. The checksums that indexes have of a batch depend on the order in which its buffers are
 * read: `isPresent` is given where the validity comes first.
 */
function leafReader(
  range: FieldRange,
  leaf: (row: number) => LeafValue,
  isPresent = presenceOf(range),
): ValueReader {
  const { text, isJson } = formatOf(storedTypeOf(range.place.type));
  return {
    isMissing: (row) => !isPresent(row),
    leaf,
    text,
    write: (row, json) => {
      if (!isPresent(row)) json.add('null');
      else json.add(isJson ? text(leaf(row)) : JSON.stringify(text(leaf(row))));
    },
  };
}

/** A reader whose rows are all null. */
export const missingReader: ValueReader = {
  isMissing: () => true,
  leaf: () => false,
  text: String,
  write: (_, json) => json.add('null'),
};

/** A reader of nested values. `write` is called only for rows that are not null. */
export function nestedReader(
  isPresent: (row: number) => boolean,
  write: (row: number, json: JsonText) => void,
): ValueReader {
  return {
    isMissing: (row) => !isPresent(row),
    leaf: null,
    text: String,
    write: (row, json) => {
      if (isPresent(row)) write(row, json);
      else json.add('null');
    },
  };
}

const inlineViewBytes = 12;
const viewBytes = 16;

/** Reads a range of rows of a field without children; null for a field of a nested type. */
export function readLeaf(range: FieldRange): ValueReader | null {
  const { type } = range.place;
  switch (type.kind) {
    case 'null':
      return missingReader;
    case 'boolean':
      return leafReader(range, bitsOf(range, 1));
    case 'float':
      return leafReader(range, floatsOf(range, type.bits));
    case 'bytes':
    case 'bytes view': {
      const isPresent = presenceOf(range);
      const read = type.kind === 'bytes' ? stringsOf(range, type.bits) : viewsOf(range);
      return leafReader(range, read, isPresent);
    }
    case 'fixed bytes':
      return leafReader(range, fixedOf(range, type.width));
    case 'interval': {
      const width = [4, 8, 16][type.unit];
      if (width === undefined) throw new FormatError(`the unit ${type.unit} of intervals is unknown`, 0);
      return leafReader(range, fixedOf(range, width));
    }
    case 'timestamp':
    case 'duration':
      return leafReader(range, integersOf(range, 64, true));
    case 'int':
    case 'decimal':
    case 'date':
    case 'time of day':
      return leafReader(range, integersOf(range, type.bits, type.kind !== 'int' || type.isSigned));
    default:
      return null;
  }
}

/** Reads integers of 8, 16, 32, 64, 128 or 256 bits. */
export function integersOf(
  { place, buffers, from, to }: FieldRange,
  bits: number,
  isSigned: boolean,
): (row: number) => bigint {
  const width = bits / 8;
  const view = elementsOf(buffers, place.buffer + 1, width, from, to);
  switch (bits) {
    case 8:
      return (row) => BigInt(isSigned ? view.getInt8(row - from) : view.getUint8(row - from));
    case 16:
      return (row) =>
        BigInt(isSigned ? view.getInt16(2 * (row - from), true) : view.getUint16(2 * (row - from), true));
    case 32:
      return (row) =>
        BigInt(isSigned ? view.getInt32(4 * (row - from), true) : view.getUint32(4 * (row - from), true));
    case 64:
      return (row) =>
        isSigned ? view.getBigInt64(8 * (row - from), true) : view.getBigUint64(8 * (row - from), true);
    default:
      return (row) =>
        signedInteger(new Uint8Array(view.buffer, view.byteOffset + (row - from) * width, width), 'little');
  }
}

function floatsOf({ place, buffers, from, to }: FieldRange, bits: number): (row: number) => number {
  const view = elementsOf(buffers, place.buffer + 1, bits / 8, from, to);
  if (bits === 16) return (row) => halfFloat(view.getUint16(2 * (row - from), true));
  if (bits === 32) return (row) => view.getFloat32(4 * (row - from), true);
  return (row) => view.getFloat64(8 * (row - from), true);
}

function fixedOf({ place, buffers, from, to }: FieldRange, width: number): (row: number) => Uint8Array {
  const bytes = buffers.read(place.buffer + 1, from * width, to * width);
  return (row) => bytes.subarray((row - from) * width, (row - from + 1) * width);
}

function stringsOf(range: FieldRange, bits: number): (row: number) => Uint8Array {
  const { place, buffers, from, to } = range;
  const offsets = offsetsOf(range, bits);
  const start = offsets[0]!;
  const bytes = buffers.read(place.buffer + 2, start, offsets[to - from]!);
  return (row) => bytes.subarray(offsets[row - from]! - start, offsets[row - from + 1]! - start);
}

/**
 * Reads string views. Each has its length and either its bytes (up to 12), or its first four bytes, the number of a buffer
 * and an offset in that buffer (https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout).
 */
function viewsOf({ place, buffers, from, to }: FieldRange): (row: number) => Uint8Array {
  const views = elementsOf(buffers, place.buffer + 1, viewBytes, from, to);
  const contents = new Map<number, Uint8Array>();
  return (row) => {
    const at = viewBytes * (row - from);
    const length = views.getInt32(at, true);
    if (length >= 0 && length <= inlineViewBytes)
      return new Uint8Array(views.buffer, views.byteOffset + at + 4, length);
    const number = views.getInt32(at + 8, true);
    const start = views.getInt32(at + 12, true);
    if (length < 0 || number < 0 || number + 2 >= place.buffers || start < 0)
      throw new FormatError('a string refers to a buffer that does not exist', 0);
    let content = contents.get(number);
    if (content === undefined) {
      content = buffers.read(place.buffer + 2 + number);
      contents.set(number, content);
    }
    if (start + length > content.length) throw new FormatError('a string lies outside its buffer', 0);
    return content.subarray(start, start + length);
  };
}
