import { crc32 } from 'node:zlib';
import type { BytesColumn } from '../../columns/column.js';
import { countRange } from '../../kernels/bitmap.js';
import {
  addGrams,
  foldBeyondAscii,
  halveBitmap,
  isAscii,
  needleBits,
  squeezeBitmap,
  squeezedBit,
  trigramBits,
} from '../../kernels/grams.js';
import { heap, type Arena } from '../../core/arena.js';
import type { FieldIndex } from '../../core/schema.js';
import { foldedBytesMax, foldRange } from '../../core/fold.js';
import { checkedAfter, type CheckedRange } from './value-filter.js';

/**
 * A filter of the grams (substrings of fixed length) of a column chunk's strings, as bitmaps of hashes: one of grams of 4 to 6 bytes, and a
 * small one of trigrams for shorter needles. On disk both are divided into pieces of `pieceBytes`, each followed by its crc32. Format:
 * `docs/format.md`, "Gram filter".
 */
export interface GramFilterShape {
  /** Length of a gram in bytes: 4 to 6. */
  readonly gramBytes: number;
  /** Number of hash bits, which select one of 2^gramBits places. */
  readonly gramBits: number;
  /** Size of the gram bitmap in eighths of 2^gramBits bits: 8, or 5 to 7 if it is squeezed, in which case some places share a bit. */
  readonly gramEighths: number;
  /** The trigram bitmap has 2^trigramBits bits; 0 if there is none. */
  readonly trigramBits: number;
}

/** Packs a shape into a 32-bit number, as in the summary of a segment. The highest byte is 0 for a bitmap that is not squeezed. */
export function shapeNumber({ gramBytes, gramBits, gramEighths, trigramBits }: GramFilterShape): number {
  return ((8 - gramEighths) << 24) | (gramBytes << 16) | (gramBits << 8) | trigramBits;
}

/** Unpacks a number of `shapeNumber`. */
export function shapeOfNumber(number: number): GramFilterShape {
  return {
    gramBytes: (number >>> 16) & 255,
    gramBits: (number >>> 8) & 255,
    gramEighths: 8 - (number >>> 24),
    trigramBits: number & 255,
  };
}

/** Whether a filter of ours can have this shape. */
export function isPossibleShape({ gramBytes, gramBits, gramEighths, trigramBits }: GramFilterShape): boolean {
  const isSize = (bits: number): boolean => bits === 0 || (bits >= 5 && bits <= 30);
  const isWhole =
    gramEighths === 8 || (gramEighths >= eighthsMin && gramEighths < 8 && gramBits >= squeezedBitsMin);
  return gramBytes >= 4 && gramBytes <= 6 && isSize(gramBits) && isSize(trigramBits) && isWhole;
}

/** A filter as it is stored: the pieces of the gram bitmap, then those of the trigram bitmap. */
export interface GramFilter extends GramFilterShape {
  readonly bytes: Uint8Array;
}

/** Bytes that a probe reads at once, which is a memory page: few bytes to read and verify for one bit. */
export const pieceBytes = 4096;
const checksumBytes = 4;
/** Maximum length of a piece on disk. */
export const pieceStoredBytesMax = pieceBytes + checksumBytes;

/** At most 512 KiB. A larger bitmap would be a tenth of the largest columns, and would not fit the processor's cache while it is built. */
const gramBitsMax = 22;
const bitsMin = 10;
/** Bitmaps of fewer bits (32 KiB) are not squeezed. From this size on an eighth is a whole piece, so that all pieces have the same size. */
const squeezedBitsMin = 18;
/** Four eighths would be the bitmap of half the size. */
const eighthsMin = 5;

/** How large a filter may become where the field's `index` does not say. */
export interface GramFilterSize {
  /** The largest share of the bits to be set, unless the filter would take too much of the column. */
  readonly fill: number;
  /** The share of the column's bytes that the filter may take. */
  readonly costShare: number;
}

