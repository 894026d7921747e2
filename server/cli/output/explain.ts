import {
  assertNever,
  type Field,
  formatCursor,
  type Predicate,
  type Query,
  type ScanStats,
  type Schema,
} from '../../../engine/index.js';
import { formatBytes, formatCount, formatSpan, formatTime } from './figures.js';
import { formatPairs } from './table.js';

const signs = { eq: '=', ne: '≠', gt: '>', gte: '≥', lt: '<', lte: '≤' } as const;

/** A parsed filter: field, comparison and typed value. */
function describePredicate(predicate: Predicate, schema: Schema): string {
  if (predicate.kind === 'anywhere')
    return `any text ${predicate.isAbsent ? 'not_like' : 'like'} ${JSON.stringify(predicate.value)}`;
  const field = schema.fields[predicate.field]!;
  switch (predicate.kind) {
    case 'int': {
      const value = field.type === 'bool' ? String(predicate.value !== 0n) : predicate.value.toString();
      const time = field.type === 'time' ? ` (${formatTime(Number(predicate.value))} UTC)` : '';
      return `${field.name} ${signs[predicate.op]} ${value}${time}`;
    }
    case 'float':
      return `${field.name} ${signs[predicate.op]} ${predicate.value}`;
    case 'string':
      return `${field.name} ${predicate.op} ${JSON.stringify(predicate.value)}`;
    case 'set':
      return predicate.members.map((member) => describePredicate(member, schema)).join(' or ');
    default:
      return assertNever(predicate);
  }
}

/** The kind of index that an agent's file sets for a field; empty where the data decide. */
export function describeIndexOf({ index }: Field): string {
  return index === undefined ? '' : ` (index: ${index})`;
}

/** The parsed query as lines for people: reading order, bounds and typed filters. */
export function describeQuery(query: Query, schema: Schema): string[] {
  const order = query.after === undefined ? 'newest first, answered oldest first' : 'oldest first';
  const pairs: [string, string][] = [
    ['reads', order],
    ['limit', Number.isSafeInteger(query.limit) ? formatCount(query.limit) : 'none'],
  ];
  if (query.after !== undefined) pairs.push(['after', formatCursor(query.after)]);
  if (query.before !== undefined) pairs.push(['before', formatCursor(query.before)]);
  query.predicates.forEach((predicate, i) => {
    const index = predicate.kind === 'anywhere' ? '' : describeIndexOf(schema.fields[predicate.field]!);
    pairs.push([i === 0 ? 'filters' : '', describePredicate(predicate, schema) + index]);
  });
  return formatPairs(pairs);
}

/** The cost of a query as lines for people, for `--explain`. */
export function describeStats(stats: ScanStats): string[] {
  const left = (count: number, by: string): [string, string][] =>
    count === 0 ? [] : [[`  ruled out by ${by}`, formatCount(count)]];
  return formatPairs([
    ['runs within the bounds', formatCount(stats.runs)],
    ['row groups', formatCount(stats.rowGroups)],
    ...left(stats.rowGroupsPrunedByTime, 'time'),
    ...left(stats.rowGroupsPrunedByZone, 'bounds'),
    ...left(stats.rowGroupsPrunedByValue, 'values'),
    ...left(stats.rowGroupsPrunedByGram, 'grams'),
    ...left(stats.rowGroupsPrunedByDictionary, 'dictionary'),
    ['  scanned', formatCount(stats.rowGroupsScanned)],
    ['rows scanned', formatCount(stats.rowsScanned)],
    ['rows returned', formatCount(stats.rowsReturned)],
    ['bytes read', formatBytes(stats.bytesRead)],
    ['columns decoded', formatCount(stats.columnsDecoded)],
    ['columns from the cache', formatCount(stats.columnsCached)],
    ...(stats.columnsPrunedByGram === 0
      ? []
      : [['columns ruled out by grams', formatCount(stats.columnsPrunedByGram)] as [string, string]]),
    ['value filter pieces read', formatCount(stats.valuePiecesRead)],
    ['gram filter pieces read', formatCount(stats.gramPiecesRead)],
    ['time to find the rows', formatSpan(stats.selectMs)],
    ['time to write them out', formatSpan(stats.writeMs)],
  ]);
}
