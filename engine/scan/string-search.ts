import { assertNever, LogstrataError } from '../core/errors.js';
import type { BytesColumn } from '../columns/column.js';
import { countRange, listRange, setRange } from '../kernels/bitmap.js';
import { kernelNeedle, type KernelNeedle } from '../kernels/needle.js';
import {
  buildSearchTables,
  equalAt,
  findFolded,
  foldedEqualAt,
  rowAt,
  selectContaining,
  selectEqual,
  selectPrefix,
  selectSuffix,
  type SearchTables,
} from '../kernels/substring.js';
import {
  foldCodePoint,
  foldedBytesMax,
  foldNeedle,
  foldRange,
  hasCaseVariants,
  hasFoldingToAscii,
} from '../core/fold.js';
import type { NeedleOp } from './query.js';

/** The text of a string predicate, prepared once per query. */
export interface Needle {
  readonly op: NeedleOp;
  /** The text as UTF-8. `exact` compares with it. */
  readonly raw: Uint8Array;
  /** The case-folded text as UTF-8. The other operators search for it, and n-gram filters are asked for it. */
  readonly folded: Uint8Array;
  /**
   * Whether comparing bytes finds all matches, except in rows with U+017F or U+212A. For all operators but `exact`, ASCII letters are folded; it
   * does where no character of the needle beyond ASCII has case variants.
   */
  readonly asciiFolding: boolean;
  /** Whether case is folded, and the needle has a letter (k or s) that U+212A or U+017F folds to. */
  readonly meetsFoldingToAscii: boolean;
  /** Only for `like` with a non-empty needle. */
  readonly tables: SearchTables | null;
  /** The bytes to compare, in the form that kernels take: the raw bytes for `exact`, else the folded ones. */
  readonly kernel: KernelNeedle;
}

/** Prepares a needle. Throws `invalid` for text with a lone surrogate, which is not valid Unicode and equals no stored value. */
export function prepareNeedle(op: NeedleOp, value: string): Needle {
  if (/\p{Surrogate}/u.test(value)) {
    throw new LogstrataError('invalid', `${JSON.stringify(value)} is not valid Unicode text`);
  }
  const characters = Array.from(value, (character) => character.codePointAt(0)!);
  const points = Uint32Array.from(characters, foldCodePoint);
  const folded = foldNeedle(value);
  const raw = new TextEncoder().encode(value);
  return {
    op,
    raw,
    folded,
    asciiFolding: op === 'exact' || points.every((point) => point < 0x80 || !hasCaseVariants(point)),
    meetsFoldingToAscii: op !== 'exact' && (points.includes(0x6b) || points.includes(0x73)),
    tables: op === 'like' && folded.length > 0 ? buildSearchTables(folded) : null,
    kernel: op === 'exact' ? kernelNeedle(raw, false) : kernelNeedle(folded, true),
  };
}

/**
 * Sets the bits of `out` for the rows [from, to) to whether they match. `from` must be a multiple of 8. A null is compared as the empty
 * string that the column has for it. The result is that of the regular expression `/…/iu`. Compares bytes where that gives the same result,
 * else code points.
 */
export function selectStrings(
  column: BytesColumn,
  needle: Needle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const { offsets, bytes } = column;
  if (needle.op !== 'exact' && needle.folded.length === 0) {
    out.fill(0, from >> 3, (to + 7) >> 3);
    setRange(out, from, to);
  } else if (needle.asciiFolding) {
    selectByBytes(column, needle, from, to, out);
    if (needle.meetsFoldingToAscii) addRowsFoldingToAscii(column, needle, from, to, out);
  } else {
    out.fill(0, from >> 3, (to + 7) >> 3);
    // A row can match only if it has a byte beyond ASCII: some character of the needle is beyond ASCII and has case variants.
    const text = bytes.subarray(offsets[from]!, offsets[to]!);
    for (let row = rowBeyondAscii(text, offsets, from, to, from); row < to;) {
      if (matchByPoints(bytes, offsets[row]!, offsets[row + 1]!, needle)) out[row >> 3]! |= 1 << (row & 7);
      row = rowBeyondAscii(text, offsets, from, to, row + 1);
    }
  }
}