/** With this size, random needles of 12 hexadecimal digits still miss 95 % of the row groups. */
export const gramSizeSmall: GramFilterSize = { fill: 0.63, costShare: 1 / 20 };
/** With this size they miss 98 to 99 %: for texts with ids this takes up to half as many bytes more. */
export const gramSizeUsual: GramFilterSize = { fill: 0.52, costShare: 1 / 16 };
/** Fill with `index: full`, at which they miss all but one in a thousand. For a row group of ids this takes twice the bytes. */
const fillWantedFull = 0.4;
/** A filter that exceeds its share of the column's size may be halved up to this fill. */
const fillHalved = 0.7;
/** A short needle has few trigrams, so each of them must miss often. */
const trigramFillWanted = 0.25;
/** With a higher fill, a filter answers "may contain" to nearly everything. */
const fillMax = 0.9;
/** A bitmap has 2^n bits before it is squeezed. If half of them would be too full, a filter of this many times its share is better than none. */
const costOverMax = 1.5;
/** If more than this share of the possible grams of a length occurs, grams of this length cannot distinguish random ids any more. */
const occupancyMax = 0.5;
/** Rows sampled to choose the length of the grams, in strides over the row group. */
const sampleRows = 2048;
const sampleStrides = 16;
const sampleBits = 20;

/** The estimated number of distinct grams may exceed the true one by this factor. */
const overestimateMax = 1.5;
/** Reserve for an estimate that is too low. A bitmap that turns out too full is built once more. */
const underestimateMax = 1.1;

/** Maximum number of a needle's grams that are looked up. Each takes a read, and this many suffice. */
const probesMax = 32;

/**
 * Builds the filter of a column chunk without a dictionary, or returns null if it should have none.
 *
 * @param wanted the field's `index`: true keeps a filter even if it is large, `full` makes it larger, undefined keeps it only if it pays
 * off, false builds none
 * @param size the fill counts unless `wanted` is `full`, and the share of the column's bytes only where `wanted` is undefined
 * @param arena allocates the folded strings, which are not needed afterwards
 */
export function buildGramFilter(
  column: BytesColumn,
  wanted: FieldIndex,
  size = gramSizeUsual,
  arena: Arena = heap,
): GramFilter | null {
  if (wanted === false) return null;
  const fill = wanted === 'full' ? fillWantedFull : size.fill;
  const { bytes, offsets } = foldedStrings(column, arena);
  const contentBytes = offsets[column.length]! - offsets[0]!;
  const costBytes = contentBytes * size.costShare;
  const bits = Math.min(gramBitsMax, Math.max(bitsMin, Math.ceil(Math.log2(contentBytes + 1))));
  // Even the smallest useful bitmap would exceed the share of a column of short values, so nothing is built.
  if (wanted === undefined && costBytes < 2 ** bitsMin / 8) return null;
  const { gramBytes, distinct, expected } = chooseGramBytes(bytes, offsets, column.length);
  if (wanted === undefined && distinct > overestimateMax * distinctWithin(costBytes * costOverMax)) {
    return null;
  }
  let trigrams: Int32Array = new Int32Array(2 ** (trigramBits - 5));
  const bitsExpected = Math.ceil(Math.log2((expected * underestimateMax) / distinctPerBit(fill)));
  let grams: Int32Array = new Int32Array(0);
  for (const tried of [Math.min(bits, Math.max(bitsMin, bitsExpected)), bits]) {
    grams = new Int32Array(2 ** (tried - 5));
    addGrams(bytes, offsets, 0, column.length, gramBytes, tried, grams, trigrams);
    if (tried === bits || fillOf(grams) <= fill) break;
  }
  grams = shrink(grams, fill, 0);
  trigrams = shrink(trigrams, trigramFillWanted, 0);
  if (fillOf(trigrams) > fillMax) trigrams = new Int32Array(0);
  const budgetBytes = wanted === undefined ? costBytes - trigrams.byteLength : Number.POSITIVE_INFINITY;
  let gramEighths = eighthsOf(grams, fill, budgetBytes);
  if ((grams.byteLength * gramEighths) / 8 > budgetBytes) {
    grams = shrink(grams, fillHalved, budgetBytes);
    if (grams.byteLength > budgetBytes * costOverMax) return null;
    gramEighths = eighthsOf(grams, fill, budgetBytes);
  }
  if (wanted === undefined && fillOf(grams) > fillMax) return null;
  const shape = { gramBytes, gramBits: bitsOf(grams), gramEighths, trigramBits: bitsOf(trigrams) };
  return {
    ...shape,
    bytes: joinPieces(shape, [gramEighths === 8 ? grams : squeezeBitmap(grams, gramEighths), trigrams]),
  };
}

