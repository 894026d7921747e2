// Writes rows of columns as lines of JSON or CSV. A column is described by eight words, which ../json-rows.ts lays out.
import { copyLoose } from './copy';
import { writeCsvString } from './csv-values';
import { writeDouble, writeInteger, writeString } from './json-values';

/**
 * The formats of lines, as type arguments. The functions are compiled once for each format, so that the format is not checked for every
 * value.
 */
export class Json {}
/** See `Json`. */
export class Csv {}

/** Whether the format is CSV. */
export function isCsv<Form>(): bool {
  return idof<Form>() == idof<Csv>();
}

export const descriptorBytes: usize = 32;
/** Offset of the key, relative to the first column. */
export const keyOffset: usize = 0;
export const keyBytesOffset: usize = 4;
const kindOffset: usize = 8;
/** 0 where every row is present. */
const validityOffset: usize = 12;
/** 0 where the row number is the entry. */
const codesOffset: usize = 16;
const codeBytesOffset: usize = 20;
/** The numbers, or the bytes of the strings. */
const dataOffset: usize = 24;
const offsetsOffset: usize = 28;

const kindInt64: u32 = 0;
const kindFloat64: u32 = 1;
const kindString: u32 = 2;
const kindNull: u32 = 3;
const kindBool: u32 = 4;

/** The address after the last complete line. */
let end: usize = 0;

/** The address after the last complete line that `writeLines` has written. */
export function jsonEnd(): usize {
  return end;
}

/** The double with more than three decimals at which a call stopped, its column (-1 for none), and its address in the output. */
let double: f64 = 0;
let doubleColumn: i32 = -1;
let doubleAt: usize = 0;

/** The column of the double that the caller has to write; -1 when the call stopped for lack of room or at the end. */
export function jsonDoubleColumn(): i32 {
  return doubleColumn;
}

/** The double that the caller has to write. */
export function jsonDouble(): f64 {
  return double;
}

/** The address where the caller has to write it. */
export function jsonDoubleAt(): usize {
  return doubleAt;
}

function entryOf(column: usize, row: u32): u32 {
  const codes = <usize>load<u32>(column, codesOffset);
  if (codes == 0) return row;
  return load<u32>(column, codeBytesOffset) == 1
    ? <u32>load<u8>(codes + row)
    : <u32>load<u16>(codes + ((<usize>row) << 1));
}

/** Writes `{"_cursor":"`, the cursor and a quote. */
function writeCursor(at: usize, cursor: u64): usize {
  store<u64>(at, 0x6f737275635f227b);
  store<u32>(at, 0x223a2272, 8);
  at = writeDigits(at + 12, cursor);
  store<u8>(at, 0x22);
  return at + 1;
}

/** Writes sixteen hexadecimal digits. */
export function writeDigits(at: usize, cursor: u64): usize {
  const bytes = i64x2.splat(bswap<u64>(cursor));
  const nibbles = i8x16.shuffle(
    i8x16.shr_u(bytes, 4),
    v128.and(bytes, i8x16.splat(15)),
    0,
    16,
    1,
    17,
    2,
    18,
    3,
    19,
    4,
    20,
    5,
    21,
    6,
    22,
    7,
    23,
  );
  const digits = i8x16(
    0x30,
    0x31,
    0x32,
    0x33,
    0x34,
    0x35,
    0x36,
    0x37,
    0x38,
    0x39,
    0x61,
    0x62,
    0x63,
    0x64,
    0x65,
    0x66,
  );
  v128.store(at, i8x16.swizzle(digits, nibbles));
  return at + 16;
}

function isNull(column: usize, row: u32): bool {
  const validity = <usize>load<u32>(column, validityOffset);
  return validity != 0 && (((<u32>load<u8>(validity + (row >>> 3))) >>> (row & 7)) & 1) == 0;
}

/**
 * Writes a value; in CSV, null is written as nothing. Returns the end, or 0 for a double with more than three decimals, and for a string
 * whose longest form may exceed `atMax`.
 */
