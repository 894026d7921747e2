// Rows of columns written as lines: of JSON, or of CSV. Columns are described by eight words each, which ../json-rows.ts lays out.
import { copyLoose } from './copy';
import { writeCsvString } from './csv-values';
import { writeDouble, writeInteger, writeString } from './json-values';

/** The forms of lines. What differs between them is decided where the loops are compiled, once for each, and not in every value. */
class Json {}
class Csv {}

function isCsv<Form>(): bool {
  return idof<Form>() == idof<Csv>();
}

const descriptorBytes: usize = 32;
/** Counted from the first column. */
const keyOffset: usize = 0;
const keyBytesOffset: usize = 4;
const kindOffset: usize = 8;
/** 0: every row is present. */
const validityOffset: usize = 12;
/** 0: the row is the entry. */
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

/** The address behind what `writeJsonRows` has written. */
let end: usize = 0;

/** The address behind the last line that `writeJsonRows` has written. */
export function jsonEnd(): usize {
  return end;
}

/** The double that `writeJsonRows` stopped at because it has more than three decimals, its column and its place; -1 for none. */
let double: f64 = 0;
let doubleColumn: i32 = -1;
let doubleAt: usize = 0;

/** The column of the double that `writeJsonRows` leaves to its caller; -1 when it stopped for want of room, or at the end. */
export function jsonDoubleColumn(): i32 {
  return doubleColumn;
}

/** The double that `writeJsonRows` leaves to its caller. */
export function jsonDouble(): f64 {
  return double;
}

/** Where the caller writes it. */
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

/** `{"_cursor":"` and the cursor. */
function writeCursor(at: usize, cursor: u64): usize {
  store<u64>(at, 0x6f737275635f227b);
  store<u32>(at, 0x223a2272, 8);
  at = writeDigits(at + 12, cursor);
  store<u8>(at, 0x22);
  return at + 1;
}

/** Sixteen hexadecimal digits. */
function writeDigits(at: usize, cursor: u64): usize {
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
 * Writes a value, null as nothing in CSV; returns 0 for a double of more than three decimals, and for a string whose longest form passes
 * `atMax`.
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

/** A control character takes six bytes in JSON; in CSV none takes more than two. */
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

/** Rows that are looked at before they are written: what they touch fits the near caches, and their misses are waited for together. */
const rowsAhead: u32 = 64;
/** Rows that are this far apart, on average, share hardly a cache line; denser ones are read ahead by the processor itself. */
const sparseDistance: u32 = 4;
const lineOfCache: u32 = 64;
/** The rest of a longer string the processor reads ahead by itself. */
const touchedBytesMax: u32 = 512;

/** The row at an index of a list. */
function rowOf(rows: usize, index: u32): u32 {
  return load<u32>(rows + ((<usize>index) << 2));
}

/** The row at an index of a list; the index itself where there is no list. */
function rowAt(rows: usize, index: u32): u32 {
  return rows == 0 ? index : rowOf(rows, index);
}

/** Whether rows are codes of more than 256 entries. */
function hasManyEntries(column: usize): bool {
  return load<u32>(column, codesOffset) != 0 && load<u32>(column, codeBytesOffset) == 2;
}

/** Takes what was loaded only to be near: a load whose value nobody took would not be made. */
let touched: u32 = 0;

/** Loads the codes of these rows, and which of them are null. */
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

/** Loads the numbers of these rows, or where their strings begin. */
function touchEntries(column: usize, rows: usize, from: u32, to: u32): u32 {
  const offsets = <usize>load<u32>(column, offsetsOffset);
  const entries = offsets != 0 ? offsets : <usize>load<u32>(column, dataOffset);
  const shift: usize = offsets != 0 ? 2 : 3;
  let sum: u32 = 0;
  // Loops of their own for the two kinds that lists of rows mostly need: the fewer instructions a load takes, the more are under way.
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
 * Loads the strings of these rows: of each as many lines of the cache as the longest has. Their own number, which no processor could
 * foresee, would be waited for with every string.
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

/** Whether the codes of the rows are scattered. */
function areCodesFar(column: usize, rows: usize): bool {
  return rows != 0 && load<u32>(column, kindOffset) != kindNull;
}

/** Whether the entries of the rows are scattered: those of a dictionary with up to 256 are near after a few rows. */
function areEntriesFar(column: usize, rows: usize): bool {
  const isListed = rows != 0 && load<u32>(column, codesOffset) == 0;
  return load<u32>(column, kindOffset) != kindNull && (isListed || hasManyEntries(column));
}

/**
 * Loads what the values of these rows are made of, where that is scattered: all of scattered rows, and of rows that follow one another
 * (where `rows` is 0) the entries of dictionaries that no near cache holds. Written one after the other, each such value is waited for
 * by itself, for a miss that takes longer than the writing; here no load depends on another of the same sweep over the columns, so that
 * many are under way.
 */
function touchRows(columns: usize, columnsEnd: usize, rows: usize, from: u32, to: u32): void {
  let sum = touched;
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (areCodesFar(column, rows)) sum += touchCodes(column, rows, from, to);
  }
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (areEntriesFar(column, rows)) sum += touchEntries(column, rows, from, to);
  }
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (areEntriesFar(column, rows) && load<u32>(column, offsetsOffset) != 0)
      sum += touchStrings(column, rows, from, to);
  }
  touched = sum;
}

