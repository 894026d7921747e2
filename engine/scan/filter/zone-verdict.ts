import { assert, assertNever } from '../../terms/assert.js';
import type { Comparison, PreparedPredicate, Range, StringComparison } from '../job/predicate.js';
import type { ZoneMap } from '../../columns/zone-map.js';

/** What a zone map says of a predicate: no row matches, every row matches, or only the values can tell. */
export type ZoneVerdict = 'none' | 'all' | 'some';

/** The verdict of a column chunk's zone map; `some` where it has no bounds. A null matches no predicate. */
export function zoneVerdict(predicate: PreparedPredicate, zone: ZoneMap | null): ZoneVerdict {
  if (zone === null) return 'some';
  if (zone.nullCount === zone.rows) return 'none';
  const verdicts = predicate.anyOf.map((comparison) => comparisonVerdict(comparison, zone));
  if (verdicts.includes('all')) return zone.nullCount > 0 ? 'some' : 'all';
  return verdicts.includes('some') ? 'some' : 'none';
}

function comparisonVerdict(comparison: Comparison, { min, max }: ZoneMap): ZoneVerdict {
  if (comparison.kind === 'string' && comparison.needle.op !== 'exact') {
    if (comparison.needle.folded.length > 0) return 'some';
    return comparison.outside ? 'none' : 'all';
  }
  if (min === null || max === null) return 'some';
  switch (comparison.kind) {
    case 'int':
      assert(typeof min === 'bigint' && typeof max === 'bigint', 'the bounds of integers are BigInts');
      return rangeVerdict(comparison, min, max);
    case 'float':
      assert(typeof min === 'number' && typeof max === 'number', 'the bounds of floats are numbers');
      return Number.isNaN(min) || Number.isNaN(max) ? 'some' : rangeVerdict(comparison, min, max);
    case 'string':
      assert(min instanceof Uint8Array && max instanceof Uint8Array, 'the bounds of strings are bytes');
      return exactVerdict(comparison, min, max);
    default:
      return assertNever(comparison);
  }
}

function rangeVerdict<T extends bigint | number>(
  { low, high, outside }: Range<T>,
  min: T,
  max: T,
): ZoneVerdict {
  return verdictOf(max < low || min > high, min >= low && max <= high, outside);
}

function exactVerdict({ needle, outside }: StringComparison, min: Uint8Array, max: Uint8Array): ZoneVerdict {
  const fromMin = Buffer.compare(needle.raw, min);
  const fromMax = Buffer.compare(needle.raw, max);
  return verdictOf(fromMin < 0 || fromMax > 0, fromMin === 0 && fromMax === 0, outside);
}

/** The verdict where all values are outside of a range (`apart`) or all within it. `outside` inverts the range. */
function verdictOf(apart: boolean, within: boolean, outside: boolean): ZoneVerdict {
  if (apart) return outside ? 'all' : 'none';
  if (within) return outside ? 'none' : 'all';
  return 'some';
}
