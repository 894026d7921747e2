import { foldRanges } from './fold-table.js';

/** No code point from here on folds to another one. */
export const foldEnd = 0x1e944;

/** Below this, in ASCII, letters fold to lower case and nothing else has case variants. */
const asciiEnd = 0x80;

/** Maps a code point to its folded form. Built on first use, because most processes only see ASCII. */
let foldTable: Uint32Array | undefined;

function table(): Uint32Array {
  if (foldTable !== undefined) return foldTable;
  const built = new Uint32Array(foldEnd);
  for (let i = 0; i < foldEnd; i++) built[i] = i;
  for (let i = 0; i < foldRanges.length; i += 4) {
    const last = foldRanges[i + 1]!;
    const stride = foldRanges[i + 2]!;
    const add = foldRanges[i + 3]!;
    for (let point = foldRanges[i]!; point <= last; point += stride) built[point] = point + add;
  }
  foldTable = built;
  return built;
}

/**
 * Folds one code point, as an escaped JavaScript `/…/iu` does: two texts are equal to such a pattern if their folded forms are equal, code
 * point by code point. A code point folds to exactly one. ASCII letters fold to lower case, as do U+017F (to s) and U+212A (to k).
 */
export function foldCodePoint(point: number): number {
  if (point < asciiEnd) return point >= 0x41 && point <= 0x5a ? point | 0x20 : point;
  return point < foldEnd ? table()[point]! : point;
}

let variantPoints: Set<number> | undefined;

/** Whether another code point folds to the same form. If none of a needle's does, case can be ignored. */
export function hasCaseVariants(point: number): boolean {
  if (point < asciiEnd) return (point | 0x20) >= 0x61 && (point | 0x20) <= 0x7a;
  if (variantPoints === undefined) {
    variantPoints = new Set();
    const folds = table();
    for (let i = 0; i < foldEnd; i++) {
      if (folds[i] !== i) variantPoints.add(i).add(folds[i]!);
    }
  }
  return variantPoints.has(point);
}

/** The folded form of `text`. */
export function foldText(text: string): string {
  let folded = '';
  for (const character of text) folded += String.fromCodePoint(foldCodePoint(character.codePointAt(0)!));
  return folded;
}

/** The largest number of bytes that `lengthBytes` bytes of UTF-8 can fold to: U+023A and U+023E grow from two bytes to three. */
export function foldedBytesMax(lengthBytes: number): number {
  return lengthBytes + (lengthBytes >> 1) + 1;
}

/**
 * Folds the UTF-8 of `input[start, end)` into `output` from `at` on, which must have room for `foldedBytesMax` of its bytes. Returns the end in
 * `output`. Bytes that are not UTF-8 are copied unchanged.
 */
export function foldRange(
  input: Uint8Array,
  start: number,
  end: number,
  output: Uint8Array,
  at: number,
): number {
  let i = start;
  let o = at;
  while (i < end) {
    const byte = input[i]!;
    if (byte < 0x80) {
      output[o++] = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
      i++;
      continue;
    }
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    if (length === 1 || i + length > end) {
      output[o++] = byte;
      i++;
      continue;
    }
    const point = pointAt(input, i);
    const folded = foldCodePoint(point);
    if (folded === point) {
      for (let k = 0; k < length; k++) output[o++] = input[i + k]!;
    } else {
      o = encodePoint(folded, output, o);
    }
    i += length;
  }
  return o;
}

/** The folded UTF-8 of `text`, in which form needles are searched and gram filters are asked. */
export function foldNeedle(text: string): Uint8Array {
  return new TextEncoder().encode(foldText(text));
}

/** Whether `bytes` has U+017F or U+212A, which fold to the ASCII letters s and k. */
export function hasFoldingToAscii(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.indexOf('\u017f', 0, 'utf8') >= 0 || buffer.indexOf('\u212a', 0, 'utf8') >= 0;
}

/** Length in bytes of the UTF-8 character that begins with `first`. The text must be valid. */
export function pointLength(first: number): number {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/** The code point that begins at `at`. The text must be valid UTF-8. */
export function pointAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at]!;
  if (first < 0x80) return first;
  const second = bytes[at + 1]! & 0x3f;
  if (first < 0xe0) return ((first & 0x1f) << 6) | second;
  const third = bytes[at + 2]! & 0x3f;
  if (first < 0xf0) return ((first & 0x0f) << 12) | (second << 6) | third;
  return ((first & 0x07) << 18) | (second << 12) | (third << 6) | (bytes[at + 3]! & 0x3f);
}

/** Writes the UTF-8 of `point` at `at`, and returns its end. */
function encodePoint(point: number, output: Uint8Array, at: number): number {
  let o = at;
  if (point < 0x80) {
    output[o++] = point;
  } else if (point < 0x800) {
    output[o++] = 0xc0 | (point >> 6);
    output[o++] = 0x80 | (point & 0x3f);
  } else if (point < 0x10000) {
    output[o++] = 0xe0 | (point >> 12);
    output[o++] = 0x80 | ((point >> 6) & 0x3f);
    output[o++] = 0x80 | (point & 0x3f);
  } else {
    output[o++] = 0xf0 | (point >> 18);
    output[o++] = 0x80 | ((point >> 12) & 0x3f);
    output[o++] = 0x80 | ((point >> 6) & 0x3f);
    output[o++] = 0x80 | (point & 0x3f);
  }
  return o;
}