/** Whether one row matches. For rows that earlier predicates have left, where these are few. */
export function matchString(column: BytesColumn, needle: Needle, row: number): boolean {
  const { bytes } = column;
  const start = column.offsets[row]!;
  const end = column.offsets[row + 1]!;
  if (needle.op !== 'exact' && needle.folded.length === 0) return true;
  if (!needle.asciiFolding) return matchByPoints(bytes, start, end, needle);
  if (matchByBytes(bytes, start, end, needle)) return true;
  return (
    needle.meetsFoldingToAscii &&
    hasFoldingToAscii(bytes.subarray(start, end)) &&
    matchByPoints(bytes, start, end, needle)
  );
}

function selectByBytes(column: BytesColumn, needle: Needle, from: number, to: number, out: Uint8Array): void {
  const { offsets, bytes } = column;
  switch (needle.op) {
    case 'exact':
      return selectEqual(offsets, bytes, needle.kernel, from, to, out);
    case 'prefix':
      return selectPrefix(offsets, bytes, needle.kernel, from, to, out);
    case 'suffix':
      return selectSuffix(offsets, bytes, needle.kernel, from, to, out);
    case 'like':
      return selectContaining(offsets, bytes, needle.tables!, needle.kernel, from, to, out);
    default:
      return assertNever(needle.op);
  }
}

function matchByBytes(bytes: Uint8Array, start: number, end: number, needle: Needle): boolean {
  if (needle.op === 'exact') return end - start === needle.raw.length && equalAt(bytes, start, needle.raw);
  const length = needle.folded.length;
  if (end - start < length) return false;
  switch (needle.op) {
    case 'prefix':
      return foldedEqualAt(bytes, start, needle.folded);
    case 'suffix':
      return foldedEqualAt(bytes, end - length, needle.folded);
    case 'like':
      return findFolded(bytes, start, end, needle.tables!) >= 0;
    default:
      return assertNever(needle.op);
  }
}

const foldingToAscii = ['\u017f', '\u212a'].map((letter) => {
  const bytes = new TextEncoder().encode(letter);
  return { tables: buildSearchTables(bytes), needle: kernelNeedle(bytes, false) };
});

/** U+017F and U+212A. A row that matches a needle of ASCII letters without containing its bytes contains one of them. */
export const lettersFoldingToAscii = foldingToAscii.map(({ needle }) => needle);

/** Adds the rows that match only because U+017F or U+212A folds to an ASCII letter of the needle. */
function addRowsFoldingToAscii(
  column: BytesColumn,
  needle: Needle,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const { offsets, bytes } = column;
  const holding = new Uint8Array((to + 7) >> 3);
  for (const { tables, needle: letter } of foldingToAscii) {
    selectContaining(offsets, bytes, tables, letter, from, to, holding);
    const rows = new Uint32Array(countRange(holding, from, to));
    listRange(holding, from, to, rows, 0);
    for (const row of rows) {
      if (matchByPoints(bytes, offsets[row]!, offsets[row + 1]!, needle)) out[row >> 3]! |= 1 << (row & 7);
    }
  }
}

/** The first row of [row, to) with a byte beyond ASCII; `to` where there is none. `text` has the bytes of the rows [from, to). */
function rowBeyondAscii(
  text: Uint8Array,
  offsets: Uint32Array,
  from: number,
  to: number,
  row: number,
): number {
  if (row >= to) return to;
  const base = offsets[from]!;
  let at = offsets[row]! - base;
  while (at < text.length && text[at]! < 0x80) at++;
  return at === text.length ? to : rowAt(offsets, row, to, at + base);
}

/** Folded rows are written here. It grows to the longest row seen, which `valueBytesMax` bounds. */
let scratch: Buffer = Buffer.alloc(4096);

/** Folds all code points of a row and compares the bytes. UTF-8 bytes of whole code points are equal where the code points are. */
function matchByPoints(bytes: Uint8Array, start: number, end: number, { op, folded }: Needle): boolean {
  const bound = foldedBytesMax(end - start);
  if (scratch.length < bound) scratch = Buffer.allocUnsafeSlow(bound);
  const text = scratch.subarray(0, foldRange(bytes, start, end, scratch, 0));
  if (op === 'prefix') return text.subarray(0, folded.length).equals(folded);
  if (op === 'suffix') return text.subarray(Math.max(0, text.length - folded.length)).equals(folded);
  return text.indexOf(folded) >= 0;
}
