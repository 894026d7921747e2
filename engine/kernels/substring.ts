/**
 * Compares the strings of a column with a needle. ASCII letters are compared without case unless said otherwise. The caller treats strings
 * where ASCII folding does not suffice.
 *
 * Row r is bytes[offsets[r], offsets[r + 1]). The kernels look at the rows [from, to); `from` must be a multiple of 8. The bytes of `out`
 * for these rows are overwritten; bits after `to` become 0.
 */
import { openScratch, scratchBytes, type Scratch } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';
import { affixEnd, affixStart, type KernelNeedle } from './needle.js';

/** Byte → lower case for ASCII letters; other bytes are unchanged. */
export const asciiFold = buildAsciiFold();

function buildAsciiFold(): Uint8Array {
  const fold = new Uint8Array(256);
  for (let i = 0; i < 256; i++) fold[i] = i >= 0x41 && i <= 0x5a ? i | 0x20 : i;
  return fold;
}

/** Whether bytes[at, at + needle.length) with ASCII letters folded equals `needle`. */
export function foldedEqualAt(bytes: Uint8Array, at: number, needle: Uint8Array): boolean {
  for (let i = 0; i < needle.length; i++) {
    if (asciiFold[bytes[at + i]!] !== needle[i]) return false;
  }
  return true;
}

/** Whether bytes[at, at + needle.length) equals `needle`, byte for byte. */
export function equalAt(bytes: Uint8Array, at: number, needle: Uint8Array): boolean {
  for (let i = 0; i < needle.length; i++) {
    if (bytes[at + i] !== needle[i]) return false;
  }
  return true;
}

/** Tables for searching a needle, computed once per query. */
export interface SearchTables {
  /** Case-folded; not empty. */
  readonly needle: Uint8Array;
  /**
   * Horspool's table: how far the needle can be moved on, for each byte of the text at the needle's last place. It is the same for both
   * cases of a letter.
   */
  readonly skips: Int32Array;
  /** The failure function of Knuth, Morris and Pratt: the length of the longest border of the needle's first i + 1 bytes. */
  readonly borders: Int32Array;
}

/** Makes the tables for a needle, which must be case-folded and not empty. */
export function buildSearchTables(needle: Uint8Array): SearchTables {
  const last = needle.length - 1;
  const skips = new Int32Array(256).fill(needle.length);
  for (let i = 0; i <= last; i++) {
    const byte = needle[i]!;
    const isLetter = byte >= 0x61 && byte <= 0x7a;
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
  return { needle, skips, borders };
}

/** When a search has compared this many more bytes than it has passed, it changes to the linear algorithm. */
const extraComparedMax = 256;

/** The offset of the first match in bytes[from, to), or -1. Takes linear time for any text and needle. */
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
      if (compared > start - from + extraComparedMax) return findFoldedLinear(bytes, start + 1, to, tables);
    }
    at += skips[byte]!;
  }
  return -1;
}

/** `findFolded` by Knuth, Morris and Pratt: reads each byte once, so that periodic text takes no longer than other text. */
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

/** The row of [row, to) that contains the byte at offset `at`. Gallops from `row` on, because matches come in ascending order. */
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

/** The addresses of a column and a needle in the kernels' memory. */
interface Placed {
  readonly scratch: Scratch;
  readonly bytesAt: number;
  readonly offsetsAt: number;
  readonly needleAt: number;
  /** The address that the bits of row 0 would have. */
  readonly outAt: number;
}

/** Places the arguments for a kernel. `search` calls it, and it writes the bits of the rows [from, to). */
function select(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
  search: (placed: Placed) => void,
): void {
  const start = offsets[from]!;
  const length = offsets[to]! - start;
  const first = from >> 3;
  const outBytes = ((to + 7) >> 3) - first;
  const scratch = openScratch(
    scratchBytes(bytes, length) +
      scratchBytes(offsets, to - from + 1) +
      scratchBytes(out, outBytes) +
      needle.planes.length,
  );
  const outAt = scratch.target(out, first, outBytes);
  search({
    scratch,
    outAt: outAt - first,
    // The offsets are not adjusted. Instead the kernel gets the address that offset 0 would have.
    bytesAt: scratch.place(bytes, start, start + length) - start,
    offsetsAt: scratch.place(offsets, from, to + 1) - from * 4,
    needleAt: scratch.place(needle.planes, 0, needle.planes.length),
  });
  scratch.copyOut(outAt, out, first, outBytes);
}

/**
 * Selects the rows that contain the needle. `tables` must be made for the same needle. The kernel gives up on periodic text where it
 * compares far more bytes than it passes; then the rows are searched one by one, in linear time.
 */
export function selectContaining(
  offsets: Uint32Array,
  bytes: Uint8Array,
  tables: SearchTables,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const { length, first, second } = needle;
  let found = 0;
  select(offsets, bytes, needle, from, to, out, ({ scratch, bytesAt, offsetsAt, needleAt, outAt }) => {
    const kernels = kernelsOver(scratch);
    found = kernels.selectContaining(bytesAt, offsetsAt, from, to, needleAt, length, first, second, outAt);
  });
  if (found >= 0) return;
  out.fill(0, from >> 3, (to + 7) >> 3);
  for (let row = from; row < to; row++) {
    if (findFolded(bytes, offsets[row]!, offsets[row + 1]!, tables) >= 0) out[row >> 3]! |= 1 << (row & 7);
  }
}

/** Selects the rows that equal the needle, byte for byte. */
export function selectEqual(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  select(offsets, bytes, needle, from, to, out, ({ scratch, bytesAt, offsetsAt, needleAt, outAt }) =>
    kernelsOver(scratch).selectEqual(bytesAt, offsetsAt, from, to, needleAt, needle.length, outAt),
  );
}

/** Selects the rows that begin with the needle. */
export function selectPrefix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  selectAffix(offsets, bytes, needle, affixStart, from, to, out);
}

/** Selects the rows that end with the needle. */
export function selectSuffix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  selectAffix(offsets, bytes, needle, affixEnd, from, to, out);
}

function selectAffix(
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: KernelNeedle,
  kind: number,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  select(offsets, bytes, needle, from, to, out, ({ scratch, bytesAt, offsetsAt, needleAt, outAt }) =>
    kernelsOver(scratch).selectAffix(bytesAt, offsetsAt, from, to, needleAt, needle.length, kind, outAt),
  );
}
