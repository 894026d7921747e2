import { FormatError } from '../../parquet/format.js';
import type { LeafValue } from '../complete/leaf-format.js';
import {
  bytesText,
  dateText,
  decimalText,
  halfFloat,
  intervalText,
  numberJson,
  signedInteger,
  timeOfDayText,
  timestampText,
} from '../value-texts.js';
import type { ArrowType } from './arrow-schema.js';
import {
  bitsOf,
  elementsOf,
  leafReader,
  missingReader,
  offsetsOf,
  presenceOf,
  type FieldRange,
  type ValueReader,
} from './value-reader.js';

const dayMs = 86_400_000n;
const nanosPerSecond = 1_000_000_000n;
const inlineViewBytes = 12;
const viewBytes = 16;

/** Reads a range of rows of a field without children; null for a field of a nested type. */
export function readLeaf(range: FieldRange): ValueReader | null {
  const { place, buffers, from, to } = range;
  const { type } = place;
  switch (type.kind) {
    case 'null':
      return missingReader;
    case 'bool': {
      const isTrue = bitsOf(buffers, place.buffer + 1, from, to);
      return leafReader(presenceOf(range), isTrue, String, true);
    }
    case 'float': {
      const read = floatsOf(range, type.bits);
      return leafReader(presenceOf(range), read, (value) => numberJson(value as number), true);
    }
    case 'bytes':
      return leafReader(presenceOf(range), stringsOf(range, type.bits), asText(bytesText), false);
    case 'bytes view':
      return leafReader(presenceOf(range), viewsOf(range), asText(bytesText), false);
    case 'fixed bytes': {
      const bytes = buffers.read(place.buffer + 1, from * type.width, to * type.width);
      const read = (row: number): Uint8Array =>
        bytes.subarray((row - from) * type.width, (row - from + 1) * type.width);
      return leafReader(presenceOf(range), read, asText(bytesText), false);
    }
    case 'interval': {
      const width = [4, 8, 16][type.unit];
      if (width === undefined) throw new FormatError(`the unit ${type.unit} of intervals is unknown`, 0);
      const bytes = buffers.read(place.buffer + 1, from * width, to * width);
      const read = (row: number): Uint8Array =>
        bytes.subarray((row - from) * width, (row - from + 1) * width);
      return leafReader(presenceOf(range), read, asText(intervalOf), false);
    }
    default: {
      const meaning = integerMeaning(type);
      if (meaning === null) return null;
      const read = integersOf(range, meaning.bits, meaning.isSigned);
      const { text } = meaning;
      return leafReader(presenceOf(range), read, (value) => text(value as bigint), meaning.isJson);
    }
  }
}

function asText(text: (bytes: Uint8Array) => string): (value: LeafValue) => string {
  return (value) => text(value as Uint8Array);
}

interface IntegerMeaning {
  readonly bits: number;
  readonly isSigned: boolean;
  readonly text: (value: bigint) => string;
  readonly isJson: boolean;
}

/** The format of a type that is stored as integers; null for other types. */
function integerMeaning(type: ArrowType): IntegerMeaning | null {
  const signed = (bits: number, text: (value: bigint) => string, isJson = false): IntegerMeaning => ({
    bits,
    isSigned: true,
    text,
    isJson,
  });
  switch (type.kind) {
    case 'int':
      return { bits: type.bits, isSigned: type.isSigned, text: String, isJson: true };
    case 'decimal':
      return signed(type.bits, (value) => decimalText(value, type.scale), true);
    case 'date':
      if (type.bits === 32) return signed(32, dateText);
      return signed(64, (ms) => dateText((ms - (((ms % dayMs) + dayMs) % dayMs)) / dayMs));
    case 'time of day':
      return signed(type.bits, (ticks) => timeOfDayText(ticks, type.perSecond));
    case 'timestamp':
      return signed(64, (ticks) => timestampText(ticks, type.perSecond));
    case 'duration':
      return signed(64, (ticks) => intervalText(0n, 0n, ticks, type.perSecond));
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

/** Text of an interval. By length: months; days and milliseconds; or months, days and nanoseconds. */
function intervalOf(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const int = (at: number): bigint => BigInt(view.getInt32(at, true));
  switch (bytes.length) {
    case 4:
      return intervalText(int(0), 0n, 0n, nanosPerSecond);
    case 8:
      return intervalText(0n, int(0), int(4), 1000n);
    default:
      return intervalText(int(0), int(4), view.getBigInt64(8, true), nanosPerSecond);
  }
}
