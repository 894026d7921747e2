import { FormatError } from '../../parquet/format.js';
import type { LeafValue } from '../complete/leaf-format.js';
import type { JsonText } from '../json-text.js';
import type { BatchBuffers } from './batch-buffers.js';
import type { FieldPlace } from './buffer-plan.js';

/** The rows of a field of a batch, of which some range was read. Methods throw `FormatError` for what is malformed. */
export interface ValueReader {
  isMissing(row: number): boolean;
  /** The value of a row that has one; null where rows are nested. */
  readonly leaf: ((row: number) => LeafValue) | null;
  /** The text of a value that `leaf` gave. */
  readonly text: (value: LeafValue) => string;
  /** Writes a row as JSON; `null` for one that is missing. */
  write(row: number, json: JsonText): void;
}

/** Rows [from, to) of a field in a batch. */
export interface FieldRange {
  readonly place: FieldPlace;
  readonly buffers: BatchBuffers;
  readonly from: number;
  readonly to: number;
}

/** Which rows of a field have a value. */
export function presenceOf({ place, buffers, from, to }: FieldRange): (row: number) => boolean {
  if (place.nullCount === 0 || buffers.storedBytes(place.buffer) === 0) return () => true;
  return bitsOf(buffers, place.buffer, from, to);
}

/** The bits [from, to) of a buffer. */
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

/** The elements [from, to) of a buffer, of `width` bytes each. */
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

/** Where the rows [from, to) of a field begin and end in what it holds, which ascends. The last is the end of the last row. */
export function offsetsOf({ place, buffers, from, to }: FieldRange, bits: number): Float64Array {
  const offsets = new Float64Array(to - from + 1);
  if (to === from) return offsets;
  const view = elementsOf(buffers, place.buffer + 1, bits / 8, from, to + 1);
  let before = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = bits === 32 ? view.getInt32(4 * i, true) : Number(view.getBigInt64(8 * i, true));
    if (offset < before || !Number.isSafeInteger(offset))
      throw new FormatError('offsets that do not ascend', 0);
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

/** A reader of rows that all lack a value. */
export const missingReader: ValueReader = leafReader(
  () => false,
  () => false,
  String,
  true,
);

/** A reader of nested values, of which `write` gets the rows that have one. */
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
