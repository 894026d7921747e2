import type { LogRecord, Value } from './record.js';

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
