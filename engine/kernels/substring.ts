/**
 * Strings of a column's bytes compared with a needle, ASCII letters without regard to case, into a bitmap.
 * Plain TypeScript twins of the SIMD kernels. What ASCII folding can't tell is the caller's affair.
 *
 * Row r is bytes[offsets[r], offsets[r + 1]). `from` is a multiple of 8; the bytes of `out` for the rows [from, to) are
 * overwritten, bits past `to` with 0. Needles are folded (no upper-case ASCII letter) unless said otherwise.
 */

/** Byte → the byte with an ASCII letter in lower case. */
export const asciiFold = buildAsciiFold();

function buildAsciiFold(): Uint8Array {
  const fold = new Uint8Array(256);
  for (let i = 0; i < 256; i++) fold[i] = i >= 0x41 && i <= 0x5a ? i | 0x20 : i;
  return fold;
}

/** Whether bytes[at, at + needle.length) folds to `needle`. */
export function foldedEqualAt(bytes: Uint8Array, at: number, needle: Uint8Array): boolean {
  for (let i = 0; i < needle.length; i++) {
    if (asciiFold[bytes[at + i]!] !== needle[i]) return false;
  }
  return true;
}

/** Whether bytes[at, at + needle.length) is `needle`, byte for byte. */
export function equalAt(bytes: Uint8Array, at: number, needle: Uint8Array): boolean {
  for (let i = 0; i < needle.length; i++) {
    if (bytes[at + i] !== needle[i]) return false;
  }
  return true;
}

/** Rows that are the needle, byte for byte (which is not folded). */
export function selectEqual(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const length = needle.length;
  for (let row = from; row < to; row += 8) {
    const end = row + 8 < to ? row + 8 : to;
    let byte = 0;
    for (let r = row, bit = 1; r < end; r++, bit <<= 1) {
      const start = offsets[r]!;
      if (offsets[r + 1]! - start === length && equalAt(bytes, start, needle)) byte |= bit;
    }
    out[row >> 3] = byte;
  }
}

/** Rows that begin with the needle. */
export function selectPrefix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const length = needle.length;
  for (let row = from; row < to; row += 8) {
    const end = row + 8 < to ? row + 8 : to;
    let byte = 0;
    for (let r = row, bit = 1; r < end; r++, bit <<= 1) {
      const start = offsets[r]!;
      if (offsets[r + 1]! - start >= length && foldedEqualAt(bytes, start, needle)) byte |= bit;
    }
    out[row >> 3] = byte;
  }
}

/** Rows that end with the needle. */
export function selectSuffix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const length = needle.length;
  for (let row = from; row < to; row += 8) {
    const end = row + 8 < to ? row + 8 : to;
    let byte = 0;
    for (let r = row, bit = 1; r < end; r++, bit <<= 1) {
      const stop = offsets[r + 1]!;
      if (stop - offsets[r]! >= length && foldedEqualAt(bytes, stop - length, needle)) byte |= bit;
    }
    out[row >> 3] = byte;
  }
}

/** What a search needs to know of its needle, computed once a query. */
export interface SearchTables {
  /** Folded; not empty. */
  readonly needle: Uint8Array;
  /** Text byte under the needle's last one → how far the needle may move on (Horspool). Both cases alike. */
  readonly skips: Int32Array;
  /** Length of the longest border of the needle's first i + 1 bytes (Knuth, Morris, Pratt). */
  readonly borders: Int32Array;
  /** No byte of the needle is an ASCII letter: the machine's own search finds it. */
  readonly letterless: boolean;
}

/** Prepares a search for `needle`, which is folded and not empty. */
export function buildSearchTables(needle: Uint8Array): SearchTables {
  const last = needle.length - 1;
  const skips = new Int32Array(256).fill(needle.length);
  let letterless = true;
  for (let i = 0; i <= last; i++) {
    const byte = needle[i]!;
    const isLetter = byte >= 0x61 && byte <= 0x7a;
    if (isLetter) letterless = false;
    if (i === last) break;
    skips[byte] = last - i;
    if (isLetter) skips[byte & 0xdf] = last - i;
  }
  const borders = new Int32Array(needle.length);
  for (let i = 1, border = 0; i <= last; i++) {
    while (border > 0 && needle[i] !== needle[border]) border = borders[border - 1]!;
    if (needle[i] === needle[border]) border++;
    borders[i] = border;
  }
  return { needle, skips, borders, letterless };
}

/** A search that has compared this many bytes more than it has passed changes to the linear one. */
const slackBytes = 256;

/** Where the needle is first found in bytes[from, to), or -1. Time is linear whatever the bytes. */
export function findFolded(bytes: Uint8Array, from: number, to: number, tables: SearchTables): number {
  const { needle, skips } = tables;
  const last = needle.length - 1;
  const lastByte = needle[last]!;
  let at = from + last;
  let compared = 0;
  while (at < to) {
    const byte = bytes[at]!;
    if (asciiFold[byte] === lastByte) {
      const start = at - last;
      let i = 0;
      while (i < last && asciiFold[bytes[start + i]!] === needle[i]) i++;
      if (i === last) return start;
      compared += i;
      if (compared > start - from + slackBytes) return findFoldedLinear(bytes, start + 1, to, tables);
    }
    at += skips[byte]!;
  }
  return -1;
}

/** `findFolded` by the borders: reads each byte once, so that periodic text and needle cost no more than others. */
function findFoldedLinear(bytes: Uint8Array, from: number, to: number, tables: SearchTables): number {
  const { needle, borders } = tables;
  const length = needle.length;
  let matched = 0;
  for (let i = from; i < to; i++) {
    const byte = asciiFold[bytes[i]!]!;
    while (matched > 0 && byte !== needle[matched]) matched = borders[matched - 1]!;
    if (byte === needle[matched]) matched++;
    if (matched === length) return i - length + 1;
  }
  return -1;
}

/** The row of [row, to) that holds the byte at `at`; gallops from `row`, since hits come in ascending order. */
export function rowAt(offsets: Uint32Array, row: number, to: number, at: number): number {
  let low = row;
  let step = 1;
  while (low + step < to && offsets[low + step]! <= at) {
    low += step;
    step <<= 1;
  }
  let high = low + step < to ? low + step : to;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (offsets[middle]! <= at) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Rows that contain the needle. The bytes of all rows are searched as one text; a hit that crosses the end of its row
 * is none, and then no later place in that row can be one either.
 */
export function selectContaining(
  offsets: Uint32Array,
  bytes: Uint8Array,
  tables: SearchTables,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  out.fill(0, from >> 3, (to + 7) >> 3);
  const length = tables.needle.length;
  const end = offsets[to]!;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, end);
  let row = from;
  while (row < to) {
    // A row shorter than the needle can't hold it; passing over such rows keeps the whole search linear.
    if (offsets[row + 1]! - offsets[row]! < length) {
      row++;
      continue;
    }
    const at = tables.letterless
      ? text.indexOf(tables.needle, offsets[row])
      : findFolded(bytes, offsets[row]!, end, tables);
    if (at < 0) return;
    row = rowAt(offsets, row, to, at);
    if (at + length <= offsets[row + 1]!) out[row >> 3]! |= 1 << (row & 7);
    row++;
  }
}
