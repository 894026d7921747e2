import {
  isAgentName,
  parseCursor,
  type Position,
  type Predicate,
  predicatesMax,
  type Query,
  type Schema,
} from '../../engine/index.js';
import { parseAnswerForm } from './answer-form.js';
import { joinSets, parsePredicate } from './filter.js';
import { likelyFilter } from './filter-hint.js';
import { percentDecode } from './percent.js';
import { badParameter, ProblemError } from '../http/problem.js';
import { didYouMean, listNames } from './suggestion.js';
import type { TimeContext } from './time-value.js';

export interface QueryContext extends TimeContext {
  readonly schema: Schema;
  /** Largest `limit` that a request may ask for. */
  readonly limitMax: number;
  /** `limit` of a request that names none: 100 by the interface. */
  readonly limitDefault: number;
}

const parameters = ['limit', 'after', 'before', 'fields', 'format'] as const;
type Parameter = (typeof parameters)[number];

function isParameter(key: string): key is Parameter {
  return (parameters as readonly string[]).includes(key);
}

/**
 * Reads a raw query string (what follows the `?`, not decoded; may be empty) against an agent's schema.
 * Throws a `ProblemError` with status 400 that names the parameter at fault and what was expected.
 */
export function parseQueryRequest(rawQuery: string, context: QueryContext): Query {
  const given = new Map<Parameter, string>();
  const predicates: Predicate[] = [];
  for (const piece of rawQuery.split('&')) {
    if (piece === '') continue;
    const equals = piece.indexOf('=');
    const rawKey = equals < 0 ? piece : piece.slice(0, equals);
    const key = percentDecode(rawKey, true, 'the query string');
    const value = percentDecode(
      equals < 0 ? '' : piece.slice(equals + 1),
      true,
      `the value of "${key}"`,
      key,
    );
    if (key === '_') continue;
    if (isParameter(key)) {
      if (given.has(key)) throw badParameter(key, `"${key}" is given twice`);
      given.set(key, value);
      continue;
    }
    if (predicates.length === predicatesMax) {
      throw badParameter(key, `more than ${predicatesMax} filters in one request`);
    }
    if (!key.includes('__')) throw unknownParameter(key, equals < 0 ? null : value, context.schema);
    predicates.push(parsePredicate(key, value, context.schema, context));
  }
  const form = parseAnswerForm({ fields: given.get('fields'), format: given.get('format') }, context.schema);
  return {
    limit: parseLimit(given.get('limit'), context),
    after: parsePosition('after', given.get('after')),
    before: parsePosition('before', given.get('before')),
    predicates: joinSets(predicates),
    ...(form === undefined ? {} : { form }),
  };
}

/**
 * The agent that a raw path (not decoded, without the query string) addresses: `/api/{what}/{agent_name}`. Throws a `ProblemError`: 404 for
 * another path or a name that no agent can have, 400 for a bad percent-escape in the name.
 */
export function parseAgentPath(rawPath: string, what: string): string {
  const segments = rawPath.split('/');
  const [root, api, word, rawName] = segments;
  if (
    segments.length !== 4 ||
    root !== '' ||
    rawName === undefined ||
    !isSegment(api, 'api') ||
    !isSegment(word, what)
  ) {
    throw new ProblemError(404, `there is nothing at this path; the route is /api/${what}/{agent_name}`);
  }
  const name = percentDecode(rawName, false, 'the agent name');
  if (!isAgentName(name)) throw new ProblemError(404, `there is no agent ${JSON.stringify(name)}`);
  return name;
}

function isSegment(raw: string | undefined, expected: string): boolean {
  if (raw === undefined || raw === expected) return raw !== undefined;
  try {
    return percentDecode(raw, false, 'the path') === expected;
  } catch {
    // A segment that can't be decoded is not the one expected: that is a 404, as for any other path.
    return false;
  }
}

function parseLimit(text: string | undefined, context: QueryContext): number {
  if (text === undefined) return context.limitDefault;
  if (!/^\d+$/.test(text)) {
    throw badParameter(
      'limit',
      `"limit" must be a non-negative decimal integer, not ${JSON.stringify(text)}`,
    );
  }
  const limit = Number(text);
  if (limit > context.limitMax) {
    throw badParameter(
      'limit',
      `"limit" is ${text}, but at most ${context.limitMax} records are answered at once`,
    );
  }
  return limit;
}

function parsePosition(parameter: 'after' | 'before', text: string | undefined): Position | undefined {
  if (text === undefined) return undefined;
  const position = parseCursor(text);
  if (position === undefined) {
    throw badParameter(
      parameter,
      `"${parameter}" must be a cursor, which is exactly 16 lowercase hexadecimal digits, not ${JSON.stringify(text)}`,
    );
  }
  return position;
}

function unknownParameter(key: string, value: string | null, schema: Schema): ProblemError {
  const names = schema.fields.map((field) => field.name);
  const likely = likelyFilter(key, value, schema);
  if (likely !== undefined && !names.includes(key)) {
    const message = `unknown parameter ${JSON.stringify(key)}: write ${likely}, a filter is <field>__<operator>=<value>`;
    return badParameter(key, message);
  }
  if (names.includes(key)) {
    return badParameter(key, `a filter needs an operator: ${key}__<operator>=<value>, not ${key}=<value>`);
  }
  return badParameter(
    key,
    `unknown parameter ${JSON.stringify(key)}${didYouMean(key, [...parameters, ...names])}. ` +
      `A request takes ${parameters.join(', ')}, and filters <field>__<operator> on the fields ${listNames(names)}`,
  );
}
