/** A cursor as a number. Its high 24 bits are the hours since the epoch, its low 40 bits the position within that hour. */
function positionOf(cursor: string): bigint {
  return BigInt(`0x${cursor}`);
}

const positionMax = 0xffff_ffff_ffff_ffffn;
const ordinalBits = 40n;
const hourMs = 3_600_000;

function cursorOf(position: bigint): string {
  const inside = position < 0n ? 0n : position > positionMax ? positionMax : position;
  return inside.toString(16).padStart(16, '0');
}

/** The cursor before all records. */
export const firstCursor = '0000000000000000';

/**
 * Whether a text has the form of a cursor: that of one agent (16 digits); that of several, which names the agents, which of them the record
 * is of, and a position of each (`1f0c22ab.2.079bd70000000019.079bd70000000007`); or, as only the page uses it, the last two of these for
 * one record of several agents whose neighbours of other agents are not known (`2.079bd70000000007`).
 */
export function isCursor(text: string): boolean {
  return /^(?:(?:[0-9a-f]{8}\.)?\d{1,2}\.)?[0-9a-f]{16}(?:\.[0-9a-f]{16}){0,15}$/.test(text);
}

/** Whether a cursor is of a record of several agents, and is one for the page alone. */
export function isOfNoPage(cursor: string): boolean {
  return /^\d{1,2}\./.test(cursor);
}

/** The number of the agent that a cursor's record is of, from 0 on; undefined in cursors of one agent. */
export function agentIndexOf(cursor: string): number | undefined {
  const parts = cursor.split('.');
  return parts.length === 1 ? undefined : Number(parts[parts.length === 2 ? 0 : 1]) - 1;
}

/** Where the record's own position is in a cursor. */
function ownPlace(parts: readonly string[]): number {
  return parts.length < 3 ? parts.length - 1 : Number(parts[1]) + 1;
}

/** The cursor of a record in the answers of its own agent. */
export function ownCursor(cursor: string): string {
  const parts = cursor.split('.');
  return parts[ownPlace(parts)] ?? '';
}

/** A cursor that is `by` behind another one, or before it. */
function moved(cursor: string, by: bigint): string {
  const parts = cursor.split('.');
  const place = ownPlace(parts);
  return parts.with(place, cursorOf(positionOf(parts[place]!) + by)).join('.');
}

/** The next cursor. `before` this cursor means up to and including the given one. */
export function cursorBehind(cursor: string): string {
  return moved(cursor, 1n);
}

/** The previous cursor. `after` this cursor means from the given one on. */
export function cursorBefore(cursor: string): string {
  return moved(cursor, -1n);
}

/** Whether a record is behind another place, as the server tells it: its position is behind the place's position of its agent. */
export function isBehind(cursor: string, place: string): boolean {
  const parts = cursor.split('.');
  const own = ownPlace(parts);
  return parts[own]! > (place.split('.')[own] ?? place);
}

/**
 * Whether two cursors are of one record. In those of several agents, positions of other agents may change from page to page; among the
 * neighbours of a record, cursors are those of its own agent.
 */
export function isSameRecord(one: string, other: string): boolean {
  if (one === other) return true;
  const [agent, otherAgent] = [agentIndexOf(one), agentIndexOf(other)];
  const isOfOne = agent === undefined || otherAgent === undefined || agent === otherAgent;
  return isOfOne && ownCursor(one) === ownCursor(other);
}

/** The start of a cursor's hour in milliseconds since the epoch. Records without a readable time are placed by the hour. */
export function hourOfCursor(cursor: string): number {
  return Number(positionOf(ownCursor(cursor)) >> ordinalBits) * hourMs;
}

/** The first cursor of the hour that contains a time, of the same agents as `like`. */
export function cursorOfHour(timeMs: number, like: string): string {
  const hour = BigInt(Math.max(0, Math.floor(timeMs / hourMs)));
  const cursor = cursorOf(hour << ordinalBits);
  return like
    .split('.')
    .map((part) => (part.length === cursor.length ? cursor : part))
    .join('.');
}

/** Integers of up to this many digits are exact in a double. */
const exactDigits = 15;

