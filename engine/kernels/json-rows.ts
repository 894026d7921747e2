/**
 * Rows of columns written as JSON Lines, byte by byte. Plain TypeScript twin of the SIMD kernel.
 *
 * The bytes are those of `JSON.stringify` (strings are valid UTF-8, so nothing else needs an escape), save that 64-bit
 * integers keep every digit.
 */

export const jsonInt64 = 0;
export const jsonFloat64 = 1;
export const jsonString = 2;
/** Dictionary codes into values that were rendered beforehand (quoted, escaped, or digits). */
export const jsonRendered = 3;
/** Null in every row. */
export const jsonNull = 4;
/** Integers that stand for false (0) and true. */
export const jsonBool = 5;

/** One column of the rows, as typed arrays. Arrays that its kind has no use for are empty. */
export interface JsonColumn {
  readonly kind:
    | typeof jsonInt64
    | typeof jsonFloat64
    | typeof jsonString
    | typeof jsonRendered
    | typeof jsonNull
    | typeof jsonBool;
  /** One bit a row, 1 = present; empty when every row is present. */
  readonly validity: Uint8Array;
  /** Row → entry of the arrays below; empty when the row is the entry. */
  readonly codes: Uint8Array | Uint16Array;
  /** jsonInt64, jsonBool: pairs of 32-bit halves, the low one first. */
  readonly halves: Int32Array;
  /** jsonFloat64; no NaN, no infinities. */
  readonly doubles: Float64Array;
  /** jsonString, jsonRendered: entry e is bytes[offsets[e], offsets[e + 1]). */
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** What stands before the values of a line: the same for all rows of a schema. */
export interface JsonKeys {
  /** `,"name":` in UTF-8, for each column. */
  readonly keys: readonly Uint8Array[];
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
}

/** Columns of rows with their keys. */
export interface JsonTable extends JsonKeys {
  readonly columns: readonly JsonColumn[];
}

/** Where rows are written to. */
export interface JsonOutput {
  bytes: Uint8Array;
  /** First byte not yet written. */
  at: number;
}

/** The longest int64 and the longest double (-0.0000028663373879509285) have 20 and 25 characters; `null` has 4. */
export const numberBytesMax = 25;

/** `{"_cursor":"…16…"` and `}` with its line end. */
const frameBytes = 12 + 16 + 1 + 2;

/** The keys of columns of these names, in their order. */
export function jsonKeysOf(names: readonly string[]): JsonKeys {
  const encoder = new TextEncoder();
  const keys = names.map((name) => encoder.encode(`,${JSON.stringify(name)}:`));
  const fixedBytes = keys.reduce((sum, key) => sum + key.length + numberBytesMax, frameBytes);
  return { keys, fixedBytes };
}

/** Room in which the line of `row` is surely written: a control character takes six bytes. */
export function lineRoomBytes({ columns, fixedBytes }: JsonTable, row: number): number {
  let sizeBytes = 2 * fixedBytes;
  for (const column of columns) {
    if (column.kind !== jsonString && column.kind !== jsonRendered) continue;
    sizeBytes += valueBytesMax(column, entryOf(column, row));
  }
  return sizeBytes;
}

function entryOf(column: JsonColumn, row: number): number {
  return column.codes.length === 0 ? row : column.codes[row]!;
}

/** The most bytes of a string. */
function valueBytesMax(column: JsonColumn, entry: number): number {
  const length = column.offsets[entry + 1]! - column.offsets[entry]!;
  return column.kind === jsonString ? 6 * length + 2 : length;
}

/**
 * Writes the lines of rows[from], rows[from + 1], … up to `to`, or of the rows from, from + 1, … where `rows` is null, while
 * there surely is room: before each value, for its longest form and `fixedBytes`. Returns the index of the first row not
 * written. The ordinal of a row is `ordinalOfRow0` + row.
 */
export function writeJsonRows(
  table: JsonTable,
  rows: Uint32Array | null,
  from: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: JsonOutput,
): number {
  const valuesMax = output.bytes.length - table.fixedBytes;
  for (let i = from; i < to; i++) {
    if (output.at > valuesMax) return i;
    const row = rows === null ? i : rows[i]!;
    const end = writeLine(table, row, partition, ordinalOfRow0 + row, valuesMax, output);
    if (end === null) return i;
    output.at = end;
  }
  return to;
}

/** Writes one line and returns where it ends; null when there may be no room for all of it. */
function writeLine(
  { keys, columns }: JsonTable,
  row: number,
  partition: number,
  ordinal: number,
  valuesMax: number,
  output: JsonOutput,
): number | null {
  const out = output.bytes;
  let at = writeCursor(partition, ordinal, out, output.at);
  for (let c = 0; c < columns.length; c++) {
    const column = columns[c]!;
    at = copyBytes(keys[c]!, 0, keys[c]!.length, out, at);
    const { kind, validity } = column;
    if (kind === jsonNull || (validity.length !== 0 && (validity[row >> 3]! & (1 << (row & 7))) === 0)) {
      at = copyBytes(nullText, 0, nullText.length, out, at);
      continue;
    }
    const entry = entryOf(column, row);
    if (kind === jsonInt64) {
      at = writeInt64(column.halves[2 * entry]! >>> 0, column.halves[2 * entry + 1]!, out, at);
    } else if (kind === jsonFloat64) {
      at = writeDouble(column.doubles[entry]!, out, at);
    } else if (kind === jsonBool) {
      at = writeBool(column.halves[2 * entry]!, out, at);
    } else {
      if (at + valueBytesMax(column, entry) > valuesMax) return null;
      const start = column.offsets[entry]!;
      const end = column.offsets[entry + 1]!;
      at =
        kind === jsonString
          ? writeString(column.bytes, start, end, out, at)
          : copyBytes(column.bytes, start, end, out, at);
    }
  }
  out[at] = 0x7d;
  out[at + 1] = 0x0a;
  return at + 2;
}

const boolTexts = [new TextEncoder().encode('false'), new TextEncoder().encode('true')] as const;

/** Writes `false` for 0, else `true`. Returns the end. */
export function writeBool(value: number, out: Uint8Array, at: number): number {
  const text = boolTexts[value === 0 ? 0 : 1];
  return copyBytes(text, 0, text.length, out, at);
}

const nullText = new TextEncoder().encode('null');
const cursorKey = new TextEncoder().encode('{"_cursor":"');
const hexDigits = new TextEncoder().encode('0123456789abcdef');

/** 24 bits of the partition and 40 of the ordinal, as 16 hexadecimal digits. */
function writeCursor(partition: number, ordinal: number, out: Uint8Array, start: number): number {
  const at = copyBytes(cursorKey, 0, cursorKey.length, out, start);
  const ordinalHigh = Math.floor(ordinal / 4294967296);
  const ordinalLow = ordinal >>> 0;
  for (let i = 0; i < 6; i++) out[at + i] = hexDigits[(partition >>> (20 - 4 * i)) & 15]!;
  out[at + 6] = hexDigits[ordinalHigh >>> 4]!;
  out[at + 7] = hexDigits[ordinalHigh & 15]!;
  for (let i = 0; i < 8; i++) out[at + 8 + i] = hexDigits[(ordinalLow >>> (28 - 4 * i)) & 15]!;
  out[at + 16] = 0x22;
  return at + 17;
}

/** Longer copies go through the machine's own, whose call costs about this many bytes. */
const loopBytesMax = 96;

function copyBytes(from: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  const length = end - start;
  if (length > loopBytesMax) {
    out.set(from.subarray(start, end), at);
    return at + length;
  }
  for (let i = 0; i < length; i++) out[at + i] = from[start + i]!;
  return at + length;
}

/** Byte → 0: as it is; 1: `\u00xx`; else the letter behind the backslash. */
const escapes = buildEscapes();

function buildEscapes(): Uint8Array {
  const table = new Uint8Array(256);
  table.fill(1, 0, 0x20);
  table[0x08] = 0x62;
  table[0x09] = 0x74;
  table[0x0a] = 0x6e;
  table[0x0c] = 0x66;
  table[0x0d] = 0x72;
  table[0x22] = 0x22;
  table[0x5c] = 0x5c;
  return table;
}

/** Writes UTF-8 as a JSON string and returns where it ends; takes at most 6 bytes for each, and 2. */
export function writeString(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  from: number,
): number {
  let at = from;
  out[at++] = 0x22;
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    const escape = escapes[byte]!;
    if (escape === 0) {
      out[at++] = byte;
    } else if (escape === 1) {
      out[at] = 0x5c;
      out[at + 1] = 0x75;
      out[at + 2] = 0x30;
      out[at + 3] = 0x30;
      out[at + 4] = hexDigits[byte >>> 4]!;
      out[at + 5] = hexDigits[byte & 15]!;
      at += 6;
    } else {
      out[at] = 0x5c;
      out[at + 1] = escape;
      at += 2;
    }
  }
  out[at] = 0x22;
  return at + 1;
}

