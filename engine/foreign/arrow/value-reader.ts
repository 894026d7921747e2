import { FormatError } from '../../parquet/format.js';
import type { LeafValue } from '../complete/leaf-format.js';
import type { JsonText } from '../json-text.js';
import type { BatchBuffers } from './batch-buffers.js';
import type { FieldPlace } from './buffer-plan.js';

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
export function presenceOf({ place, buffers, from, to }: FieldRange): (row: number) => boolean {
  if (place.nullCount === 0 || buffers.storedBytes(place.buffer) === 0) return () => true;
  return bitsOf(buffers, place.buffer, from, to);
}

/** Reads the bits [from, to) of a buffer, addressed by row. */
export function bitsOf(
  buffers: BatchBuffers,
  buffer: number,
  from: number,
  to: number,
): (row: number) => boolean {
  const first = Math.floor(from / 8);
  const bytes = buffers.read(buffer, first, Math.ceil(to / 8));
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

/** A reader of values that are not nested. */
export function leafReader(
  isPresent: (row: number) => boolean,
  read: (row: number) => LeafValue,
  text: (value: LeafValue) => string,
  isJson: boolean,
): ValueReader {
  return {
    isMissing: (row) => !isPresent(row),
    leaf: read,
    text,
    write: (row, json) => {
      if (!isPresent(row)) json.add('null');
      else json.add(isJson ? text(read(row)) : JSON.stringify(text(read(row))));
    },
  };
}

/** A reader whose rows are all null. */
export const missingReader: ValueReader = leafReader(
  () => false,
  () => false,
  String,
  true,
);

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
