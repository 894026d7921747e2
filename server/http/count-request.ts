import {
  countBucketsMax,
  CountBoundError,
  countTopMax,
  type CountQuery,
  type Field,
  type ReadableStore,
  type SeveralCursors,
  type SeveralStore,
  type CountedValue,
  type Counts,
  type NumberAnswers,
} from '../../engine/index.js';
import { zoneProblem } from '../../engine/times/zone.js';
import {
  fieldNamed,
  numberCells,
  numbersJson,
  numberTitles,
  parseNumbers,
  type NumbersRequest,
} from './count-numbers.js';
import { topDefault } from './http-limits.js';
import { badParameter } from './problem.js';
import { parsePosition, readParameters, type FilterContext } from './parameters.js';
import { parseTimeStep, stepFor, timeBuckets } from './time-step.js';

/** The formats of the response. */
export const countFormats = ['json', 'csv'] as const;

/** The format of the response. */
export type CountFormat = (typeof countFormats)[number];

/** A parsed count request: what to count, and how to answer. */
export interface CountRequest {
  readonly query: CountQuery;
  /** The query of each agent, where several are asked. Fields and bounds of `query` are then those of all. */
  readonly of?: readonly CountQuery[];
  /** The time field to count by, its step and zone as given; undefined where the count is not by time. */
  readonly time?: { readonly field: Field; readonly step: string; readonly zone: string } | undefined;
  /** The field to count by value; undefined where there is none. */
  readonly value?: { readonly field: Field } | undefined;
  /** The numbers to tell of each group; undefined where there are none. */
  readonly numbers?: NumbersRequest | undefined;
  readonly format: CountFormat;
}

/** The parameters of a count besides its filters. */
export const countParameters = ['by', 'of', 'fn', 'top', 'zone', 'format', 'after', 'before'] as const;

/**
 * Parses the query string of a count request. It may have filters as a query has them, and the parameters `by` (`<field>:<step>` for a
 * field of type time, `<field>` for another), `of`, `fn`, `top`, `zone`, `format`, `after` and `before`. Throws a `ProblemError` with status 400 that
 * names the parameter at fault.
 */
export function parseCountRequest(rawQuery: string, context: FilterContext): CountRequest {
  const { given, predicates } = readParameters(rawQuery, countParameters, context, countLists);
  return countRequestOf(given, predicates, context);
}

/** The parameters that may be given more than once. */
export const countLists = ['by', 'of', 'fn'] as const;

/**
 * A count with the parameters that are no filters.
 *
 * @param cursors those of several agents, if these are asked
 */
export function countRequestOf(
  given: ReadonlyMap<string, readonly string[]>,
  predicates: CountQuery['predicates'],
  context: FilterContext,
  cursors?: SeveralCursors,
): CountRequest {
  const [top, zone, format, after, before] = countParameters.slice(3).map((name) => given.get(name)?.[0]);
  const zoneName = parseZone(zone) ?? context.timezone;
  const by = parseBy(given.get('by') ?? [], context.schema.fields, zoneName);
  const values =
    by.value === undefined
      ? undefined
      : { field: context.schema.fields.indexOf(by.value.field), top: parseTop(top) };
  if (top !== undefined && values === undefined)
    throw badParameter('top', '"top" limits the values of a field: name the field with "by"');
  if (zone !== undefined && by.time === undefined)
    throw badParameter(
      'zone',
      '"zone" is the time zone of time buckets: name their field and step with "by", such as by=time:1d',
    );
  const { fields } = context.schema;
  const numbers = parseNumbers(given.get('of') ?? [], given.get('fn') ?? [], fields);
  return {
    query: {
      after: parsePosition('after', after, cursors),
      before: parsePosition('before', before, cursors),
      predicates,
      time: by.buckets,
      values,
      numbers: numbers && { ...numbers, fields: numbers.fields.map((field) => fields.indexOf(field)) },
    },
    time: by.time,
    value: by.value,
    numbers,
    format: parseFormat(format),
  };
}