function writeValue<Form>(at: usize, column: usize, row: u32, atMax: usize): usize {
  const kind = load<u32>(column, kindOffset);
  if (kind == kindNull || isNull(column, row)) {
    if (isCsv<Form>()) return at;
    store<u32>(at, 0x6c6c756e);
    return at + 4;
  }
  const entry = <usize>entryOf(column, row);
  const data = <usize>load<u32>(column, dataOffset);
  if (kind == kindInt64) return writeInteger(at, load<i64>(data + (entry << 3)));
  if (kind == kindFloat64) {
    const value = load<f64>(data + (entry << 3));
    const valueEnd = writeDouble(at, value);
    if (valueEnd == 0) {
      double = value;
      doubleAt = at;
    }
    return valueEnd;
  }
  if (kind == kindBool) return writeBool(at, load<u32>(data + (entry << 3)));
  const place = <usize>load<u32>(column, offsetsOffset) + (entry << 2);
  const start = load<u32>(place);
  const length = load<u32>(place, 4) - start;
  if (<u64>at + stringBytesMax(length) > <u64>atMax) return 0;
  return isCsv<Form>() ? writeCsvString(at, data + start, length) : writeString(at, data + start, length);
}

/** A control character takes six bytes in JSON; in CSV no character takes more than twice its bytes. */
function stringBytesMax(length: u32): u64 {
  return 6 * <u64>length + 2;
}

/** Writes `false` for 0, else `true`. Returns the end. */
function writeBool(at: usize, value: u32): usize {
  if (value != 0) {
    store<u32>(at, 0x65757274);
    return at + 4;
  }
  store<u32>(at, 0x736c6166);
  store<u8>(at, 0x65, 4);
  return at + 5;
}

/**
 * Number of rows whose data is loaded before they are written. It fits in the near caches, and the CPU waits for its cache misses in
 * parallel.
 */
export const rowsAhead: u32 = 64;
/** Rows with at least this average distance hardly share cache lines. The CPU prefetches denser ones by itself. */
const sparseDistance: u32 = 4;
const lineOfCache: u32 = 64;
/** The CPU prefetches the rest of a longer string by itself. */
const touchedBytesMax: u32 = 512;

/** The row at an index of a list. */
function rowOf(rows: usize, index: u32): u32 {
  return load<u32>(rows + ((<usize>index) << 2));
}

/** The row at an index of a list; the index itself where there is no list. */
function rowAt(rows: usize, index: u32): u32 {
  return rows == 0 ? index : rowOf(rows, index);
}

/** Whether the column has 16-bit codes, that is, more than 256 entries. */
function hasManyEntries(column: usize): bool {
  return load<u32>(column, codesOffset) != 0 && load<u32>(column, codeBytesOffset) == 2;
}

/** Receives the sums of what is loaded only to be in the caches: loads whose values are unused would be optimised away. */
let touched: u32 = 0;

/** Loads the codes and the validity of these rows. */
function touchCodes(column: usize, rows: usize, from: u32, to: u32): u32 {
  const codes = <usize>load<u32>(column, codesOffset);
  const validity = <usize>load<u32>(column, validityOffset);
  let sum: u32 = 0;
  if (codes != 0) {
    const shift = <usize>load<u32>(column, codeBytesOffset) - 1;
    for (let i = from; i < to; i++) sum += <u32>load<u8>(codes + ((<usize>rowAt(rows, i)) << shift));
  }
  if (validity != 0) for (let i = from; i < to; i++) sum += <u32>load<u8>(validity + (rowAt(rows, i) >>> 3));
  return sum;
}

/** Loads the numbers of these rows, or the offsets of their strings. */
function touchEntries(column: usize, rows: usize, from: u32, to: u32): u32 {
  const offsets = <usize>load<u32>(column, offsetsOffset);
  const entries = offsets != 0 ? offsets : <usize>load<u32>(column, dataOffset);
  const shift: usize = offsets != 0 ? 2 : 3;
  let sum: u32 = 0;
  // The two kinds of columns that lists of rows mostly have get their own loops: the fewer instructions a load takes, the more loads run in
  // parallel.
  if (rows != 0 && load<u32>(column, codesOffset) == 0) {
    for (let i = from; i < to; i++) sum += load<u32>(entries + ((<usize>rowOf(rows, i)) << shift));
  } else if (rows != 0 && load<u32>(column, codeBytesOffset) == 2) {
    const codes = <usize>load<u32>(column, codesOffset);
    for (let i = from; i < to; i++) {
      const code = <usize>load<u16>(codes + ((<usize>rowOf(rows, i)) << 1));
      sum += load<u32>(entries + (code << shift));
    }
  } else {
    for (let i = from; i < to; i++)
      sum += load<u32>(entries + ((<usize>entryOf(column, rowAt(rows, i))) << shift));
  }
  return sum;
}

