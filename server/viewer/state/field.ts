import type { FieldType } from '../../../engine/core/field-types.js';
import type { Value, LogRecord } from './record.js';

export type { FieldType };

/**
 * The operators of filters: those of the query route, `not_in`, which is sent as one `ne` per value, and `not_exists`. `words` is how a filter
 * reads to the user: field, words, value.
 */
export const operatorFacts = {
  eq: { words: 'is', opposite: 'ne' },
  ne: { words: 'is not', opposite: 'eq' },
  gt: { words: '>', opposite: 'lte' },
  gte: { words: '≥', opposite: 'lt' },
  lt: { words: '<', opposite: 'gte' },
  lte: { words: '≤', opposite: 'gt' },
  exact: { words: 'is', opposite: 'ne' },
  like: { words: 'contains', opposite: 'not_like' },
  prefix: { words: 'begins with', opposite: 'not_prefix' },
  suffix: { words: 'ends with', opposite: 'not_suffix' },
  not_like: { words: 'does not contain', opposite: 'like' },
  not_prefix: { words: 'does not begin with', opposite: 'prefix' },
  not_suffix: { words: 'does not end with', opposite: 'suffix' },
  regex: { words: 'matches', opposite: 'not_regex' },
  not_regex: { words: 'does not match', opposite: 'regex' },
  exists: { words: 'has a value', opposite: 'not_exists' },
  not_exists: { words: 'has no value', opposite: 'exists' },
  in: { words: 'is one of', opposite: 'not_in' },
  not_in: { words: 'is none of', opposite: 'in' },
  since: { words: 'from', opposite: 'until' },
  until: { words: 'before', opposite: 'since' },
} as const satisfies Readonly<Record<string, { readonly words: string; readonly opposite: string }>>;

export type Operator = keyof typeof operatorFacts;

/** What the page has to know of a type of fields. */
interface TypeFacts {
  /** The operators of filters, the most common first; equality is the first one. */
  readonly operators: readonly Operator[];
  /** An example of a value. */
  readonly example: string;
  /** The values, where there are only these. */
  readonly choices?: readonly string[];
  /** Whether values repeat, so that records are counted by them. */
  readonly isCounted: boolean;
  /** The role of a column, where its name gives it none. */
  readonly role: 'time' | 'number' | 'other';
}

/** The operators of every type: whether there is a value. They have no value themselves. */
export const presence = ['exists', 'not_exists'] as const satisfies readonly Operator[];

const numeric: readonly Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in', ...presence];

/** The types of fields, one a row. */
export const typeFacts: Readonly<Record<FieldType, TypeFacts>> = {
  int: { operators: numeric, example: '500', isCounted: true, role: 'number' },
  float: { operators: numeric, example: '0.25', isCounted: false, role: 'number' },
  bool: {
    operators: ['eq', 'ne', ...presence],
    example: 'true',
    choices: ['true', 'false'],
    isCounted: true,
    role: 'other',
  },
  time: {
    // Times can also be compared by milliseconds, but nobody would type those.
    operators: ['since', 'until', ...presence],
    example: '2026-11-18 10:00:00, or 15m for 15 minutes ago',
    isCounted: false,
    role: 'time',
  },
  string: {
    operators: [
      'exact',
      'ne',
      'like',
      'not_like',
      'prefix',
      'not_prefix',
      'suffix',
      'not_suffix',
      'regex',
      'not_regex',
      'in',
      'not_in',
      ...presence,
    ],
    example: '',
    isCounted: true,
    role: 'other',
  },
};

/** A field of an agent, as in the response of `/api/schema`. */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly description?: string | undefined;
  /** Of several agents, those that lack the field. */
  readonly lackedBy?: readonly string[];
  /** Of several agents, whether it is the first field of type time of one of them. */
  readonly isClock?: boolean;
}

/** The column of several agents that says which one a record is of. The route knows it in answers only. */
export const agentField: Field = { name: '_agent', type: 'string', description: 'The agent of the record' };

/** The fields of several agents as one list, in the order in which the agents bring them. */
export function unitedFields(
  lists: readonly { readonly agent: string; readonly fields: readonly Field[] }[],
): readonly Field[] {
  const united = new Map<string, Field>();
  const clocks = new Set(lists.map(({ fields }) => timeFieldOf(fields)));
  for (const field of lists.flatMap(({ fields }) => fields)) {
    const { name } = field;
    const lacking = lists.filter(({ fields }) => !fields.some((other) => other.name === name));
    const lackedBy = lacking.map(({ agent }) => agent);
    if (!united.has(name)) united.set(name, { ...field, lackedBy, isClock: clocks.has(name) });
  }
  return [...united.values()];
}

/** In place of a field's name in a filter: all fields of type string. */
export const anyField = '*';

/** The name of a field as shown to the user. */
export function fieldWords(name: string): string {
  return name === anyField ? 'any field' : name;
}

/** Whether a search in the field named `searched`, which may be `anyField`, includes this field. */
export function isSearched({ name, type }: Field, searched: string | undefined): boolean {
  return name === searched || (searched === anyField && type === 'string' && name !== agentField.name);
}

const levelNames = ['level', 'severity', 'log_level', 'loglevel', 'lvl', 'priority'];
const statusNames = ['status', 'status_code', 'http_status', 'code'];
// Access logs have no message; the requested path is the most useful text then.
const textNames = ['message', 'msg', 'text', 'log', 'body', 'line', 'event', 'path', 'uri', 'url', 'request'];
const originNames = [
  'service',
  'component',
  'logger',
  'module',
  'program',
  'app',
  'host',
  'hostname',
  'remote_addr',
];

