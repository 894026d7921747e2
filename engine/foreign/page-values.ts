import { isAscii, isUtf8 } from 'node:buffer';
import {
  type Column,
  type DictionaryColumn,
  type PlainColumn,
  halvesOf,
  type NumberColumn,
  type BytesColumn,
} from '../columns/column.js';
import { decodeHybrid, largestCode } from '../kernels/bit-packing.js';
import { spreadBits } from '../kernels/bitmap.js';
import { spreadCodes, spreadWords, spreadOffsets } from '../kernels/spread.js';
import { encoding, FormatError, physicalType } from '../parquet/format.js';
import type { StoredPage } from './chunk-pages.js';
import { takeColumn } from '../columns/take.js';
import { copyFromShared, copyShifted } from '../kernels/copy.js';
import { decodeDelta, decodeLengths, decodePrefixed } from '../kernels/delta.js';
import {
  divideDown,
  divideToFloats,
  dropInfinite,
  joinStreams,
  multiply,
  noneNegative,
  widenFloat32,
  widenInt32,
  wrapInt32,
} from '../kernels/stored-numbers.js';
import { LogstrataError } from '../core/errors.js';
import type { ForeignColumn } from './foreign-file.js';
import type { ParquetStorage } from './parquet-schema.js';
import { decodePlainStrings } from '../kernels/plain-strings.js';
import { foreignSpanBytesMax } from '../core/limits.js';
import { repairFactorMax, repairUtf8Into } from '../core/utf8.js';

/** Up to this many dictionary entries, a code fits one byte. */
const byteEntriesMax = 256;

/** Collects the dictionary codes of consecutive pages. */
export class CodePages {
  readonly #codes: Uint8Array | Uint16Array;
  readonly #entries: PlainColumn;

  /** @param entries the dictionary's entries, converted to the column's type; at least one */
  constructor(rows: number, entries: PlainColumn) {
    this.#codes = entries.length <= byteEntriesMax ? new Uint8Array(rows) : new Uint16Array(rows);
    this.#entries = entries;
  }

  /** The codes of all rows, with the dictionary. */
  get column(): DictionaryColumn {
    const codes = this.#codes;
    return { kind: 'dictionary', length: codes.length, codes, values: this.#entries, validity: null };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits } = page;
    const codes = this.#codes.subarray(row, row + rows);
    decodeCodes(page, codes, this.#entries.length);
    if (bits !== null) spreadCodes(codes, bits, rows, present);
  }
}

/** Decodes the codes of a page to the beginning of `codes`. Throws `FormatError`, also for a code beyond the dictionary. */
function decodeCodes(page: StoredPage, codes: Uint8Array | Uint16Array, entries: number): void {
  const width = page.values[0] ?? 0;
  if (width > 8 * codes.BYTES_PER_ELEMENT) {
    // The bit width is larger than the array's elements, but no valid code is.
    codes.set(decodeEntryCodes(page, entries));
    return;
  }
  checkCodes(page, decodeHybrid(page.values, 1, page.present, width, codes), codes, entries);
}

/** Decodes the codes of a page, for a dictionary of any size. Throws `FormatError`, also for a code beyond the dictionary. */
export function decodeEntryCodes(page: StoredPage, entries: number): Uint32Array {
  const codes = new Uint32Array(page.present);
  checkCodes(page, decodeHybrid(page.values, 1, page.present, page.values[0] ?? 0, codes), codes, entries);
  return codes;
}

function checkCodes(
  { present, at, values }: StoredPage,
  end: number,
  codes: Uint8Array | Uint16Array | Uint32Array,
  entries: number,
): void {
  if (present > 0 && (values.length === 0 || end < 0))
    throw new FormatError('the dictionary codes are malformed', at);
  if (largestCode(codes, present) >= entries)
    throw new FormatError('a code is beyond the end of the dictionary', at);
}

/** Collects the booleans of consecutive pages as codes 0 and 1. */
export class BoolPages {
  readonly #codes: Uint8Array;

  constructor(rows: number) {
    this.#codes = new Uint8Array(rows);
  }

  /** The booleans of all rows, as codes into a dictionary of 0 and 1. */
  get column(): DictionaryColumn {
    const values = BigInt64Array.of(0n, 1n);
    return {
      kind: 'dictionary',
      length: this.#codes.length,
      codes: this.#codes,
      values: { kind: 'int64', length: 2, values, validity: null },
      validity: null,
    };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits, at, values } = page;
    const codes = this.#codes.subarray(row, row + rows);
    if (page.encoding === encoding.plain) {
      if (values.length < (present + 7) >> 3)
        throw new FormatError(`the page has ${values.length} bytes for ${present} bits`, at);
      spreadBits(values, present, codes);
    } else if (page.encoding === encoding.rle) {
      // The runs are preceded by their length in four bytes.
      const read = present === 0 ? 0 : values.length < 4 ? -1 : decodeHybrid(values, 4, present, 1, codes);
      if (read < 0) throw new FormatError('the runs are malformed', at);
    } else {
      throw new FormatError(`the encoding ${page.encoding} is not supported for booleans`, at);
    }
    if (bits !== null) spreadCodes(codes, bits, rows, present);
  }
}

type Values = BigInt64Array | Float64Array;

/** Collects the numbers of consecutive pages in one array, as stored but widened to signed 64-bit integers or doubles. */
export class NumberPages {
  readonly #stored: ParquetStorage;
  readonly #is32: boolean;
  readonly #isFloat: boolean;
  readonly #values: Values;
  readonly #entries: NumberColumn | null;

