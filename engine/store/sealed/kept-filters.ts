import type { BytesColumn } from '../../columns/column.js';
import { filterBlockBytes } from '../../kernels/value-filter.js';
import { bufferBytes } from '../../memory/allocator.js';
import { uint32sOf, type Arena } from '../../memory/arena.js';
import { blockOfHash, isInBlock, type ValueHash } from '../../parquet/bloom-filter.js';
import { ruling, type Ruling } from './segment-rulings.js';
import type { Asked } from './filter-question.js';
import {
  checkedPiece,
  gramFilterBytes,
  gramPieces,
  isBitSet,
  planProbes,
  shapeNumber,
  shapeOfNumber,
} from './gram-filter.js';
import { sketchesBytes, type GramFilterPlace, type SegmentFilters } from './segment-filters.js';
import {
  hasChecksum,
  isInSketch,
  stripeBytes,
  stripeOf,
  valueFilterBytes,
  valuePieces,
  wholeStripe,
} from './value-filter.js';

/** Filters that are kept in memory together: value filters, or gram filters. */
export type KeptKind = 'values' | 'grams';

/**
 * The filters of a field in memory: a column with one value per row group, empty if the row group has no such filter. For `values` it is
 * the blocks of the Bloom filter, and one more value has the sketches of all row groups. For `grams` it is the shape number (u32,
 * little-endian), then the filter as stored in the file.
 */
export type KeptFilters = BytesColumn;

/** Reads bytes of the segment's file, fewer at its end. They are valid until the next call. */
export type ReadBytes = (offset: number, bytes: number) => Uint8Array;

/** Bytes of the shape number before a gram filter in memory. */
const shapeBytes = 4;

/** Upper bound on the memory of `keepFilters` for filters of `filterBytes` on disk. */
export function keptBytesMax(filterBytes: number, rowGroups: number): number {
  return bufferBytes(filterBytes + rowGroups * shapeBytes) + bufferBytes((rowGroups + 2) * 4);
}

/** Bytes on disk of a field's filters that are kept together; 0 if it has none of the kind. */
export function storedFilterBytes(kind: KeptKind, filters: SegmentFilters, field: number): number {
  const sketches = kind === 'values' ? filters.sketches(field) : undefined;
  let bytes = sketches === undefined ? 0 : sketchesBytes(sketches, filters.rowGroups);
  for (let rowGroup = 0; rowGroup < filters.rowGroups; rowGroup++) {
    const values = kind === 'values' ? filters.valueFilter(field, rowGroup) : undefined;
    const grams = kind === 'grams' ? filters.gramFilter(field, rowGroup) : undefined;
    if (values !== undefined) bytes += valueFilterBytes(values.blocks);
    if (grams !== undefined) bytes += gramFilterBytes(grams);
  }
  return bytes;
}

/** Reads the filters of a field. A part that does not match its checksum gets all bits set, so that it rules nothing out; `verify` reports it. */
export function keepFilters(
  kind: KeptKind,
  filters: SegmentFilters,
  field: number,
  arena: Arena,
  read: ReadBytes,
): KeptFilters {
  const parts = kind === 'values' ? valueParts(filters, field, read) : gramParts(filters, field, read);
  const offsets = uint32sOf(arena, parts.length + 1);
  offsets[0] = 0;
  parts.forEach(({ bytes }, i) => (offsets[i + 1] = offsets[i]! + bytes));
  const bytes = arena(offsets[parts.length]!);
  parts.forEach((part, i) => part.fill(bytes.subarray(offsets[i], offsets[i + 1])));
  return { kind: 'bytes', length: parts.length, offsets, bytes, validity: null };
}

/** The content of one value of the column. */
interface Part {
  readonly bytes: number;
  fill(target: Uint8Array): void;
}

const nothing: Part = { bytes: 0, fill: () => undefined };

function valueParts(filters: SegmentFilters, field: number, read: ReadBytes): Part[] {
  const { rowGroups } = filters;
  const parts = Array.from({ length: rowGroups }, (_, rowGroup): Part => {
    const place = filters.valueFilter(field, rowGroup);
    if (place === undefined) return nothing;
    const { offset, blocks } = place;
    const fill = (target: Uint8Array): void =>
      copyBlocks(blocks, read(offset, valueFilterBytes(blocks)), target);
    return { bytes: blocks * filterBlockBytes, fill };
  });
  const sketches = filters.sketches(field);
  if (sketches === undefined) return [...parts, nothing];
  const fill = (target: Uint8Array): void =>
    copyStripes(read(sketches.offset, sketchesBytes(sketches, rowGroups)), rowGroups, target);
  return [...parts, { bytes: sketches.stripes * rowGroups * filterBlockBytes, fill }];
}

function copyBlocks(blocks: number, stored: Uint8Array, target: Uint8Array): void {
  const [header, ...pieces] = valuePieces(blocks);
  for (const { offset, bytes, checksumOffset } of pieces) {
    const piece = stored.subarray(offset, offset + bytes);
    const at = offset - header!.bytes;
    if (hasChecksum(piece, stored.subarray(checksumOffset, checksumOffset + 4))) target.set(piece, at);
    else target.fill(0xff, at, at + bytes);
  }
}