/** A string of JSON. One without an end goes up to the end of the text, so that each text is searched through once. */
const jsonString = /"[^"\\]*(?:\\.[^"\\]*)*"?/s.source;
const stringsAndNumbers = new RegExp(`${jsonString}|-?\\d[\\d.eE+-]*`, 'gs');

/** Puts integers of many digits in quotes, so that JSON.parse does not round them. Takes linear time. */
export function withLongIntegersQuoted(json: string): string {
  return json.replaceAll(stringsAndNumbers, (token) =>
    token.length > exactDigits && /^-?\d+$/.test(token) ? `"${token}"` : token,
  );
}

/** Maximum nesting: deeper, the indentation would be far larger than the content. */
const depthMax = 64;
/** Longer texts are shown unformatted. */
const charsMax = 2_000_000;

/** Whether a text is a JSON object or array that is worth formatting. */
export function isJsonTree(text: string): boolean {
  const first = text.trimStart()[0];
  if ((first !== '{' && first !== '[') || text.length > charsMax) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const stringsAndMarks = new RegExp(`${jsonString}|[{[]\\s*[}\\]]|[{[\\]},:]|\\s+`, 'gs');

/**
 * Formats JSON with two blanks per level. Works on the text, so numbers keep all digits. Expects valid JSON; returns a text that is nested
 * more than 64 levels deep or longer than two million characters unchanged.
 */
export function prettyJson(text: string): string {
  if (text.length > charsMax) return text;
  let depth = 0;
  let isDeep = false;
  const line = (by: number): string => `\n${'  '.repeat((depth += by))}`;
  const shown = text.replaceAll(stringsAndMarks, (token) => {
    const mark = token[0]!;
    isDeep ||= depth > depthMax;
    if (isDeep || mark === '"') return token;
    if (mark === ':') return ': ';
    if (mark === ',') return `,${line(0)}`;
    if (mark === '}' || mark === ']') return `${line(-1)}${mark}`;
    if (mark !== '{' && mark !== '[') return '';
    return token.length > 1 ? `${mark}${token.at(-1)}` : `${mark}${line(1)}`;
  });
  return isDeep ? text : shown;
}

/** A value of a record. An integer that a double can't represent exactly is a bigint. */
export type Value = string | number | bigint | boolean | null;

/** A record of a response. */
export interface LogRecord {
  readonly cursor: string;
  /** The JSON object as sent by the server. */
  readonly line: string;
  /** The values by field, in the order of the response. */
  readonly values: ReadonlyMap<string, Value>;
}

/** Control sequences of terminals (ECMA-48, 5.4), which set colours. In a page they would appear as boxes. */
const terminalCodes = /\u001b\[[0-?]*[ -/]*[@-~]/g;

/** Characters that change the direction of the text after them. With them a log line could show its characters in another order. */
const directionCodes = /[\u202a-\u202e\u2066-\u2069]/g;

/** A text as shown in the page: without control sequences of terminals, and with codes like `\u202e` in place of direction controls. */
export function shownText(text: string): string {
  const plain = text.includes('\u001b') ? text.replace(terminalCodes, '') : text;
  return plain.replace(directionCodes, (code) => `\\u${code.charCodeAt(0).toString(16)}`);
}

/** A value as text; empty for null. */
export function valueText(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}

/** Maximum length of an integer that is parsed exactly. The server's have at most 20 characters, with their sign. */
const exactDigitsMax = 64;

const quote = 0x22;
const backslash = 0x5c;

/** Parses a line; `at` is the index of the next character. */
class LineReader {
  at = 0;

  constructor(readonly line: string) {}

  /** Throws a SyntaxError that says what was expected at which character. */
  fail(expected: string): never {
    throw new SyntaxError(`the server's answer has no ${expected} at character ${this.at + 1} of a record`);
  }

  skipBlanks(): void {
    while (this.at < this.line.length && this.line.charCodeAt(this.at) <= 0x20) this.at += 1;
  }

  /** Consumes a character if it is the next one. */
  takes(character: string): boolean {
    this.skipBlanks();
    if (this.line[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  readString(): string {
    this.skipBlanks();
    if (this.line.charCodeAt(this.at) !== quote) this.fail('string');
    const begin = this.at;
    let isEscaped = false;
    for (this.at += 1; this.at < this.line.length; this.at += 1) {
      const code = this.line.charCodeAt(this.at);
      if (code === quote) {
        this.at += 1;
        return isEscaped
          ? (JSON.parse(this.line.slice(begin, this.at)) as string)
          : this.line.slice(begin + 1, this.at - 1);
      }
      if (code !== backslash) continue;
      isEscaped = true;
      this.at += 1;
    }
    return this.fail('end of a string');
  }

  readValue(): Value {
    this.skipBlanks();
    if (this.line.charCodeAt(this.at) === quote) return this.readString();
    const begin = this.at;
    while (this.at < this.line.length && !',} \n'.includes(this.line[this.at]!)) this.at += 1;
    return plainValue(this.line.slice(begin, this.at)) ?? this.failAt(begin);
  }

  private failAt(begin: number): null {
    if (this.line.slice(begin, this.at) === 'null') return null;
    this.at = begin;
    return this.fail('value that is no list and no object');
  }
}

/** The value of a number, true or false; undefined for another text. */
function plainValue(text: string): number | bigint | boolean | undefined {
  if (text === 'true') return true;
  if (text === 'false') return false;
  const value = text === '' ? NaN : Number(text);
  if (Number.isNaN(value)) return undefined;
  if (Number.isSafeInteger(value) || text.length > exactDigitsMax || !isWhole(text)) return value;
  return BigInt(text);
}

function isWhole(text: string): boolean {
  for (let i = text.startsWith('-') ? 1 : 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}

/**
 * Parses a line of a response. JSON.parse would round integers beyond 2^53; here they become a bigint. Takes linear time. Throws a
 * SyntaxError for anything but a flat object with a cursor.
 */
export function readRecordLine(line: string): LogRecord {
  const reader = new LineReader(line);
  const values = new Map<string, Value>();
  if (!reader.takes('{')) reader.fail('"{"');
  let cursor: Value = null;
  if (!reader.takes('}')) {
    do {
      const name = reader.readString();
      if (!reader.takes(':')) reader.fail('":"');
      const value = reader.readValue();
      if (name === '_cursor') cursor = value;
      else values.set(name, value);
    } while (reader.takes(','));
    if (!reader.takes('}')) reader.fail('"}"');
  }
  return typeof cursor === 'string' ? { cursor, line, values } : reader.fail('"_cursor"');
}
