import type { Retention, RetentionRule, RuleFilter, Schema } from '../../engine/index.js';
import { FilterError, parsePredicate, type Filter } from './filter.js';
import { windowOps } from './filter-operators.js';
import { durationShape, parseDuration } from './quantities.js';
import type { YamlSection } from './yaml.js';

const retentionIntervalDefaultMs = 3_600_000;

/** Time to read what a change would delete, and to revert the change. */
const retentionGraceDefaultMs = 86_400_000;

/** Reads `retention`: how long records with these fields are kept. */
export function readRetention(root: YamlSection, schema: Schema): Retention | undefined {
  const section = root.section('retention', ['period', 'interval', 'max_bytes', 'grace', 'rules']);
  if (section === undefined) return undefined;
  const periodMs = section.parsed('period', `never, or ${durationShape}, longer than 0`, (text) => {
    if (text.trim().toLowerCase() === 'never') return Infinity;
    return parseDuration(text) || undefined;
  });
  const intervalMs = section.duration('interval', 1) ?? retentionIntervalDefaultMs;
  const bytesMax = section.byteSize('max_bytes') ?? null;
  const graceMs = section.duration('grace', 0) ?? retentionGraceDefaultMs;
  const rules = (section.sections('rules', 'a rule', ['where', 'period']) ?? []).map((rule) => {
    const read = readRule(rule, schema);
    if (read.periodMs >= (periodMs ?? Infinity))
      rule.problem(
        'period',
        'period must be shorter than retention.period, which removes these records as well',
      );
    return read;
  });
  return {
    periodMs: periodMs === Infinity ? null : (periodMs ?? null),
    intervalMs,
    bytesMax,
    graceMs,
    ...(rules.length === 0 ? {} : { rules }),
  };
}

/** Reads a rule: records that match all filters of `where` are kept for `period`. */
function readRule(rule: YamlSection, schema: Schema): RetentionRule {
  const periodMs = rule.duration('period', 1) ?? 0;
  if (!rule.has('period')) rule.missing('period', `how long the records are kept, ${durationShape}`);
  const where = rule.section('where', null);
  const keys = where?.keys ?? [];
  if (keys.length === 0)
    rule.missing('where', 'the filters that its records match, such as "level__in: [debug, trace]"');
  return { where: keys.flatMap((key) => readFilter(where!, key, schema) ?? []), periodMs };
}

/** Reads a filter in the words of the query route. Several values are those of `in`. */
function readFilter(where: YamlSection, key: string, schema: Schema): RuleFilter | undefined {
  const refuse = (message: string): undefined => {
    where.problem(key, message);
    return undefined;
  };
  const texts = where.texts(key) ?? [];
  if (texts.length === 0) return refuse(`${key} needs a value`);
  const [name, op] = key.split('__');
  if (schema.fields.length === 0)
    return refuse('a rule names fields, so the agent has to list its own in "fields"');
  if (texts.length > 1 && op !== 'in') return refuse(`${key} takes one value; ${name}__in takes a list`);
  if (name === '*') return refuse('a rule names the field that it looks at, which "*" does not');
  if (windowOps.has(op ?? '')) return refuse(`the age of records is the "period" of the rule, not ${key}`);
  try {
    const members = texts.flatMap((text): readonly Filter[] => {
      const filter = parsePredicate(key, text, schema, { now: 0, timezone: 'UTC' });
      return filter.kind === 'set' ? filter.members : [filter];
    });
    const { type } = schema.fields.find((field) => field.name === name)!;
    const first = members[0]!;
    const values = members.flatMap((member) => (member.kind === 'set' ? [] : [String(member.value)]));
    return { field: name!, type, op: 'op' in first ? first.op : 'exists', values };
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    return refuse(error.message);
  }
}
