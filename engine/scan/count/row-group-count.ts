import type { PlainColumn } from '../../columns/column.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import { andRange, bitmapBytes, setRange } from '../../kernels/bitmap.js';
import type { CountedRows } from '../../kernels/count.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';
import { countBucketsMax } from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import type { CountQuery, TimeBucket } from '../plan/count.js';
import type { ScanUnit } from '../plan/plan.js';
import type { Selection } from '../job/selection.js';
import { bucketOfTime, bucketsBetween } from './time-ranges.js';

/** The counted rows of a row group, and what has to be read to count them. */
export interface RowGroupCount extends TimesOfGroup, ValuesOfGroup {
  readonly open: OpenRowGroup;
  readonly counted: CountedRows;
  /** Number of rows that are counted. */
  readonly count: number;
}

interface TimesOfGroup {
  readonly readsTime: boolean;
  /**
   * The buckets that the times may be in, ascending; null where they are too many or not known. Where the column need not be read, all rows
   * are in the only bucket, or no row has a time if there is none.
   */
  readonly buckets: readonly TimeBucket[] | null;
}

interface ValuesOfGroup {
  readonly readsValue: boolean;
  /** Where the column need not be read: the value of all rows, as a column of one row; null where no row has a value. */
  readonly value: PlainColumn | null;
}

/** Finds out what the zone maps of a row group tell. Reads no columns. */
export function rowGroupCount(
  query: CountQuery,
  schema: Schema,
  open: OpenRowGroup,
  unit: ScanUnit,
  selection: Selection,
  count: number,
): RowGroupCount {
  const counted = countedRows(unit, selection);
  return { open, counted, count, ...timesOf(query, open), ...valuesOf(query, schema, open) };
}

function timesOf({ time }: CountQuery, open: OpenRowGroup): TimesOfGroup {
  const zone = time === undefined ? null : open.zone(time.field);
  if (time === undefined || isAllNull(zone)) return { readsTime: false, buckets: [] };
  if (typeof zone?.min !== 'bigint' || typeof zone.max !== 'bigint')
    return { readsTime: true, buckets: null };
  const first = bucketOfTime(time.buckets, zone.min);
  if (zone.nullCount === 0 && BigInt(first.until) > zone.max) return { readsTime: false, buckets: [first] };
  return { readsTime: true, buckets: bucketsBetween(time.buckets, zone.min, zone.max, countBucketsMax) };
}

function valuesOf({ values }: CountQuery, schema: Schema, open: OpenRowGroup): ValuesOfGroup {
  const zone = values === undefined ? null : open.zone(values.field);
  if (values === undefined || isAllNull(zone)) return { readsValue: false, value: null };
  // Files of other programs may have NaN and infinite floats, which become null here. Their bounds and null counts don't include these.
  const isKnown = zone?.nullCount === 0 && schema.fields[values.field]!.type !== 'float';
  const value = isKnown ? onlyValue(zone) : null;
  return { readsValue: value === null, value };
}

/** The value that all rows have, as a column of one row; null where the bounds differ. */
function onlyValue({ min, max }: ZoneMap): PlainColumn | null {
  const one = { length: 1, validity: null };
  if (typeof min === 'bigint' && min === max) return { kind: 'int64', ...one, values: BigInt64Array.of(min) };
  if (!(min instanceof Uint8Array && max instanceof Uint8Array && Buffer.compare(min, max) === 0))
    return null;
  return { kind: 'bytes', ...one, bytes: min, offsets: Uint32Array.of(0, min.length) };
}

function isAllNull(zone: ZoneMap | null): boolean {
  return zone !== null && zone.nullCount === zone.rows;
}

/** The selected rows of the ranges as a bitmap. */
function countedRows({ rowGroup, ranges }: ScanUnit, selection: Selection): CountedRows {
  let from = rowGroup.rows;
  let to = 0;
  let rows = 0;
  for (const range of ranges) {
    from = Math.min(from, range.firstRow);
    to = Math.max(to, range.firstRow + range.rows);
    rows += range.rows;
  }
  if (selection.kind === 'bits' && rows === to - from) return { bits: selection.bits, from, to };
  const bits = new Uint8Array(bitmapBytes(rowGroup.rows));
  for (const { firstRow, rows: each } of ranges) setRange(bits, firstRow, firstRow + each);
  if (selection.kind !== 'all') andRange(bits, bitmapOf(selection, rowGroup.rows), from & ~7, to);
  return { bits, from, to };
}

function bitmapOf(selection: Selection, rows: number): Uint8Array {
  if (selection.kind === 'bits') return selection.bits;
  const bits = new Uint8Array(bitmapBytes(rows));
  if (selection.kind === 'rows') for (const row of selection.rows) bits[row >> 3]! |= 1 << (row & 7);
  return bits;
}
