import { assert } from '../../terms/assert.js';
import { countBucketsMax } from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import { andRange, bitmapBytes, setRange } from '../../kernels/bitmap.js';
import type { CountedRows } from '../../kernels/count.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';
import type { CountQuery, TimeBucket } from '../plan/count.js';
import type { ScanUnit } from '../plan/plan.js';
import type { Selection } from '../job/selection.js';
import { bucketOfTime, bucketsBetween } from './time-ranges.js';

/**
 * What is known of a field in a row group before its column is read: it is null in all rows, it has one bucket or value in all rows, or the
 * column has to be read.
 */
export type Known<One> =
  { readonly kind: 'null' } | { readonly kind: 'one'; readonly one: One } | { readonly kind: 'column' };

/** The counted rows of a row group, and what has to be read for that. */
export interface RowGroupCount {
  readonly open: OpenRowGroup;
  /** Number of rows in the row group. */
  readonly rows: number;
  readonly counted: CountedRows;
  /** Number of rows that are counted. */
  readonly count: number;
  /** Null where the query does not count by it. */
  readonly time: Known<TimeBucket> | null;
  readonly value: Known<bigint | Uint8Array> | null;
  /** The buckets that its times may be in, where the column has to be read; null where they are too many or not known. */
  readonly buckets: readonly TimeBucket[] | null;
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
  const { rows } = unit.rowGroup;
  const counted = countedRows(unit, selection);
  const { time, buckets } = timeOf(query, open);
  return { open, rows, counted, count, time, value: valueOf(query, schema, open), buckets };
}

function timeOf({ time }: CountQuery, open: OpenRowGroup): Pick<RowGroupCount, 'time' | 'buckets'> {
  if (time === undefined) return { time: null, buckets: null };
  const zone = open.zone(time.field);
  if (isAllNull(zone)) return { time: { kind: 'null' }, buckets: null };
  if (typeof zone?.min !== 'bigint' || typeof zone.max !== 'bigint')
    return { time: { kind: 'column' }, buckets: null };
  const first = bucketOfTime(time.buckets, zone.min);
  if (zone.nullCount === 0 && BigInt(first.until) > zone.max)
    return { time: { kind: 'one', one: first }, buckets: null };
  const buckets = bucketsBetween(time.buckets, zone.min, zone.max, countBucketsMax);
  return { time: { kind: 'column' }, buckets };
}

function valueOf({ values }: CountQuery, schema: Schema, open: OpenRowGroup): RowGroupCount['value'] {
  if (values === undefined) return null;
  const zone = open.zone(values.field);
  if (isAllNull(zone)) return { kind: 'null' };
  // Files of other programs may have NaN and infinite floats, which become null here. Their bounds and null counts don't include these.
  if (zone === null || zone.nullCount > 0 || schema.fields[values.field]!.type === 'float')
    return { kind: 'column' };
  const { min, max } = zone;
  if (min instanceof Uint8Array && max instanceof Uint8Array && Buffer.compare(min, max) === 0)
    return { kind: 'one', one: min };
  if (typeof min === 'bigint' && min === max) return { kind: 'one', one: min };
  return { kind: 'column' };
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
  assert(selection.kind !== 'all', 'all rows have no bitmap of their own');
  if (selection.kind === 'rows') for (const row of selection.rows) bits[row >> 3]! |= 1 << (row & 7);
  return bits;
}