/**
 * Loads the strings of these rows: of each string as many cache lines as the longest has. Looping by each string's own length would cause a
 * branch misprediction per string.
 */
function touchStrings(column: usize, rows: usize, from: u32, to: u32): u32 {
  const data = <usize>load<u32>(column, dataOffset);
  const offsets = <usize>load<u32>(column, offsetsOffset);
  let longest: u32 = 0;
  for (let i = from; i < to; i++) {
    const place = offsets + ((<usize>entryOf(column, rowAt(rows, i))) << 2);
    longest = max<u32>(longest, load<u32>(place, 4) - load<u32>(place));
  }
  const reach = min<u32>(longest, touchedBytesMax);
  let sum: u32 = 0;
  for (let i = from; i < to; i++) {
    const place = offsets + ((<usize>entryOf(column, rowAt(rows, i))) << 2);
    const start = load<u32>(place);
    const last = max<u32>(load<u32>(place, 4), start + 1) - 1;
    for (let far: u32 = 0; far < reach; far += lineOfCache)
      sum += <u32>load<u8>(data + min<u32>(start + far, last));
    sum += <u32>load<u8>(data + last);
  }
  return sum;
}

/** Whether the codes of the rows are scattered in memory. */
function areCodesFar(column: usize, areSparse: bool): bool {
  return areSparse && load<u32>(column, kindOffset) != kindNull;
}

/** Whether the entries of the rows are scattered in memory. A dictionary of up to 256 entries is in the caches after a few rows. */
function areEntriesFar(column: usize, areSparse: bool): bool {
  const isListed = areSparse && load<u32>(column, codesOffset) == 0;
  return load<u32>(column, kindOffset) != kindNull && (isListed || hasManyEntries(column));
}

/**
 * Loads the data of these rows where it is scattered: everything for rows that are far apart; for others the entries of
 * dictionaries that are too large for the near caches. When rows are written one by one, each such value causes a cache miss that takes
 * longer than the writing. Here no load in a loop depends on another, so that many misses overlap.
 */
export function touchRows(columns: usize, columnsEnd: usize, rows: usize, from: u32, to: u32): void {
  const areSparse = rows != 0 && isSparse(rows, from, to);
  let sum = touched;
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (areCodesFar(column, areSparse)) sum += touchCodes(column, rows, from, to);
  }
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (areEntriesFar(column, areSparse)) sum += touchEntries(column, rows, from, to);
  }
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (areEntriesFar(column, areSparse) && load<u32>(column, offsetsOffset) != 0)
      sum += touchStrings(column, rows, from, to);
  }
  touched = sum;
}

/** The rows before this one have been loaded. A call that continues a line keeps the value. */
let seen: u32 = 0;

/** Whether the rows [from, to) of a list are far apart. */
function isSparse(rows: usize, from: u32, to: u32): bool {
  return rowAt(rows, to - 1) - rowAt(rows, from) >= (to - from) * sparseDistance;
}

/** Begins a call that writes lines from `at` on, or continues the line at which the last call stopped. */
export function beginLines(at: usize, isBegun: bool): void {
  doubleColumn = -1;
  doubleAt = 0;
  if (!isBegun) end = at;
}

/** Ends a line. Returns the address after it. */
export function endLine<Form>(at: usize): usize {
  store<u16>(at, isCsv<Form>() ? 0x0a0d : 0x0a7d);
  end = at + 2;
  return end;
}

/**
 * Writes the keys and values of the columns [column, columnsEnd) of a row. Returns the end, or 0 where the line has to be continued by the
 * caller or written again.
 */
export function writeValues<Form>(
  at: usize,
  columns: usize,
  column: usize,
  columnsEnd: usize,
  row: u32,
  valuesMax: usize,
): usize {
  for (; column < columnsEnd; column += descriptorBytes) {
    const keyBytes = load<u32>(column, keyBytesOffset);
    copyLoose(at, columns + <usize>load<u32>(column, keyOffset), keyBytes);
    at = writeValue<Form>(at + keyBytes, column, row, valuesMax);
    if (at == 0) {
      if (doubleAt != 0) doubleColumn = <i32>((column - columns) / descriptorBytes);
      return 0;
    }
  }
  return at;
}

