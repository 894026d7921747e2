import { assert, assertNever } from '../assert.js';
import { placementField } from '../schema.js';
import type { Schema } from '../schema.js';
import type { PreparedFloat, PreparedInt, PreparedPredicate, PreparedString } from './predicate.js';
import type { RowGroup } from './snapshot.js';
import type { ZoneMap } from '../columns/zone-map.js';

/** What a zone map says of a predicate over its rows: no row matches, every row does, or only the values can tell. */
export type ZoneVerdict = 'none' | 'all' | 'some';

/** Whether the bounds that the manifest has of the placement field leave no row to match. Needs no file to be opened. */
export function prunedByTime(
  rowGroup: RowGroup,
  predicates: readonly PreparedPredicate[],
  schema: Schema,
): boolean {
  const { timeMinMs, timeMaxMs } = rowGroup;
  if (timeMinMs === null || timeMaxMs === null) return false;
  const field = placementField(schema);
  return predicates.some(
    (predicate) =>
      predicate.kind === 'int' &&
      predicate.field === field &&
      intVerdict(predicate, BigInt(timeMinMs), BigInt(timeMaxMs)) === 'none',
  );
}

/** The verdict of a column chunk's zone map; `some` where it lacks what it takes. Null matches nothing. */
export function zoneVerdict(predicate: PreparedPredicate, zone: ZoneMap | null): ZoneVerdict {
  if (zone === null) return 'some';
  if (zone.nullCount === zone.rows) return 'none';
  const verdict = boundsVerdict(predicate, zone);
  return verdict === 'all' && zone.nullCount > 0 ? 'some' : verdict;
}

function boundsVerdict(predicate: PreparedPredicate, zone: ZoneMap): ZoneVerdict {
  const { min, max } = zone;
  switch (predicate.kind) {
    case 'int':
      if (min === null || max === null) return 'some';
      assert(typeof min === 'bigint' && typeof max === 'bigint', 'the bounds of integers are BigInts');
      return intVerdict(predicate, min, max);
    case 'float':
      if (min === null || max === null) return 'some';
      assert(typeof min === 'number' && typeof max === 'number', 'the bounds of floats are numbers');
      return floatVerdict(predicate, min, max);
    case 'string':
      if (predicate.needle.op !== 'exact') return predicate.needle.folded.length === 0 ? 'all' : 'some';
      if (min === null || max === null) return 'some';
      assert(min instanceof Uint8Array && max instanceof Uint8Array, 'the bounds of strings are bytes');
      return exactVerdict(predicate, min, max);
    default:
      return assertNever(predicate);
  }
}

function intVerdict(predicate: PreparedInt, min: bigint, max: bigint): ZoneVerdict {
  const { low, high } = predicate;
  const apart = max < low || min > high;
  const within = min >= low && max <= high;
  if (predicate.outside) return apart ? 'all' : within ? 'none' : 'some';
  return apart ? 'none' : within ? 'all' : 'some';
}

function floatVerdict(predicate: PreparedFloat, min: number, max: number): ZoneVerdict {
  // A bound that is NaN compares as false with everything, and so says nothing.
  const { low, high } = predicate;
  const apart = max < low || min > high;
  const within = min >= low && max <= high;
  if (Number.isNaN(min) || Number.isNaN(max)) return 'some';
  if (predicate.outside) return apart ? 'all' : within ? 'none' : 'some';
  return apart ? 'none' : within ? 'all' : 'some';
}

function exactVerdict(predicate: PreparedString, min: Uint8Array, max: Uint8Array): ZoneVerdict {
  const wanted = predicate.needle.raw;
  const fromMin = Buffer.compare(wanted, min);
  const fromMax = Buffer.compare(wanted, max);
  if (fromMin < 0 || fromMax > 0) return 'none';
  return fromMin === 0 && fromMax === 0 ? 'all' : 'some';
}