/** Writes a 64-bit integer, given by its halves, in decimal. */
export function writeInt64(low: number, high: number, out: Uint8Array, at: number): number {
  // Within ±2^53 a double is exact, and far cheaper than a BigInt.
  if (high >= -0x200000 && high < 0x200000) return writeInteger(high * 4294967296 + low, out, at);
  return writeAscii(((BigInt(high) << 32n) | BigInt(low)).toString(), out, at);
}

/** Writes a double that is a whole number within ±2^53. */
function writeInteger(value: number, out: Uint8Array, from: number): number {
  let at = from;
  let rest = value;
  if (rest < 0) {
    out[at++] = 0x2d;
    rest = -rest;
  }
  if (rest < 1e9) return writeDigits(rest | 0, countDigits(rest | 0), out, at);
  const upper = Math.floor(rest / 1e9);
  const lower = rest - upper * 1e9;
  // 2^53 has 16 digits, so that the upper part has at most 7.
  at = writeDigits(upper, countDigits(upper), out, at);
  return writeDigits(lower | 0, 9, out, at);
}

function countDigits(value: number): number {
  if (value < 10) return 1;
  if (value < 100) return 2;
  if (value < 1000) return 3;
  if (value < 10000) return 4;
  if (value < 100000) return 5;
  if (value < 1000000) return 6;
  if (value < 10000000) return 7;
  return value < 100000000 ? 8 : 9;
}