/**
 * The number of eighths to squeeze a bitmap to: the smallest with which at most `fillAllowed` of the absent grams seem present, or
 * `fillHalved` while the bitmap exceeds `budgetBytes`. Of each eight places, 16 - 2 * eighths then share a bit with another.
 */
function eighthsOf(bitmap: Int32Array, fillAllowed: number, budgetBytes: number): number {
  if (bitsOf(bitmap) < squeezedBitsMin) return 8;
  const fill = fillOf(bitmap);
  const shared = 1 - (1 - fill) ** 2;
  let eighths = 8;
  while (eighths > eighthsMin) {
    const fewer = eighths - 1;
    const passing = ((16 - 2 * fewer) * shared + (2 * fewer - 8) * fill) / 8;
    const isOver = (bitmap.byteLength * eighths) / 8 > budgetBytes;
    if (passing > (isOver ? fillHalved : fillAllowed)) break;
    eighths = fewer;
  }
  return eighths;
}

function bitsOf(bitmap: Int32Array): number {
  return bitmap.length === 0 ? 0 : Math.log2(bitmap.length) + 5;
}

/** Share of the bits that are set. */
function fillOf(bitmap: Int32Array): number {
  if (bitmap.length === 0) return 0;
  const bits = bitmap.length * 32;
  return countRange(new Uint8Array(bitmap.buffer, bitmap.byteOffset, bitmap.byteLength), 0, bits) / bits;
}

/** Halves a bitmap while it is larger than `bytesWanted` and the result's fill is at most `fillAllowed`. */
function shrink(bitmap: Int32Array, fillAllowed: number, bytesWanted: number): Int32Array {
  while (bitmap.byteLength > bytesWanted && bitsOf(bitmap) > bitsMin) {
    const half = new Int32Array(bitmap.length >> 1);
    if (halveBitmap(bitmap, half) > fillAllowed * half.length * 32) break;
    bitmap = half;
  }
  return bitmap;
}

/** The strings with their case folded, except for ASCII letters, which the kernel folds while it reads them. */
function foldedStrings(column: BytesColumn, arena: Arena): { bytes: Uint8Array; offsets: Uint32Array } {
  const { bytes, offsets, length } = column;
  const contentBytes = offsets[length]! - offsets[0]!;
  const content = bytes.subarray(offsets[0], offsets[length]);
  if (isAscii(content)) return { bytes, offsets };
  const alike = arena(contentBytes);
  if (foldBeyondAscii(content, alike)) {
    const first = offsets[0]!;
    const ends = offsets.subarray(0, length + 1);
    return { bytes: alike, offsets: first === 0 ? ends : ends.map((end) => end - first) };
  }
  const folded = new Uint8Array(foldedBytesMax(contentBytes));
  const foldedOffsets = new Uint32Array(length + 1);
  let at = 0;
  for (let row = 0; row < length; row++) {
    at = foldRange(bytes, offsets[row]!, offsets[row + 1]!, folded, at);
    foldedOffsets[row + 1] = at;
  }
  return { bytes: folded, offsets: foldedOffsets };
}

/** Number of distinct grams per bit of a bitmap with this fill. */
function distinctPerBit(fill: number): number {
  return -Math.log(1 - fill);
}

/** Number of distinct grams that fill a filter of `sizeBytes` to `fillHalved`. */
function distinctWithin(sizeBytes: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, sizeBytes * 8))) * distinctPerBit(fillHalved);
}

interface GramChoice {
  readonly gramBytes: number;
  /** Estimated number of distinct grams, rather too high than too low. */
  readonly distinct: number;
  /** A lower estimate, for grams with so few possible values that they repeat by chance. */
  readonly expected: number;
}

