import { typeFacts, type FieldType } from '../../core/schema.js';
import { crc32 } from 'node:zlib';
import { filterBlockBytes } from '../../kernels/value-filter.js';
import {
  gramFilterBytes,
  isPossibleShape,
  shapeNumber,
  shapeOfNumber,
  type GramFilterShape,
} from './gram-filter.js';
import { stripeBytes, valueFilterBytes } from './value-filter.js';

/** The place and shape of a gram filter. */
export interface GramFilterPlace extends GramFilterShape {
  readonly rowGroup: number;
  /** Index of the field in the segment's schema. */
  readonly field: number;
  /** Offset in the file. */
  readonly offset: number;
}

/** The place and size of a value filter. */
export interface ValueFilterPlace {
  readonly rowGroup: number;
  /** Index of the field in the segment's schema. */
  readonly field: number;
  /** Offset in the file. */
  readonly offset: number;
  readonly blocks: number;
}

/** The sketches of all row groups for one field. */
export interface SketchPlace {
  /** Index of the field in the segment's schema. */
  readonly field: number;
  /** Offset in the file. */
  readonly offset: number;
  readonly stripes: number;
}

/** The places of a segment's filters. */
export interface FilterPlaces {
  readonly gramFilters: readonly GramFilterPlace[];
  readonly valueFilters: readonly ValueFilterPlace[];
  readonly sketches: readonly SketchPlace[];
}

export const noFilters: FilterPlaces = { gramFilters: [], valueFilters: [], sketches: [] };

/** Bytes of a field's sketches in the file. */
export function sketchesBytes({ stripes }: SketchPlace, rowGroups: number): number {
  return stripes * stripeBytes(rowGroups);
}

/** A part of the file that belongs to a filter. */
export interface FilterPart {
  readonly offset: number;
  readonly bytes: number;
}

/** All filters of a segment, which has `rowGroups` row groups. */
export function filterParts(
  { gramFilters, valueFilters, sketches }: FilterPlaces,
  rowGroups: number,
): FilterPart[] {
  return [
    ...gramFilters.map((place) => ({ offset: place.offset, bytes: gramFilterBytes(place) })),
    ...valueFilters.map(({ offset, blocks }) => ({ offset, bytes: valueFilterBytes(blocks) })),
    ...sketches.map((place) => ({ offset: place.offset, bytes: sketchesBytes(place, rowGroups) })),
  ];
}