  /** @param entries the dictionary's entries, as stored */
  constructor(rows: number, stored: ParquetStorage, entries: NumberColumn | null) {
    const { type } = stored;
    this.#stored = stored;
    this.#is32 = type === physicalType.int32 || type === physicalType.float;
    this.#isFloat = type === physicalType.float || type === physicalType.double;
    this.#values = this.#isFloat ? new Float64Array(rows) : new BigInt64Array(rows);
    this.#entries = entries;
  }

  /** The numbers as stored. */
  get column(): NumberColumn {
    const values = this.#values;
    const common = { length: values.length, validity: null };
    return values instanceof Float64Array
      ? { kind: 'float64', ...common, values }
      : { kind: 'int64', ...common, values };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits } = page;
    if (present > 0) this.#decode(page, this.#values.subarray(row, row + present));
    if (bits !== null) spreadWords(halvesOf(this.#values.subarray(row, row + rows)), bits, rows, present);
  }

  #decode(page: StoredPage, target: Values): void {
    const { present, values, at } = page;
    const storedBytes = present * (this.#is32 ? 4 : 8);
    switch (page.encoding) {
      case encoding.plain:
        if (values.length < storedBytes) throw tooShort(page);
        this.#widen(values, present, target);
        return;
      case encoding.byteStreamSplit: {
        if (values.length < storedBytes) throw tooShort(page);
        const joined = new Uint8Array(storedBytes);
        joinStreams(values, 0, present, this.#is32 ? 4 : 8, joined);
        this.#widen(joined, present, target);
        return;
      }
      case encoding.deltaBinaryPacked:
        if (!(target instanceof BigInt64Array))
          throw new FormatError('the page has delta-encoded integers, but the column has another type', at);
        if (decodeDelta(values, 0, target, present) < 0)
          throw new FormatError('the delta-encoded integers are malformed', at);
        if (this.#is32) wrapInt32(target, this.#stored.isUnsigned);
        return;
      case encoding.plainDictionary:
      case encoding.rleDictionary: {
        if (this.#entries === null)
          throw new FormatError('the page has dictionary codes, but there is no dictionary', at);
        const taken = takeColumn(this.#entries, decodeEntryCodes(page, this.#entries.length)) as NumberColumn;
        halvesOf(target).set(halvesOf(taken.values));
        return;
      }
      default:
        throw new FormatError(`the encoding ${page.encoding} is not supported for numbers`, at);
    }
  }

  /** Reads numbers of the stored width, 32 or 64 bits. */
  #widen(source: Uint8Array, count: number, target: Values): void {
    if (!this.#is32)
      copyFromShared(source.subarray(0, count * 8), new Uint8Array(target.buffer, target.byteOffset), 0);
    else if (target instanceof Float64Array) widenFloat32(source, 0, count, target);
    else widenInt32(source, 0, count, target, this.#stored.isUnsigned);
  }
}

function tooShort({ present, values, at }: StoredPage): FormatError {
  return new FormatError(`the page has ${values.length} bytes for ${present} numbers`, at);
}

/** Whether some stored numbers may have no value of the column's type. Rows with them become null. */
export function mayDrop({ values }: ForeignColumn, { type }: ParquetStorage): boolean {
  return (
    type === physicalType.float || type === physicalType.double || (values.kind === 'ticks' && values.ms > 1)
  );
}

/**
 * Converts stored numbers to the column's type, in place. A number that the type can't hold becomes 0, and its bit in `bits`
 * is cleared; `bits` has one bit per row and is needed where `mayDrop` is true. Returns the number of these. Throws
 * `FormatError` for unsigned integers above 2^63 - 1 where the file's bounds exclude them.
 */
export function convertNumbers(
  stored: NumberColumn,
  { type, values: meaning }: ForeignColumn,
  { isUnsigned, scale, type: physical }: ParquetStorage,
  bits: Uint8Array | null,
): { column: NumberColumn; dropped: number } {
  const { values, length } = stored;
  if (values instanceof Float64Array) {
    if (type !== 'float')
      throw new LogstrataError('unsupported', `floats can't be read as values of type ${type}`);
    return { column: stored, dropped: dropInfinite(values, bits!) };
  }
  if (isUnsigned && physical === physicalType.int64 && !noneNegative(values))
    throw new FormatError('an integer is above 2^63 - 1, contrary to the bounds in the file', 0);
  if (type === 'float') {
    const floats = divideToFloats(values, 10 ** scale);
    return { column: { kind: 'float64', length, values: floats, validity: null }, dropped: 0 };
  }
  if (meaning.kind !== 'ticks') return { column: stored, dropped: 0 };
  if (meaning.perMs > 1) divideDown(values, meaning.perMs);
  return { column: stored, dropped: meaning.ms > 1 ? multiply(values, meaning.ms, bits!) : 0 };
}

/** Bytes of the length before each string in PLAIN. */
const lengthBytes = 4;

/** Collects the strings of consecutive pages in one byte array. */
export class StringPages {
  readonly #rows: number;
  readonly #offsets: Uint32Array;
  /** As in `ParquetStorage`. */
  readonly #valueBytes: number;
  readonly #entries: BytesColumn | null;
  #bytes: Uint8Array;
  #end = 0;

  /**
   * @param bytes estimate of the strings' total size
   * @param entries the dictionary's entries, as stored
   */
  constructor(rows: number, bytes: number, { valueBytes }: ParquetStorage, entries: BytesColumn | null) {
    this.#rows = rows;
    this.#offsets = new Uint32Array(rows + 1);
    this.#valueBytes = valueBytes;
    this.#entries = entries;
    this.#bytes = new Uint8Array(bytes);
  }

  /** The strings as stored, which need not be UTF-8. */
  get column(): BytesColumn {
    const bytes = this.#bytes.subarray(0, this.#end);
    return { kind: 'bytes', length: this.#rows, offsets: this.#offsets, bytes, validity: null };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits } = page;
    const offsets = this.#offsets.subarray(row, row + rows + 1);
    const from = this.#end;
    if (present > 0) this.#decode(page, offsets.subarray(0, present + 1));
    if (from > 0) {
      offsets[0] = 0;
      copyShifted(offsets, 0, present + 1, from, offsets, 0);
    }
    if (bits !== null) spreadOffsets(offsets, bits, rows, present);
  }

  /** Decodes the strings of a page. Writes offsets relative to the page's first string. */
  #decode(page: StoredPage, offsets: Uint32Array): void {
    const { present, values, at } = page;
    switch (page.encoding) {
      case encoding.plain: {
        if (this.#valueBytes > 0) {
          this.#append(values.subarray(0, this.#fixedBytes(page, offsets)), at);
          return;
        }
        const bytes = values.length - present * lengthBytes;
        const written = bytes < 0 ? -1 : decodePlainStrings(values, present, this.#room(bytes, at), offsets);
        if (written < 0) {
          const short = bytes < 0 ? `: the page is too short for ${present} strings` : '';
          throw new FormatError(`the strings do not fill their page${short}`, at);
        }
        this.#end += written;
        return;
      }
      case encoding.deltaLengthByteArray: {
        const bytesAt = decodeLengths(values, present, offsets);
        if (bytesAt < 0) throw new FormatError('the lengths do not match the strings', at);
        this.#append(values.subarray(bytesAt), at);
        this.#checkFixed(page, offsets);
        return;
      }
      case encoding.deltaByteArray: {
        const bytesMax = foreignSpanBytesMax - this.#end;
        const bytes = decodePrefixed(values, present, bytesMax, offsets);
        if (bytes === null)
          throw new FormatError(`the strings are malformed, or the page has more than ${bytesMax} bytes`, at);
        this.#append(bytes, at);
        this.#checkFixed(page, offsets);
        return;
      }
      case encoding.byteStreamSplit: {
        if (this.#valueBytes === 0)
          throw new FormatError('strings are stored in an encoding for numbers', at);
        const bytes = this.#fixedBytes(page, offsets);
        joinStreams(values, 0, present, this.#valueBytes, this.#room(bytes, at));
        this.#end += bytes;
        return;
      }
      case encoding.plainDictionary:
      case encoding.rleDictionary:
        this.#takeEntries(page, offsets);
        return;
      default:
        throw new FormatError(`the encoding ${page.encoding} is not supported for strings`, at);
    }
  }

  #takeEntries(page: StoredPage, offsets: Uint32Array): void {
    const entries = this.#entries;
    if (entries === null)
      throw new FormatError('the page has dictionary codes, but there is no dictionary', page.at);
    const codes = decodeEntryCodes(page, entries.length);
    let sum = 0;
    for (const code of codes) sum += entries.offsets[code + 1]! - entries.offsets[code]!;
    this.#checkRoom(sum, page.at);
    const taken = takeColumn(entries, codes) as BytesColumn;
    offsets.set(taken.offsets);
    this.#append(taken.bytes, page.at);
  }

  /** Writes the offsets of fixed-length values. Returns their total bytes, after checking that the page has them. */
  #fixedBytes({ present, values, at }: StoredPage, offsets: Uint32Array): number {
    const bytes = present * this.#valueBytes;
    if (bytes > values.length)
      throw new FormatError(`the page has ${values.length} bytes for ${present} values`, at);
    for (let i = 0; i <= present; i++) offsets[i] = i * this.#valueBytes;
    return bytes;
  }

  #checkFixed({ present, at }: StoredPage, offsets: Uint32Array): void {
    if (this.#valueBytes === 0) return;
    for (let i = 0; i < present; i++)
      if (offsets[i + 1]! - offsets[i]! !== this.#valueBytes)
        throw new FormatError(`a value does not have ${this.#valueBytes} bytes`, at);
  }

  #append(bytes: Uint8Array, at: number): void {
    copyFromShared(bytes, this.#room(bytes.length, at), 0);
    this.#end += bytes.length;
  }

  /** The free part of the buffer, which is enlarged to at least `bytes`. */
  #room(bytes: number, at: number): Uint8Array {
    this.#checkRoom(bytes, at);
    const needed = this.#end + bytes;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.min(foreignSpanBytesMax, Math.max(needed, 2 * this.#bytes.length)));
      larger.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = larger;
    }
    return this.#bytes.subarray(this.#end);
  }

  #checkRoom(bytes: number, at: number): void {
    if (bytes > foreignSpanBytesMax - this.#end)
      throw new FormatError(
        `the strings of neighbouring pages have more than ${foreignSpanBytesMax} bytes`,
        at,
      );
  }
}

/** Whether values are stored as bytes. */
export function isBytes({ type }: ParquetStorage): boolean {
  return (
    type === physicalType.byteArray || type === physicalType.fixedLengthBytes || type === physicalType.int96
  );
}

/** Decodes the values of one page, as stored. Null rows take no slot. Throws `FormatError`. */
export function pageValues(page: StoredPage, storage: ParquetStorage): Column {
  const { present, values } = page;
  const target =
    storage.type === physicalType.boolean
      ? new BoolPages(present)
      : isBytes(storage)
        ? new StringPages(present, values.length, storage, null)
        : new NumberPages(present, storage, null);
  target.add({ ...page, rows: present, bits: null }, 0);
  return target.column;
}

/**
 * Makes strings valid UTF-8: each invalid sequence becomes U+FFFD, and `replaced` counts them. Throws `FormatError` when
 * they grow too long.
 */
export function validText(column: BytesColumn): { column: BytesColumn; replaced: number } {
  const { bytes, offsets, length } = column;
  const used = bytes.subarray(offsets[0], offsets[length]);
  if (isAscii(used) || (isUtf8(used) && beginsWithCharacters(column))) return { column, replaced: 0 };
  return repaired(column);
}

/** Whether no string begins inside a character, in bytes that are valid UTF-8 as a whole. */
function beginsWithCharacters({ bytes, offsets, length }: BytesColumn): boolean {
  for (let row = 0; row < length; row++)
    if ((bytes[offsets[row]!]! & 0xc0) === 0x80 && offsets[row]! < bytes.length) return false;
  return true;
}

function repaired(column: BytesColumn): { column: BytesColumn; replaced: number } {
  const { bytes, offsets, length } = column;
  const bytesMax = repairFactorMax * (offsets[length]! - offsets[0]!);
  // The upper bound may be allocated: the system provides only pages of memory that are written, usually few of them.
  const target = new Uint8Array(Math.min(bytesMax, foreignSpanBytesMax));
  const targetOffsets = new Uint32Array(length + 1);
  let end = 0;
  let replaced = 0;
  const count = (): void => {
    replaced++;
  };
  for (let row = 0; row < length; row++) {
    end = repairUtf8Into(bytes, offsets[row]!, offsets[row + 1]!, target, end, count);
    if (end > target.length)
      throw new FormatError(
        `strings that are not UTF-8 would become more than ${foreignSpanBytesMax} bytes`,
        0,
      );
    targetOffsets[row + 1] = end;
  }
  return { column: { ...column, offsets: targetOffsets, bytes: target.subarray(0, end) }, replaced };
}