/**
 * Chooses the shortest grams of which at most `occupancyMax` of the possible ones occur. In a sample, the number of distinct grams is
 * compared with that of 6-byte grams, which hardly ever repeat by chance. This tells how many possible grams of the shorter length there
 * are, and so which share of them the whole row group has.
 */
function chooseGramBytes(bytes: Uint8Array, offsets: Uint32Array, rows: number): GramChoice {
  const sample = sampleOf(bytes, offsets, rows);
  const longest = distinctGrams(sample, 6);
  const scale = Math.max(1, rows / sampleRows);
  let gramBytes = 6;
  let found = longest;
  let draws = 0;
  for (const shorter of [4, 5]) {
    const these = distinctGrams(sample, shorter);
    const drawsOfThese = drawsPerGram(these.whole / longest.whole) * scale;
    if (1 - Math.exp(-drawsOfThese) > occupancyMax) continue;
    gramBytes = shorter;
    found = these;
    draws = drawsOfThese;
    break;
  }
  // The number of distinct grams grows with the rows by a power law, whose exponent comes from the two halves of the sample. In fact it
  // grows ever more slowly, so this is an upper bound.
  const growth = Math.min(1, Math.log2(Math.max(1, found.whole / Math.max(1, found.half))));
  const distinct = found.whole * (rows / Math.max(1, sample.rows)) ** growth;
  const repeating = draws === 0 ? Infinity : (longest.whole * scale * (1 - Math.exp(-draws))) / draws;
  return { gramBytes, distinct, expected: Math.min(distinct, repeating) };
}

interface Sample {
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly rows: number;
}

/** Rows in strides over the whole column, concatenated. */
function sampleOf(bytes: Uint8Array, offsets: Uint32Array, rows: number): Sample {
  const stride = Math.ceil(rows / sampleStrides);
  const strideRows = Math.min(stride, sampleRows / sampleStrides);
  const pieces: Uint8Array[] = [];
  const ends: number[] = [0];
  for (let from = 0; from < rows; from += stride) {
    const to = Math.min(rows, from + strideRows);
    const shift = ends.at(-1)! - offsets[from]!;
    pieces.push(bytes.subarray(offsets[from], offsets[to]));
    for (let row = from; row < to; row++) ends.push(offsets[row + 1]! + shift);
  }
  const content = new Uint8Array(ends.at(-1)!);
  let at = 0;
  for (const piece of pieces) {
    content.set(piece, at);
    at += piece.length;
  }
  return { bytes: content, offsets: Uint32Array.from(ends), rows: ends.length - 1 };
}

/** Number of distinct grams in the first half of the rows, and in all of them. */
interface DistinctGrams {
  readonly half: number;
  readonly whole: number;
}

function distinctGrams({ bytes, offsets, rows }: Sample, gramBytes: number): DistinctGrams {
  const grams = new Int32Array(2 ** (sampleBits - 5));
  const trigrams = new Int32Array(2 ** (trigramBits - 5));
  const distinctTo = (from: number, to: number): number => {
    addGrams(bytes, offsets, from, to, gramBytes, sampleBits, grams, trigrams);
    // Linear counting: estimates the number of distinct values from the fill of a hashed bitmap.
    return 2 ** sampleBits * distinctPerBit(Math.min(0.999, fillOf(grams)));
  };
  const middle = rows >> 1;
  const half = distinctTo(0, middle);
  return { half, whole: distinctTo(middle, rows) };
}

/** Solves (1 − e^−x) / x = `share` for x: the number of draws per possible value if `share` of the draws are distinct. */
function drawsPerGram(share: number): number {
  let low = 0;
  let high = 1000;
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if ((1 - Math.exp(-middle)) / middle > share) low = middle;
    else high = middle;
  }
  return low;
}

