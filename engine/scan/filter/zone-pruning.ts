import { assert, assertNever } from '../../terms/assert.js';
import { placementField } from '../../terms/schema.js';
import type { Schema } from '../../terms/schema.js';
import type {
  PreparedCompare,
  PreparedFloat,
  PreparedInt,
  PreparedPredicate,
  PreparedString,
} from './predicate.js';
import type { RowGroup } from '../../store/reading/snapshot.js';
import type { ZoneMap } from '../../columns/zone-map.js';

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
      predicate.field === field &&
      zoneVerdict(predicate, {
        min: BigInt(timeMinMs),
        max: BigInt(timeMaxMs),
        nullCount: 0,
        rows: rowGroup.rows,
      }) === 'none',
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
  if (predicate.kind !== 'set') return compareVerdict(predicate, zone);
  const verdicts = predicate.members.map((member) => compareVerdict(member, zone));
  if (verdicts.includes('all')) return 'all';
  return verdicts.includes('some') ? 'some' : 'none';
}

function compareVerdict(predicate: PreparedCompare, zone: ZoneMap): ZoneVerdict {
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
      if (predicate.needle.op !== 'exact' && predicate.needle.folded.length > 0) return 'some';
      if (predicate.needle.op !== 'exact') return predicate.outside ? 'none' : 'all';
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
  return verdictOf(apart, within, predicate.outside);
}

/** The verdict on values that all lie apart from a range, or all within it; `outside` asks for those apart. */
function verdictOf(apart: boolean, within: boolean, outside: boolean): ZoneVerdict {
  if (apart) return outside ? 'all' : 'none';
  if (within) return outside ? 'none' : 'all';
  return 'some';
}

function floatVerdict(predicate: PreparedFloat, min: number, max: number): ZoneVerdict {
  // A bound that is NaN compares as false with everything, and so says nothing.
  const { low, high } = predicate;
  const apart = max < low || min > high;
  const within = min >= low && max <= high;
  if (Number.isNaN(min) || Number.isNaN(max)) return 'some';
  return verdictOf(apart, within, predicate.outside);
}

function exactVerdict(predicate: PreparedString, min: Uint8Array, max: Uint8Array): ZoneVerdict {
  const wanted = predicate.needle.raw;
  const fromMin = Buffer.compare(wanted, min);
  const fromMax = Buffer.compare(wanted, max);
  const apart = fromMin < 0 || fromMax > 0;
  const within = fromMin === 0 && fromMax === 0;
  return verdictOf(apart, within, predicate.outside);
}
