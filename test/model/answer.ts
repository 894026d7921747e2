import { RE2JS } from 're2js';
import { comparePositions, formatCursor } from '../../engine/core/cursor.js';
import type { CompareOp, FieldPredicate, Predicate, Query, StringOp } from '../../engine/scan/query.js';
import type { FieldType } from '../../engine/core/schema.js';
import type { Dataset, ModelRecord, Value } from './dataset.js';

/**
 * The naive model: computes the answer to a query with the simplest code that is obviously correct, without the engine's scan.
 */
export function answerOf(dataset: Dataset, query: Query): string {
  const { format = 'jsonl', fields = null } = query.form ?? {};
  const shown = fields ?? dataset.schema.fields.map((_, field) => field);
  const records = matchesOf(dataset, query);
  if (format === 'csv')
    return [headerOf(dataset, shown), ...records.map((record) => csvOf(record, dataset, shown))].join('');
  const lines = records.map((record) => lineOf(record, dataset, shown));
  return format === 'json' ? `[${lines.join(',')}]` : lines.join('');
}

/** The records of the answer in ascending order. */
export function matchesOf(dataset: Dataset, query: Query): ModelRecord[] {
  const { after, before, limit } = query;
  const matching = dataset.records
    .filter((record) => after === undefined || comparePositions(record.position, after) > 0)
    .filter((record) => before === undefined || comparePositions(record.position, before) < 0)
    .filter((record) => query.predicates.every((predicate) => matches(predicate, record, dataset)))
    .sort((a, b) => comparePositions(a.position, b.position));
  if (limit === 0) return [];
  return after !== undefined ? matching.slice(0, limit) : matching.slice(-limit);
}

function headerOf({ schema }: Dataset, shown: readonly number[]): string {
  return `${['_cursor', ...shown.map((field) => schema.fields[field]!.name)].join(',')}\r\n`;
}

function csvOf({ position, values }: ModelRecord, { schema }: Dataset, shown: readonly number[]): string {
  const fields = shown.map((field) => {
    const value = values[field]!;
    if (value === null) return '';
    if (typeof value !== 'string') return json(value, schema.fields[field]!.type);
    const isPlain = value !== '' && !/[",\r\n]/.test(value);
    return isPlain ? value : `"${value.replaceAll('"', '""')}"`;
  });
  return `${[formatCursor(position), ...fields].join(',')}\r\n`;
}

function lineOf(record: ModelRecord, { schema }: Dataset, shown: readonly number[]): string {
  const fields = shown.map((index) => {
    const field = schema.fields[index]!;
    return `${JSON.stringify(field.name)}:${json(record.values[index]!, field.type)}`;
  });
  return `{${[`"_cursor":"${formatCursor(record.position)}"`, ...fields].join(',')}}\n`;
}

function json(value: Value, type: FieldType): string {
  if (type === 'bool' && value !== null) return String(value === 1n);
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value);
}

function matches(predicate: Predicate, record: ModelRecord, dataset: Dataset): boolean {
  const { values } = record;
  const { schema } = dataset;
  if (predicate.kind === 'any') return predicate.members.some((member) => matches(member, record, dataset));
  if (predicate.kind !== 'anywhere') return holds(predicate, values[predicate.field]!);
  const texts = values.filter((value, i) => value !== null && schema.fields[i]!.type === 'string');
  return (
    predicate.isAbsent !== texts.some((text) => holdsString(predicate.op, String(text), predicate.value))
  );
}

function holds(predicate: FieldPredicate, value: Value): boolean {
  if (predicate.kind === 'exists') return (value !== null) === predicate.value;
  if (value === null) return false;
  if (predicate.kind === 'set') return predicate.members.some((member) => holds(member, value));
  if (predicate.kind === 'string') return holdsString(predicate.op, String(value), predicate.value);
  return holdsCompare(predicate.op, value as bigint | number, predicate.value);
}

function holdsCompare(op: CompareOp, value: bigint | number, wanted: bigint | number): boolean {
  switch (op) {
    case 'eq':
      return value === wanted;
    case 'ne':
      return value !== wanted;
    case 'gt':
      return value > wanted;
    case 'gte':
      return value >= wanted;
    case 'lt':
      return value < wanted;
    case 'lte':
      return value <= wanted;
  }
}

/** Compiled patterns, which many records are compared with. */
const patterns = new Map<string, RE2JS>();

function patternOf(text: string): RE2JS {
  const pattern = patterns.get(text) ?? RE2JS.compile(text);
  if (patterns.size > 100) patterns.clear();
  patterns.set(text, pattern);
  return pattern;
}

/**
 * Whether a string passes a filter, by the definition of the filters: a JavaScript regular expression `/…/iu` of the escaped value, or re2js's
 * own search.
 */
export function holdsString(op: StringOp, value: string, wanted: string): boolean {
  const literal = wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  switch (op) {
    case 'exact':
      return value === wanted;
    case 'like':
      return new RegExp(literal, 'iu').test(value);
    case 'prefix':
      return new RegExp(`^${literal}`, 'iu').test(value);
    case 'suffix':
      return new RegExp(`${literal}$`, 'iu').test(value);
    case 'regex':
      return patternOf(wanted).matcher(value).find();
    case 'ne':
      return value !== wanted;
    case 'not_regex':
    case 'not_like':
    case 'not_prefix':
    case 'not_suffix':
      return !holdsString(op.slice('not_'.length) as StringOp, value, wanted);
  }
}