/** Writes `value`, of less than 10^9, in `digits` digits. */
function writeDigits(value: number, digits: number, out: Uint8Array, at: number): number {
  let rest = value | 0;
  for (let i = at + digits - 1; i >= at; i--) {
    const quotient = (rest / 10) | 0;
    out[i] = 0x30 + rest - quotient * 10;
    rest = quotient;
  }
  return at + digits;
}

/** Writes a double as JavaScript does: the shortest decimal that reads back the same. */
export function writeDouble(value: number, out: Uint8Array, from: number): number {
  if (Math.abs(value) < 1e9) {
    // A decimal of at most 15 digits that reads back the same is the shortest: two of them never read as one double.
    const thousandths = Math.round(value * 1000);
    if (thousandths / 1000 === value) return writeThousandths(thousandths, out, from);
  }
  return writeAscii(String(value), out, from);
}

function writeThousandths(thousandths: number, out: Uint8Array, from: number): number {
  let at = from;
  let rest = thousandths;
  if (rest < 0) {
    out[at++] = 0x2d;
    rest = -rest;
  }
  const whole = Math.floor(rest / 1000);
  const fraction = rest - whole * 1000;
  at = writeDigits(whole, countDigits(whole), out, at);
  if (fraction === 0) return at;
  out[at] = 0x2e;
  at = writeDigits(fraction, 3, out, at + 1);
  while (out[at - 1] === 0x30) at--;
  return at;
}

function writeAscii(text: string, out: Uint8Array, at: number): number {
  for (let i = 0; i < text.length; i++) out[at + i] = text.charCodeAt(i);
  return at + text.length;
}