function copyStripes(stored: Uint8Array, rowGroups: number, target: Uint8Array): void {
  const storedBytes = stripeBytes(rowGroups);
  const bytes = rowGroups * filterBlockBytes;
  for (let at = 0, from = 0; at < target.length; at += bytes, from += storedBytes) {
    const stripe = wholeStripe(stored.subarray(from, from + storedBytes), rowGroups);
    if (stripe === null) target.fill(0xff, at, at + bytes);
    else target.set(stripe, at);
  }
}

function gramParts(filters: SegmentFilters, field: number, read: ReadBytes): Part[] {
  return Array.from({ length: filters.rowGroups }, (_, rowGroup): Part => {
    const place = filters.gramFilter(field, rowGroup);
    if (place === undefined) return nothing;
    const bytes = gramFilterBytes(place);
    const fill = (target: Uint8Array): void => copyPieces(place, read(place.offset, bytes), target);
    return { bytes: shapeBytes + bytes, fill };
  });
}

function copyPieces(place: GramFilterPlace, stored: Uint8Array, target: Uint8Array): void {
  const shape = shapeNumber(place);
  for (let i = 0; i < shapeBytes; i++) target[i] = shape >>> (8 * i);
  const filter = target.subarray(shapeBytes);
  for (const piece of gramPieces(place)) {
    const end = piece.offset + piece.storedBytes;
    const bytes = stored.subarray(piece.offset, end);
    if (checkedPiece(bytes, piece) === null) filter.fill(0xff, piece.offset, end);
    else filter.set(bytes, piece.offset);
  }
}

/** The filters of a field that are in memory; null for those that are not. */
export type KeptOfField = Readonly<Record<KeptKind, KeptFilters | null>>;

/**
 * What filters in memory say of a row group whose rows can only match with one of `asked`. Same result as `FilterProbing`. Null if a filter
 * that is not in memory has to be asked.
 */
export function keptRuling(kept: KeptOfField, rowGroup: number, asked: readonly Asked[]): Ruling | null {
  let said: Ruling | null = ruling.mayMatch;
  for (const one of asked) {
    said = rulingOnOne(kept, rowGroup, one);
    if (said === null || said === ruling.mayMatch) break;
  }
  return said;
}

function rulingOnOne({ values, grams }: KeptOfField, rowGroup: number, one: Asked): Ruling | null {
  if (one.hash !== null) {
    if (values === null) return null;
    const said = valueRuling(values, rowGroup, one.hash);
    if (said !== null) return said;
  }
  if (one.folded.length === 0) return ruling.mayMatch;
  return grams === null ? null : gramRuling(grams, rowGroup, one);
}

/** What the value filter says; null if the row group has none. */
function valueRuling(
  { offsets, bytes, length }: KeptFilters,
  rowGroup: number,
  hash: ValueHash,
): Ruling | null {
  const rowGroups = length - 1;
  const stripes = (offsets[length]! - offsets[rowGroups]!) / (rowGroups * filterBlockBytes);
  if (stripes > 0) {
    const block = stripeOf(hash, stripes) * rowGroups + rowGroup;
    if (!isInSketch(bytes, offsets[rowGroups]! + block * filterBlockBytes, hash)) return ruling.byValue;
  }
  const start = offsets[rowGroup]!;
  const blocks = (offsets[rowGroup + 1]! - start) / filterBlockBytes;
  if (blocks === 0) return null;
  const at = start + blockOfHash(hash, blocks) * filterBlockBytes;
  return isInBlock(bytes, at, hash) ? ruling.mayMatch : ruling.byValue;
}

/** The bits to look up for each text, counted from the start of a filter, by its shape. Most filters of a column have the same shape. */
const bitsOfTexts = new WeakMap<Asked, Map<number, readonly number[]>>();

function gramRuling({ offsets, bytes }: KeptFilters, rowGroup: number, one: Asked): Ruling {
  const start = offsets[rowGroup]!;
  if (offsets[rowGroup + 1] === start) return ruling.mayMatch;
  const filter = bytes.subarray(start + shapeBytes, offsets[rowGroup + 1]);
  // Creating a `DataView` for each row group would take longer than asking its filter.
  const shape =
    bytes[start]! | (bytes[start + 1]! << 8) | (bytes[start + 2]! << 16) | (bytes[start + 3]! << 24);
  const bits = bitsOfText(shape, one);
  return bits.every((bit) => isBitSet(filter, bit)) ? ruling.mayMatch : ruling.byGram;
}

function bitsOfText(shape: number, one: Asked): readonly number[] {
  let known = bitsOfTexts.get(one);
  if (known === undefined) {
    known = new Map();
    bitsOfTexts.set(one, known);
  }
  let bits = known.get(shape);
  if (bits === undefined) {
    const probes = planProbes(shapeOfNumber(shape), one.folded);
    bits = probes.map(({ piece, bit }) => piece.offset * 8 + bit);
    known.set(shape, bits);
  }
  return bits;
}