function joinPieces(shape: GramFilterShape, bitmaps: readonly Int32Array[]): Uint8Array {
  const out = new Uint8Array(gramFilterBytes(shape));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const bitmap of bitmaps) {
    const bytes = new Uint8Array(bitmap.buffer, bitmap.byteOffset, bitmap.byteLength);
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      const piece = bytes.subarray(from, from + pieceBytes);
      out.set(piece, at);
      view.setUint32(at + piece.length, crc32(piece), true);
      at += piece.length + checksumBytes;
    }
  }
  return out;
}

function gramBitmapBytes({ gramBits, gramEighths }: GramFilterShape): number {
  return gramBits === 0 ? 0 : (2 ** (gramBits - 3) * gramEighths) / 8;
}

function trigramBitmapBytes({ trigramBits: bits }: GramFilterShape): number {
  return bits === 0 ? 0 : 2 ** (bits - 3);
}

/** Bytes on disk of a bitmap, including the checksums of its pieces. */
function storedBytes(bitmapBytes: number): number {
  return bitmapBytes + Math.ceil(bitmapBytes / pieceBytes) * checksumBytes;
}

/** Bytes on disk of a filter. */
export function gramFilterBytes(shape: GramFilterShape): number {
  return storedBytes(gramBitmapBytes(shape)) + storedBytes(trigramBitmapBytes(shape));
}

/** All pieces of a filter, in order. Offsets count from its start. */
export function gramPieces(shape: GramFilterShape): CheckedRange[] {
  const ofGrams = gramBitmapBytes(shape);
  return [...piecesOf(ofGrams, 0), ...piecesOf(trigramBitmapBytes(shape), storedBytes(ofGrams))];
}

function piecesOf(bitmapBytes: number, offset: number): CheckedRange[] {
  if (bitmapBytes === 0) return [];
  const each = Math.min(pieceBytes, bitmapBytes);
  return Array.from({ length: bitmapBytes / each }, (_, i) => pieceAt(offset, each, i));
}

function pieceAt(offset: number, bytes: number, index: number): CheckedRange {
  return checkedAfter(offset + index * (bytes + checksumBytes), bytes);
}

/** A piece of a gram filter, and the bits to look up in it. */
export interface GramLookup {
  readonly piece: CheckedRange;
  readonly bits: readonly number[];
}

/**
 * The pieces and bits to look up a folded text in, all of which are set if the column contains it; empty if the filter cannot tell. Pieces
 * with most bits come first, because they are the most likely to have one that is not set.
 */
export function planGramLookups(shape: GramFilterShape, folded: Uint8Array): GramLookup[] {
  const long = folded.length >= shape.gramBytes;
  const bits = long ? shape.gramBits : shape.trigramBits;
  const length = long ? shape.gramBytes : 3;
  if (bits === 0 || folded.length < length) return [];
  const offset = long ? 0 : storedBytes(gramBitmapBytes(shape));
  const bytes = Math.min(pieceBytes, long ? gramBitmapBytes(shape) : trigramBitmapBytes(shape));
  const ofHashes = needleBits(folded, length, bits);
  const distinct = [...new Set(long ? ofHashes.map((bit) => squeezedBit(bit, shape.gramEighths)) : ofHashes)];
  // The distinctive part of a long needle may be anywhere, so the bits are sampled over its whole length.
  const step = Math.max(1, distinct.length / probesMax);
  const lookups = new Map<number, { piece: CheckedRange; bits: number[] }>();
  for (let i = 0; i < Math.min(probesMax, distinct.length); i++) {
    const bit = distinct[Math.floor(i * step)]!;
    const index = Math.floor(bit / (bytes * 8));
    const known = lookups.get(index);
    if (known === undefined)
      lookups.set(index, { piece: pieceAt(offset, bytes, index), bits: [bit % (bytes * 8)] });
    else known.bits.push(bit % (bytes * 8));
  }
  return [...lookups.values()].sort((a, b) => b.bits.length - a.bits.length);
}

/** Whether all bits are set in the piece that begins at offset `at`. The bitmaps are little-endian words, so they can be read as bytes. */
export function mayHaveAll({ bits }: GramLookup, bytes: Uint8Array, at = 0): boolean {
  return bits.every((bit) => (bytes[at + (bit >> 3)]! & (1 << (bit & 7))) !== 0);
}
