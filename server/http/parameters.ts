import { ProblemError, badParameter } from './problem.js';
import {
  type Predicate,
  predicatesMax,
  CursorProblem,
  parseCursor,
  shownCharactersMax,
  type SeveralCursors,
  type Position,
  type Schema,
} from '../../engine/index.js';
import { FilterError, joinSets, parsePredicate, type Filter } from '../../agents/definition/filter.js';
import { groupNames, likelyFilter, operatorsOf } from '../../agents/definition/filter-operators.js';
import { didYouMean, listNames } from '../../agents/definition/suggestion.js';
import type { TimeContext } from '../../agents/definition/time-value.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

const percent = 0x25;
const plus = 0x2b;
const blank = 0x20;

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/**
 * Percent-decodes one piece of a request target. Both escaped and raw bytes are UTF-8. With `plusIsBlank`, which query strings need because
 * form encoders write blanks as `+`, an unescaped `+` is a blank.
 *
 * Throws a `ProblemError` (400) that names `what` for a bad escape or for bytes that are not UTF-8. Transports replace raw bytes that are
 * not UTF-8 by U+FFFD, so an unescaped U+FFFD is refused as well; an escaped one is an ordinary character.
 */
export function percentDecode(text: string, plusIsBlank: boolean, what: string, parameter?: string): string {
  if (isPlain(text)) return text;
  if (text.includes('\uFFFD')) throw new ProblemError(400, `${what} is not valid UTF-8`, { parameter });
  const bytes = encoder.encode(text);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === percent) {
      const high = i + 2 < bytes.length ? hexDigit(bytes[i + 1]!) : -1;
      const low = i + 2 < bytes.length ? hexDigit(bytes[i + 2]!) : -1;
      if (high < 0 || low < 0) throw badEscape(bytes, i, what, parameter);
      bytes[length++] = high * 16 + low;
      i += 2;
    } else {
      bytes[length++] = plusIsBlank && byte === plus ? blank : byte;
    }
  }
  try {
    return utf8.decode(bytes.subarray(0, length));
  } catch (cause) {
    throw new ProblemError(400, `${what} is not valid UTF-8 once its percent-escapes are decoded`, {
      parameter,
      cause,
    });
  }
}

/** Whether a text needs no decoding, as nearly every key and value. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === percent || code === plus || code > 0x7e) return false;
  }
  return true;
}

function badEscape(bytes: Uint8Array, at: number, what: string, parameter: string | undefined): ProblemError {
  const shown = new TextDecoder().decode(bytes.subarray(at, at + 3));
  return new ProblemError(
    400,
    `${what} has a bad percent-escape ${JSON.stringify(shown)}: expected "%" and two hexadecimal digits ("%25" is a percent sign)`,
    { parameter },
  );
}

/** What filters are parsed against. */
export interface FilterContext extends TimeContext {
  readonly schema: Schema;
}

/** A parsed query string. */
export interface ReadParameters<Name extends string> {
  /** The decoded values of each parameter that is not a filter, in the order in which they were given. */
  readonly given: ReadonlyMap<Name, readonly string[]>;
  readonly predicates: readonly Predicate[];
}

/**
 * Parses a raw query string (what follows the `?`, not decoded; may be empty) against an agent's schema. Besides filters it may have the
 * parameters in `names`: each at most once, or any number of times if it is in `repeated` too. The parameter `_` is ignored. Throws a
 * `ProblemError` (400) that names the parameter at fault and what was expected.
 */
export function readParameters<Name extends string>(
  rawQuery: string,
  names: readonly Name[],
  context: FilterContext,
  repeated: readonly Name[] = [],
): ReadParameters<Name> {
  const given = new Map<Name, string[]>();
  const filters: Filter[] = [];
  const groups = new Map<string, Filter[]>();
  let count = 0;
  for (const piece of rawQuery.split('&')) {
    if (piece === '') continue;
    const equals = piece.indexOf('=');
    const key = percentDecode(equals < 0 ? piece : piece.slice(0, equals), true, 'the query string');
    const rawValue = equals < 0 ? '' : piece.slice(equals + 1);
    const value = percentDecode(rawValue, true, `the value of "${key}"`, key);
    if (key === '_') continue;
    const name = names.find((each) => each === key);
    if (name !== undefined) {
      const before = given.get(name);
      if (before === undefined) given.set(name, [value]);
      else if (repeated.includes(name)) before.push(value);
      else throw badParameter(key, `"${key}" is given twice`);
      continue;
    }
    if (++count > predicatesMax) throw badParameter(key, `more than ${predicatesMax} filters in one request`);
    if (groupNames.includes(key)) {
      const member = parseMember(key, value, context);
      groups.set(key, [...(groups.get(key) ?? []), member]);
    } else if (key.includes('__')) filters.push(parseFilter(key, value, context));
    else throw unknownParameter(key, equals < 0 ? null : value, names, context.schema);
  }
  return { given, predicates: [...joinSets(filters), ...Array.from(groups.values(), groupOf)] };
}

