import { isAgentName, type Query } from '../../engine/index.js';
import { parsePosition, readParameters, type FilterContext } from './parameters.js';
import { parseAnswerForm } from './answer-form.js';
import { percentDecode } from './percent.js';
import { badParameter, ProblemError } from '../http/problem.js';

/** What a query is parsed against: the agent's fields, the time, and the limits of the server. */
export interface QueryContext extends FilterContext {
  /** Largest `limit` that a request may ask for. */
  readonly limitMax: number;
  /** `limit` of a request that gives none. */
  readonly limitDefault: number;
}

const parameters = ['limit', 'after', 'before', 'fields', 'format'] as const;

/**
 * Parses a raw query string (what follows the `?`, not decoded; may be empty) against an agent's schema.
 * Throws a `ProblemError` (400) that names the parameter at fault and what was expected.
 */
export function parseQueryRequest(rawQuery: string, context: QueryContext): Query {
  const { given, predicates } = readParameters(rawQuery, parameters, context);
  const [limit, after, before, fields, format] = parameters.map((name) => given.get(name)?.[0]);
  const form = parseAnswerForm({ fields, format }, context.schema);
  return {
    limit: parseLimit(limit, context),
    after: parsePosition('after', after),
    before: parsePosition('before', before),
    predicates,
    ...(form === undefined ? {} : { form }),
  };
}

/**
 * The agent's name in a raw path (not decoded, without the query string) of the form `/api/{what}/{agent_name}`. Throws a `ProblemError`:
 * 404 for another path or a name that no agent can have, 400 for a bad percent-escape in the name.
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
    throw new ProblemError(404, `nothing is at this path; the route is /api/${what}/{agent_name}`);
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
    // A segment that can't be decoded is not the expected one, so the answer is 404 as for any other path.
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
    throw badParameter('limit', `"limit" is ${text}, more than the maximum of ${context.limitMax} records`);
  }
  return limit;
}