/** The sum of the bytes that `filterParts` lists. */
export function filterBytes(places: FilterPlaces, rowGroups: number): number {
  return filterParts(places, rowGroups).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Whether a segment of ours can have these filters. `types` has the type of each field. */
export function isPossible(
  { gramFilters, valueFilters, sketches }: FilterPlaces,
  rowGroups: number,
  types: readonly FieldType[],
): boolean {
  const factsOf = (field: number) => (types[field] === undefined ? undefined : typeFacts[types[field]]);
  const hasFilters = (field: number): boolean => factsOf(field)?.hasFilters === true;
  const grams = gramFilters.every(
    (place) =>
      place.rowGroup < rowGroups && factsOf(place.field)?.column === 'bytes' && isPossibleShape(place),
  );
  const values = valueFilters.every(
    ({ rowGroup, field, blocks }) => rowGroup < rowGroups && hasFilters(field) && isWhole(blocks),
  );
  return grams && values && sketches.every(({ field, stripes }) => hasFilters(field) && isWhole(stripes));
}

/** Far more blocks than the filter of a row group has. */
const blocksMax = (64 * 1024 * 1024) / filterBlockBytes;

function isWhole(blocks: number): boolean {
  return blocks >= 1 && blocks <= blocksMax;
}

// The summary of a segment precedes its footer and has the places of its filters, so that filters can be asked without reading the footer.
// Layout, little-endian: `LSUM`; number of rows, number of row groups (uint32); the rows, 24 bytes each (kind, field, row group: uint32;
// offset: uint64; shape: uint32); the crc32 of all that. Format: `docs/format.md`, "Summary".

const magic = Uint8Array.of(0x4c, 0x53, 0x55, 0x4d);
const headBytes = 12;
const rowBytes = 24;
const checksumBytes = 4;
const kinds = { grams: 1, values: 2, sketches: 3 } as const;

type SummaryRow = readonly [kind: number, field: number, rowGroup: number, offset: number, shape: number];

/** Encodes a summary. Every segment has one, even if it is empty: a segment without a summary was written before summaries were introduced. */
export function encodeSummary(
  { gramFilters, valueFilters, sketches }: FilterPlaces,
  rowGroups: number,
): Uint8Array {
  const rows: SummaryRow[] = [
    ...sketches.map(({ field, offset, stripes }) => [kinds.sketches, field, 0, offset, stripes] as const),
    ...valueFilters.map(
      ({ field, rowGroup, offset, blocks }) => [kinds.values, field, rowGroup, offset, blocks] as const,
    ),
    ...gramFilters.map((place) => {
      const { field, rowGroup, offset } = place;
      return [kinds.grams, field, rowGroup, offset, shapeNumber(place)] as const;
    }),
  ];
  const bytes = new Uint8Array(headBytes + rows.length * rowBytes + checksumBytes);
  const view = new DataView(bytes.buffer);
  bytes.set(magic);
  view.setUint32(4, rows.length, true);
  view.setUint32(8, rowGroups, true);
  rows.forEach(([kind, field, rowGroup, offset, shape], i) => {
    const at = headBytes + i * rowBytes;
    view.setUint32(at, kind, true);
    view.setUint32(at + 4, field, true);
    view.setUint32(at + 8, rowGroup, true);
    view.setBigUint64(at + 12, BigInt(offset), true);
    view.setUint32(at + 20, shape, true);
  });
  view.setUint32(bytes.length - checksumBytes, crc32(bytes.subarray(0, bytes.length - checksumBytes)), true);
  return bytes;
}

/** The filters of one field of a segment, by row group. */
export interface FieldFilters {
  readonly sketches: SketchPlace | undefined;
  readonly values: readonly (ValueFilterPlace | undefined)[];
  readonly grams: readonly (GramFilterPlace | undefined)[];
}

/** The places of a segment's filters by field, as its summary has them. A field's places are decoded when they are first asked for. */
export class SegmentFilters {
  readonly #view: DataView;
  /** For each field the offsets of its rows in the summary. */
  readonly #rows = new Map<number, number[]>();
  readonly #fields = new Map<number, FieldFilters>();

  constructor(
    summary: Uint8Array,
    readonly rowGroups: number,
  ) {
    this.#view = new DataView(summary.buffer, summary.byteOffset, summary.length);
    for (let at = headBytes; at < summary.length - checksumBytes; at += rowBytes) {
      const field = this.#view.getUint32(at + 4, true);
      const rows = this.#rows.get(field);
      if (rows === undefined) this.#rows.set(field, [at]);
      else rows.push(at);
    }
  }

  /** The filters of a field; null if no row group has one. */
  of(field: number): FieldFilters | null {
    const known = this.#fields.get(field);
    if (known !== undefined) return known;
    const rows = this.#rows.get(field);
    if (rows === undefined) return null;
    const found = this.#decode(field, rows);
    this.#fields.set(field, found);
    return found;
  }

  #decode(field: number, rows: readonly number[]): FieldFilters {
    let sketches: SketchPlace | undefined;
    const values: (ValueFilterPlace | undefined)[] = [];
    const grams: (GramFilterPlace | undefined)[] = [];
    for (const at of rows) {
      const { kind, rowGroup, offset, shape } = summaryRow(this.#view, at);
      if (kind === kinds.sketches) sketches = { field, offset, stripes: shape };
      else if (kind === kinds.values) values[rowGroup] = { rowGroup, field, offset, blocks: shape };
      else grams[rowGroup] = { rowGroup, field, offset, ...shapeOfNumber(shape) };
    }
    return { sketches, values, grams };
  }
}

/** The filters of a segment that has none. */
export const noSegmentFilters = new SegmentFilters(encodeSummary(noFilters, 0), 0);

function summaryRow(
  view: DataView,
  at: number,
): { kind: number; rowGroup: number; offset: number; shape: number } {
  return {
    kind: view.getUint32(at, true),
    rowGroup: view.getUint32(at + 8, true),
    offset: view.getUint32(at + 12, true) + view.getUint32(at + 16, true) * 2 ** 32,
    shape: view.getUint32(at + 20, true),
  };
}

/** The filters that the summary of a segment with `rowGroups` row groups names; null if it is damaged or describes impossible filters. */
export function decodeSummary(bytes: Uint8Array, rowGroups: number): SegmentFilters | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = bytes.length - checksumBytes;
  if (end < headBytes || magic.some((byte, i) => bytes[i] !== byte)) return null;
  const count = view.getUint32(4, true);
  if (headBytes + count * rowBytes !== end || view.getUint32(8, true) !== rowGroups) return null;
  if (view.getUint32(end, true) !== crc32(bytes.subarray(0, end))) return null;
  for (let at = headBytes; at < end; at += rowBytes) {
    const { kind, rowGroup, shape } = summaryRow(view, at);
    if (kind < kinds.grams || kind > kinds.sketches) return null;
    if (kind !== kinds.sketches && rowGroup >= rowGroups) return null;
    if (!(kind === kinds.grams ? isPossibleShape(shapeOfNumber(shape)) : isWhole(shape))) return null;
  }
  return new SegmentFilters(bytes, rowGroups);
}