// What a call writes, as `../json-rows.ts` lays it out. Of rows of several agents, the first two words are the tables and their number.
export const columnsOfCall: usize = 0;
export const columnCountOfCall: usize = 4;
export const fixedBytesOfCall: usize = 8;
export const rowsOfCall: usize = 12;
export const ordinalsOfCall: usize = 16;
export const toOfCall: usize = 20;
/** In JSON 1 to write a comma before each line; else 0. */
export const leadOfCall: usize = 24;
/** 0 for the rows of one table. */
export const agentsOfCall: usize = 28;
/** 1 for CSV; 0 for JSON. */
export const isCsvOfCall: usize = 32;
const cursorOf0OfCall: usize = 40;

/**
 * Writes the lines of rows[from], rows[from + 1], …, up to index `to` (exclusive), from `at` on; where `rows` is 0, of the rows `from` to
 * `to`. Stops before a value if its longest form plus `fixedBytes` may exceed `atMax`, which padding must follow.
 *
 * Returns the index of the first row that is not written completely: for lack of room, or because of a double with more than three decimals
 * (`jsonDoubleColumn`). The caller writes that double and calls again with `firstColumn` set to the column after it. The cursor of a row is
 * `cursorOf0` + ordinals[i], or + i where `ordinals` is 0. In CSV, the key of each column is the comma before its value.
 */
export function writeRows<Form>(call: usize, from: u32, firstColumn: u32, at: usize, atMax: usize): u32 {
  const columns = <usize>load<u32>(call, columnsOfCall);
  const columnsEnd = columns + <usize>load<u32>(call, columnCountOfCall) * descriptorBytes;
  const fixedBytes = load<u32>(call, fixedBytesOfCall);
  const rows = <usize>load<u32>(call, rowsOfCall);
  const ordinals = <usize>load<u32>(call, ordinalsOfCall);
  const to = load<u32>(call, toOfCall);
  const lead = load<u32>(call, leadOfCall);
  const cursorOf0 = load<u64>(call, cursorOf0OfCall);
  let isBegun = firstColumn != 0;
  beginLines(at, isBegun);
  if (!isBegun) {
    seen = from;
    if (atMax - at < <usize>fixedBytes) return from;
  }
  const valuesMax = atMax - fixedBytes;
  let column = columns + <usize>firstColumn * descriptorBytes;
  for (let i = from; i < to; i++) {
    const row = rowAt(rows, i);
    if (!isBegun) {
      if (at > valuesMax) return i;
      if (i == seen) {
        seen = min<u32>(to, i + rowsAhead);
        if (rows == 0 || isSparse(rows, i, seen)) touchRows(columns, columnsEnd, rows, i, seen);
      }
      const cursor = cursorOf0 + rowAt(ordinals, i);
      // Without `lead`, the object overwrites the comma.
      if (!isCsv<Form>()) store<u8>(at, 0x2c);
      at = isCsv<Form>() ? writeDigits(at, cursor) : writeCursor(at + lead, cursor);
    }
    isBegun = false;
    at = writeValues<Form>(at, columns, column, columnsEnd, row, valuesMax);
    if (at == 0) return i;
    column = columns;
    at = endLine<Form>(at);
  }
  return to;
}

/** A size in which the line of the row with this index certainly fits. The call must be one of one table. */
export function lineBytesMax(call: usize, index: u32): f64 {
  const columns = <usize>load<u32>(call, columnsOfCall);
  const columnsEnd = columns + <usize>load<u32>(call, columnCountOfCall) * descriptorBytes;
  const row = rowAt(<usize>load<u32>(call, rowsOfCall), index);
  let sizeBytes = 2 * <u64>load<u32>(call, fixedBytesOfCall);
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (load<u32>(column, kindOffset) != kindString) continue;
    const place = <usize>load<u32>(column, offsetsOffset) + ((<usize>entryOf(column, row)) << 2);
    sizeBytes += stringBytesMax(load<u32>(place, 4) - load<u32>(place));
  }
  return <f64>sizeBytes;
}