interface By extends Pick<CountRequest, 'time' | 'value'> {
  readonly buckets?: CountQuery['time'];
}

function parseBy(texts: readonly string[], fields: readonly Field[], zone: string): By {
  let found: By = {};
  for (const text of texts) {
    const colon = text.indexOf(':');
    const name = colon < 0 ? text : text.slice(0, colon);
    const field = fieldNamed('by', name, fields);
    if (colon < 0) {
      if (field.type === 'time')
        throw badParameter('by', `field "${name}" is a time and needs a step: write by=${name}:1h`);
      if (found.value !== undefined)
        throw badParameter(
          'by',
          `records can be counted by only one field besides the time, not by "${found.value.field.name}" and "${name}"`,
        );
      found = { ...found, value: { field } };
      continue;
    }
    if (field.type !== 'time')
      throw badParameter('by', `field "${name}" is of type ${field.type} and has no steps: write by=${name}`);
    if (found.time !== undefined)
      throw badParameter(
        'by',
        `records can be counted by only one time field, not by "${found.time.field.name}" and "${name}"`,
      );
    const step = text.slice(colon + 1);
    const parsed = parseTimeStep(step);
    if ('problem' in parsed) throw badParameter('by', parsed.problem);
    found = {
      ...found,
      time: { field, step, zone },
      buckets: { field: fields.indexOf(field), buckets: timeBuckets(parsed, zone) },
    };
  }
  return found;
}

function parseZone(text: string | undefined): string | undefined {
  const problem = text === undefined ? undefined : zoneProblem(text);
  if (problem !== undefined) throw badParameter('zone', problem);
  return text;
}

function parseTop(text: string | undefined): number {
  if (text === undefined) return topDefault;
  const top = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (!(top >= 1 && top <= countTopMax))
    throw badParameter(
      'top',
      `"top" must be a whole number from 1 to ${countTopMax}, not ${JSON.stringify(text)}`,
    );
  return top;
}

function parseFormat(text: string | undefined): CountFormat {
  const format = countFormats.find((known) => known === (text ?? 'json'));
  if (format !== undefined) return format;
  throw badParameter('format', `"format" must be ${countFormats.join(' or ')}, not ${JSON.stringify(text)}`);
}

/** Counts what a request asks for in the store that it was parsed for. */
export function countIn(
  store: ReadableStore | SeveralStore,
  { query, of }: CountRequest,
  signal: AbortSignal | undefined,
): Promise<Counts> {
  if ('stores' in store) return store.count(of!, query, { signal });
  return store.count(query, { signal });
}

/**
 * The error to answer with after a count has failed: a 400 that says what to ask for instead where the count exceeded a bound, else `error`
 * itself.
 */
export function countProblem(error: unknown): unknown {
  if (!(error instanceof CountBoundError)) return error;
  switch (error.bound) {
    case 'buckets':
      return badParameter(
        'by',
        `${error.message}: choose a larger step, such as ${stepFor(error.spanMs, countBucketsMax / 2)}, or a shorter time range`,
      );
    case 'cells':
      return badParameter('top', `${error.message}: ask for fewer values with "top", or for a larger step`);
    case 'values':
      return badParameter('by', error.message);
    case 'numbers':
      return badParameter(
        'of',
        `${error.message}: ask for fewer values with "top", a larger step, or one field`,
      );
  }
}

/**
 * A count as one line of JSON: `{"agent":…,"count":…,"of":{…},"approximate":[…],"time":{…},"values":{…}}`. What was not asked for is left
 * out. Integers are written with all digits.
 */