/** A group of one filter is that filter. (A set is not, because it would be one with other sets on its field.) */
function groupOf(filters: readonly Filter[]): Predicate {
  const members = joinSets(filters);
  return members.length === 1 && members[0]!.kind !== 'set' ? members[0]! : { kind: 'any', members };
}

/** Parses a filter that is the value of a group. */
function parseMember(group: string, text: string, context: FilterContext): Filter {
  const equals = text.indexOf('=');
  const key = text.slice(0, Math.max(0, equals));
  if (!key.includes('__')) {
    const likely =
      equals < 0
        ? likelyFilter(text, null, context.schema)
        : likelyFilter(key, text.slice(equals + 1), context.schema);
    const meant = likely ?? 'status__gte=500';
    throw badParameter(
      group,
      `the value of "${group}" must be a filter, such as ${group}=${meant}, not ${JSON.stringify(text)}`,
    );
  }
  try {
    return parseFilter(key, text.slice(equals + 1), context);
  } catch (error) {
    if (error instanceof ProblemError) throw badParameter(group, `in "${group}": ${error.detail}`);
    throw error;
  }
}

function parseFilter(key: string, value: string, context: FilterContext): Filter {
  try {
    return parsePredicate(key, value, context.schema, context);
  } catch (error) {
    throw error instanceof FilterError ? badParameter(error.parameter, error.message) : error;
  }
}

/**
 * The position that a cursor stands for; undefined without a text. Throws a `ProblemError` (400) for a text that is no cursor.
 *
 * @param cursors those of several agents, if these are asked
 */
export function parsePosition(
  parameter: string,
  text: string | undefined,
  cursors?: SeveralCursors,
): Position | undefined {
  if (text === undefined) return undefined;
  if (cursors !== undefined) return parseJoint(parameter, text, cursors);
  const position = parseCursor(text);
  if (position === undefined) {
    throw badParameter(
      parameter,
      `"${parameter}" must be a cursor, which is exactly 16 lowercase hexadecimal digits, not ${JSON.stringify(text)}`,
    );
  }
  return position;
}

function parseJoint(parameter: string, text: string, cursors: SeveralCursors): Position {
  const position = cursors.parse(text);
  if (!(position instanceof CursorProblem)) return position;
  const shown = JSON.stringify(text.slice(0, shownCharactersMax));
  throw badParameter(
    parameter,
    `"${parameter}" must be a cursor of these agents in this order, but ${shown} ${position.message}`,
  );
}

function unknownParameter(
  key: string,
  value: string | null,
  parameters: readonly string[],
  schema: Schema,
): ProblemError {
  const names = schema.fields.map((field) => field.name);
  if (/^any\d+$/.test(key))
    return badParameter(
      key,
      `unknown parameter ${JSON.stringify(key)}: the groups of filters are any and any2 to any9`,
    );
  if (value !== null && /^[\w*]+=/.test(value) && value.includes('__'))
    return badParameter(
      key,
      `unknown parameter ${JSON.stringify(key)}: where one of several filters has to hold, write each as any=${value.slice(0, 100)}`,
    );
  const likely = likelyFilter(key, value, schema);
  if (likely !== undefined && !names.includes(key)) {
    const message = `unknown parameter ${JSON.stringify(key)}: write ${likely}, a filter is <field>__<operator>=<value>`;
    return badParameter(key, message);
  }
  if (names.includes(key)) {
    const { type } = schema.fields[names.indexOf(key)]!;
    const meant = likely ?? `${key}__<operator>=<value>`;
    const operators = operatorsOf(type).join(', ');
    return badParameter(key, `a filter needs an operator: write ${meant}. Those of ${key} are ${operators}`);
  }
  return badParameter(
    key,
    `unknown parameter ${JSON.stringify(key)}${didYouMean(key, [...parameters, 'any', ...names])}. ` +
      `A request takes ${parameters.join(', ')}, any=<filter>, and filters <field>__<operator> on the fields ${listNames(names)}`,
  );
}
