/**
 * Strings of a column's bytes compared with a needle, ASCII letters without regard to case unless said otherwise. What ASCII folding
 * can't tell is the caller's affair.
 *
 * Row r is bytes[offsets[r], offsets[r + 1]). Kernels look at the rows [from, to), of which `from` is a multiple of 8; the bytes of
 * `out` for these rows are overwritten, bits past `to` with 0.
 */
import { openScratch, scratchBytes, type Scratch } from '../memory/scratch.js';
import { kernelsOver } from './kernels.js';
import { affixEnd, affixStart, type KernelNeedle } from './needle.js';

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

/** What a search needs to know of its needle, computed once a query. */
export interface SearchTables {
  /** Folded; not empty. */
  readonly needle: Uint8Array;
  /** Text byte under the needle's last one → how far the needle may move on (Horspool). Both cases alike. */
  readonly skips: Int32Array;
  /** Length of the longest border of the needle's first i + 1 bytes (Knuth, Morris, Pratt). */
  readonly borders: Int32Array;
}

/** Prepares a search for `needle`, which is folded and not empty. */
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

/** The column and the needle where the kernel finds them. */
interface Placed {
  readonly scratch: Scratch;
  readonly bytesAt: number;
  readonly offsetsAt: number;
  readonly needleAt: number;
  /** Where the bits of row 0 would be. */
  readonly outAt: number;
}

/** Has `search` write the bits of the rows [from, to) to `out`. */
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
    // Offsets stay as they are: the address that they count from is that of the text they belong to.
    bytesAt: scratch.place(bytes, start, start + length) - start,
    offsetsAt: scratch.place(offsets, from, to + 1) - from * 4,
    needleAt: scratch.place(needle.planes, 0, needle.planes.length),
  });
  scratch.copyOut(outAt, out, first, outBytes);
}

/**
 * Rows that contain the needle, which `tables` is for. The kernel gives text up that is so periodic that it compares far more bytes than
 * it passes: then rows are searched one by one, in linear time.
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

/** Rows that are the needle, byte for byte, case and all. */
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

/** Rows that begin with the needle. */
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

/** Rows that end with the needle. */
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
