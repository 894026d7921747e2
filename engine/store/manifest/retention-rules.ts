import { createHash } from 'node:crypto';
import { hourMs } from '../../core/cursor.js';
import {
  typeFacts,
  type CompareOp,
  type FieldPredicate,
  type Schema,
  type StringOp,
} from '../../core/schema.js';
import {
  ageingPartition,
  ageReferenceMs,
  type KeptPolicy,
  type Manifest,
  type RetentionRule,
  type RuleFilter,
  type SegmentEntry,
} from './manifest.js';

/** A name for the records that a rule removes, whatever its period is. Segments note it once the rule has been applied to them. */
export function ruleMark({ where }: RetentionRule): string {
  return createHash('sha256').update(JSON.stringify(where)).digest('hex').slice(0, 8);
}

/** The filters of a rule as predicates; undefined where the schema lacks one of the fields, so that no record is removed by the rule. */
export function predicatesOf({ where }: RetentionRule, schema: Schema): FieldPredicate[] | undefined {
  const predicates = where.map((filter) => predicateOf(filter, schema));
  return predicates.every((each) => each !== undefined) ? predicates : undefined;
}

function predicateOf(
  { field: name, type, op, values }: RuleFilter,
  schema: Schema,
): FieldPredicate | undefined {
  const field = schema.fields.findIndex((each) => each.name === name && each.type === type);
  if (field < 0) return undefined;
  if (op === 'exists') return { kind: 'exists', field, value: values[0] === 'true' };
  const members = values.map((value): FieldPredicate => {
    const { column } = typeFacts[type];
    if (column === 'bytes') return { kind: 'string', field, op: op as StringOp, value };
    if (column === 'float64') return { kind: 'float', field, op: op as CompareOp, value: Number(value) };
    return { kind: 'int', field, op: op as CompareOp, value: BigInt(value) };
  });
  return members.length === 1 ? members[0] : { kind: 'set', field, members };
}

/** The rules in force that can remove records with the agent's current fields. */
export function rulesInForce({
  retention,
  schemas,
}: Pick<Manifest, 'retention' | 'schemas'>): readonly RetentionRule[] {
  const schema = schemas.at(-1)?.schema;
  if (retention?.rules === undefined || schema === undefined) return [];
  return retention.rules.filter((rule) => predicatesOf(rule, schema) !== undefined);
}

/** The rules that are to be applied to a segment now: all of its records are older than their periods. */
export function dueRules(manifest: Manifest, entry: SegmentEntry, nowMs: number): readonly RetentionRule[] {
  const { far, stays, keepUntilMs = 0 } = entry;
  const referenceMs = ageReferenceMs(manifest, nowMs);
  if (far !== undefined || stays === true || referenceMs < keepUntilMs || isWaiting(manifest)) return [];
  const endMs = endOf(entry);
  return rulesLeft(manifest, entry).filter(({ periodMs }) => endMs + periodMs <= referenceMs);
}

/** The rules in force that have not been applied to a segment. */
export function rulesLeft(manifest: Manifest, { ruled = [] }: SegmentEntry): readonly RetentionRule[] {
  return rulesInForce(manifest).filter((rule) => !ruled.includes(ruleMark(rule)));
}

/** While the time has leapt, no record is removed for its age. */
function isWaiting({ retention }: { readonly retention?: KeptPolicy | undefined }): boolean {
  return retention?.pending?.leapt === true;
}

/** When the segment's newest hour ended (ms). */
function endOf(entry: SegmentEntry): number {
  return (ageingPartition(entry, entry.runs.at(-1)!.partition) + 1) * hourMs;
}

/**
 * How long ago (ms) the newest records that a rule has been applied to became due, if newer ones are due as well. 0 if there are none, or
 * the rule has not been applied to any yet. Segments are taken newest first, so a long time means that the time has leapt.
 */
export function ruleLagMs(
  segments: readonly SegmentEntry[],
  rule: RetentionRule,
  referenceMs: number,
): number {
  const mark = ruleMark(rule);
  let [applied, due] = [0, 0];
  for (const entry of segments) {
    const dueMs = endOf(entry) + rule.periodMs;
    if (entry.ruled?.includes(mark) === true) applied = Math.max(applied, dueMs);
    else if (dueMs <= referenceMs) due = Math.max(due, dueMs);
  }
  return applied > 0 && due > applied ? referenceMs - applied : 0;
}