/** The rows before this one have been looked at; a call that goes on with a line goes on from there. */
let seen: u32 = 0;

/** Whether the rows at [from, to) of a list stand far apart. */
function isSparse(rows: usize, from: u32, to: u32): bool {
  return rowAt(rows, to - 1) - rowAt(rows, from) >= (to - from) * sparseDistance;
}

/**
 * Writes the lines of rows[from], rows[from + 1], … up to `to` from `at` on, or of the rows from, from + 1, … where `rows` is 0,
 * while there surely is room before `atMax`, which slack follows: before each value, for its longest form and `fixedBytes`.
 * Returns the index of the first row not written: one without room, or one with a double of more than three decimals
 * (`jsonDoubleColumn`), which the caller writes and then goes on at the column behind it, `firstColumn`. The cursor of a row is
 * `cursorOf0` + ordinals[i], or + i where `ordinals` is 0. Of JSON a comma stands before each line where `lead` is 1; none where it is 0.
 */
function writeRows<Form>(
  columns: usize,
  columnCount: u32,
  fixedBytes: u32,
  rows: usize,
  ordinals: usize,
  from: u32,
  to: u32,
  firstColumn: u32,
  cursorOf0: u64,
  at: usize,
  atMax: usize,
  lead: u32,
): u32 {
  doubleColumn = -1;
  doubleAt = 0;
  let isBegun = firstColumn != 0;
  if (!isBegun) {
    end = at;
    seen = from;
    if (atMax - at < <usize>fixedBytes) return from;
  }
  const columnsEnd = columns + <usize>columnCount * descriptorBytes;
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
      // What follows is written over a comma that is not wanted.
      if (!isCsv<Form>()) store<u8>(at, 0x2c);
      at = isCsv<Form>() ? writeDigits(at, cursor) : writeCursor(at + lead, cursor);
    }
    isBegun = false;
    for (; column < columnsEnd; column += descriptorBytes) {
      const keyBytes = load<u32>(column, keyBytesOffset);
      copyLoose(at, columns + <usize>load<u32>(column, keyOffset), keyBytes);
      at = writeValue<Form>(at + keyBytes, column, row, valuesMax);
      if (at == 0) {
        if (doubleAt != 0) doubleColumn = <i32>((column - columns) / descriptorBytes);
        return i;
      }
    }
    column = columns;
    store<u16>(at, isCsv<Form>() ? 0x0a0d : 0x0a7d);
    at += 2;
    end = at;
  }
  return to;
}

/** Writes rows as objects of JSON, one a line. */
export function writeJsonRows(
  columns: usize,
  columnCount: u32,
  fixedBytes: u32,
  rows: usize,
  ordinals: usize,
  from: u32,
  to: u32,
  firstColumn: u32,
  cursorOf0: u64,
  at: usize,
  atMax: usize,
  lead: u32,
): u32 {
  return writeRows<Json>(
    columns,
    columnCount,
    fixedBytes,
    rows,
    ordinals,
    from,
    to,
    firstColumn,
    cursorOf0,
    at,
    atMax,
    lead,
  );
}

/** Writes rows as records of CSV. The keys of the columns are the commas before their values. */
export function writeCsvRows(
  columns: usize,
  columnCount: u32,
  fixedBytes: u32,
  rows: usize,
  ordinals: usize,
  from: u32,
  to: u32,
  firstColumn: u32,
  cursorOf0: u64,
  at: usize,
  atMax: usize,
): u32 {
  return writeRows<Csv>(
    columns,
    columnCount,
    fixedBytes,
    rows,
    ordinals,
    from,
    to,
    firstColumn,
    cursorOf0,
    at,
    atMax,
    0,
  );
}

/** Room in which the line of rows[index], or of the row `index` where `rows` is 0, is surely written. */
export function jsonLineBytesMax(
  columns: usize,
  columnCount: u32,
  fixedBytes: u32,
  rows: usize,
  index: u32,
): f64 {
  const row = rowAt(rows, index);
  const columnsEnd = columns + <usize>columnCount * descriptorBytes;
  let sizeBytes = 2 * <u64>fixedBytes;
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    if (load<u32>(column, kindOffset) != kindString) continue;
    const place = <usize>load<u32>(column, offsetsOffset) + ((<usize>entryOf(column, row)) << 2);
    sizeBytes += stringBytesMax(load<u32>(place, 4) - load<u32>(place));
  }
  return <f64>sizeBytes;
}