function firstNamed(fields: readonly Field[], names: readonly string[]): Field | undefined {
  for (const name of names) {
    const found = fields.find((field) => field.name === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The field with the time of a record: the first of type time. */
export function timeFieldOf(fields: readonly Field[]): string | undefined {
  return fields.find(({ type }) => type === 'time')?.name;
}

/** The fields with the times of records: that of the agent, or those of several agents. */
export function clocksOf(fields: readonly Field[]): readonly string[] {
  const first = timeFieldOf(fields);
  return fields.filter(({ name, isClock }) => isClock ?? name === first).map(({ name }) => name);
}

/** The field with the main text of a record: one with a name for messages, else the last of type string. */
export function textFieldOf(fields: readonly Field[]): string | undefined {
  const strings = fields.filter(({ type }) => type === 'string');
  return (firstNamed(strings, textNames) ?? strings.at(-1))?.name;
}

/** The field with the severity of a record: one with a name for levels, else one with a name for statuses. */
export function severityFieldOf(fields: readonly Field[]): string | undefined {
  return (firstNamed(fields, levelNames) ?? firstNamed(fields, statusNames))?.name;
}

/** The default columns: time, severity, up to two fields for the origin, and the text. */
export function usualColumns(fields: readonly Field[]): readonly string[] {
  const text = textFieldOf(fields);
  const origins = fields.filter(({ name }) => originNames.includes(name)).map(({ name }) => name);
  const names = [...clocksOf(fields), severityFieldOf(fields), ...origins.slice(0, 2), text];
  const found = [...new Set(names.filter((name) => name !== undefined))];
  const rest = fields.map(({ name }) => name).filter((name) => !found.includes(name));
  // With too few of these, other fields are shown as well.
  return found.length > 2 ? found : [...found, ...rest.slice(0, 4)];
}

/** The role of a column, which decides how its cells look. */
export type ColumnRole = 'time' | 'severity' | 'text' | 'number' | 'other';

const roleWidths: Readonly<Record<ColumnRole, number>> = {
  time: 196,
  severity: 68,
  text: 240,
  number: 96,
  other: 128,
};

/** The role of a field's column. */
export function roleOf(field: Field, fields: readonly Field[]): ColumnRole {
  if (field.name === timeFieldOf(fields)) return 'time';
  if (field.name === severityFieldOf(fields)) return 'severity';
  if (field.name === textFieldOf(fields)) return 'text';
  return typeFacts[field.type].role;
}

/** The default width of a field's column in pixels. */
export function usualWidth(field: Field, fields: readonly Field[]): number {
  return roleWidths[roleOf(field, fields)];
}

/** The severity that a value stands for; `other` where it stands for none. */
export type Severity = 'error' | 'warn' | 'info' | 'debug' | 'ok' | 'other';

const byName: Readonly<Record<string, Severity>> = {
  emerg: 'error',
  emergency: 'error',
  alert: 'error',
  crit: 'error',
  critical: 'error',
  fatal: 'error',
  panic: 'error',
  severe: 'error',
  error: 'error',
  err: 'error',
  e: 'error',
  f: 'error',
  warn: 'warn',
  warning: 'warn',
  w: 'warn',
  notice: 'info',
  info: 'info',
  information: 'info',
  i: 'info',
  debug: 'debug',
  d: 'debug',
  trace: 'debug',
  verbose: 'debug',
  fine: 'debug',
};

/** The severity of a value: the name of a level, or an HTTP status code. */
export function severityOf(value: Value | undefined): Severity {
  if (typeof value === 'string') {
    const found = byName[value.toLowerCase()];
    if (found !== undefined) return found;
    return /^[1-5]\d\d$/.test(value) ? severityOf(Number(value)) : 'other';
  }
  if (typeof value !== 'number' || value < 100 || value > 599) return 'other';
  if (value >= 500) return 'error';
  if (value >= 400) return 'warn';
  if (value >= 300) return 'debug';
  return value >= 200 ? 'ok' : 'info';
}

const order: readonly Severity[] = ['error', 'warn', 'info', 'ok', 'debug', 'other'];

/** The order of severities in a bar. The worst is at the bottom, where heights are easiest to compare. */
export function severityRank(severity: Severity): number {
  return order.indexOf(severity);
}

/** Fields with longer values on average are not counted: such values are read one by one. */
const meanCharsMax = 48;
/** Fields with a larger share of distinct values in the sample are not counted: nearly every record has a value of its own. */
const differentMax = 0.4;
/** Maximum number of fields that are counted without the user asking for it. */
const fieldsMax = 8;

/** The fields that are worth counting by default: among the sampled records their values are short and repeat. */
export function sampledShort(fields: readonly Field[], sample: readonly LogRecord[]): ReadonlySet<string> {
  if (sample.length === 0) return new Set();
  const severity = severityFieldOf(fields);
  const text = textFieldOf(fields);
  const short = fields.filter(({ name, type }) => {
    if (name === severity || typeFacts[type].choices !== undefined) return true;
    if (name === text || !typeFacts[type].isCounted) return false;
    const values = sample.map(({ values: all }) => all.get(name)).filter((value) => value !== null);
    const texts = values.map(String);
    const chars = texts.reduce((sum, value) => sum + value.length, 0);
    const isFew = new Set(texts).size <= Math.max(3, texts.length * differentMax);
    return texts.length > 0 && isFew && chars / texts.length <= meanCharsMax;
  });
  return new Set(short.slice(0, fieldsMax).map(({ name }) => name));
}