export function countJson(agent: string, { time, value, numbers }: CountRequest, counts: Counts): string {
  const members = [`"agent":${JSON.stringify(agent)}`, `"count":${counts.count}`];
  const of = (given: NumberAnswers | undefined): string =>
    numbers === undefined || given === undefined ? '' : `,"of":${numbersJson(numbers, given)}`;
  if (counts.numbers !== undefined) members.push(of(counts.numbers).slice(1));
  if (counts.approximate !== undefined) members.push(`"approximate":${JSON.stringify(counts.approximate)}`);
  if (time !== undefined && counts.time !== undefined) {
    const { field, step, zone } = time;
    const head = JSON.stringify({ field: field.name, step, zone, nulls: counts.time.nulls }).slice(0, -1);
    const buckets = counts.time.buckets.map(({ from, until, count, values, ...own }) => {
      const cells = values === undefined ? '' : `,"values":[${values.join(',')}]`;
      const ofCells = (own.numbersOfValues ?? []).map((cell) => numbersJson(numbers!, cell));
      const ofValues = own.numbersOfValues === undefined ? '' : `,"ofValues":[${ofCells.join(',')}]`;
      const head = `"from":${digits(from)},"until":${digits(until)},"count":${count}`;
      return `{${head}${of(own.numbers)}${cells}${ofValues}}`;
    });
    members.push(`"time":${head},"buckets":[${buckets.join(',')}]}`);
  }
  if (value !== undefined && counts.values !== undefined) {
    const { top, other, nulls, distinct } = counts.values;
    const head = JSON.stringify({ field: value.field.name }).slice(0, -1);
    const rows = top.map((one) => `{"value":${jsonValue(one.value)},"count":${one.count}${of(one.numbers)}}`);
    members.push(
      `"values":${head},"top":[${rows.join(',')}],"other":${other},"nulls":${nulls},"distinct":${distinct}}`,
    );
  }
  return `{${members.join(',')}}\n`;
}

/**
 * A count as CSV (RFC 4180) with a header. Counted by time, it has one line per bucket, with a column for each value that is counted as
 * well; counted by values alone, one line per value. Numbers have a column each behind the count that they belong to. Records without a time or value are a last line that begins with empty cells, if there
 * are any.
 */
export function countCsv({ time, value, numbers }: CountRequest, counts: Counts): string {
  const titles = numbers === undefined ? [] : numberTitles(numbers);
  const none = titles.map(() => '');
  if (time !== undefined && counts.time !== undefined) {
    const { buckets, nulls } = counts.time;
    const top = counts.values?.top ?? [];
    const ofValues = top.flatMap(({ value: one }) =>
      ['', ...titles.map((title) => `_${title}`)].map((end) => csvText(valueText(one) + end)),
    );
    const header = ['from', 'until', 'count', ...titles, ...ofValues];
    const rows = buckets.map(({ from, until, count, values = [], ...own }) => [
      digits(from),
      digits(until),
      String(count),
      ...numberCells(own.numbers ?? []),
      ...values.flatMap((cell, i) => [String(cell), ...numberCells(own.numbersOfValues?.[i] ?? [])]),
    ]);
    const without = nulls === 0 ? [] : [['', '', String(nulls), ...none, ...ofValues.map(() => '')]];
    return csvLines([header, ...rows, ...without]);
  }
  if (value !== undefined && counts.values !== undefined) {
    const { top, nulls } = counts.values;
    const rows = top.map((one) => [
      csvText(valueText(one.value)),
      String(one.count),
      ...numberCells(one.numbers ?? []),
    ]);
    const without = nulls === 0 ? [] : [['', String(nulls), ...none]];
    return csvLines([[value.field.name, 'count', ...titles], ...rows, ...without]);
  }
  return csvLines([
    ['count', ...titles],
    [String(counts.count), ...numberCells(counts.numbers ?? [])],
  ]);
}

/** A value as text, without quotes. */
export function valueText(value: CountedValue): string {
  return String(value);
}

function jsonValue(value: CountedValue): string {
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value);
}

/** A whole number with all digits: `String` would write a large one with an exponent. */
function digits(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
}

/** A CSV cell. The empty text is quoted, which distinguishes it from a missing value. */
function csvText(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvLines(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.join(',')}\r\n`).join('');
}
