import { byteFlags, EscapedTexts } from './escaped-texts.js';
import { KeyTable } from './key-table.js';
import { expectedAt, skipSpace } from './line-text.js';
import { ofLine } from '../lines/json-keys.js';
import { bytesText, Kind, type LineParser, ParsedLine } from './parsed-line.js';

const quote = 0x22;
const equals = 0x3d;

/** Why lines without a pair are rejected. */
export const noPairReason = 'is not logfmt: it has no key=value pair';

/** Bytes between pairs: blank, tab and line ends. */
const isBlank = byteFlags(' \t\r\n');
const endsKey = byteFlags(' \t\r\n="');
const endsQuotedRun = byteFlags('"\\');

/** The value of a key without `=`. */
const trueText = Buffer.from('true');

/**
 * Parses lines of logfmt: `key=value`, `key="quoted text"`, and `key` alone with the value `true`, separated by blanks. An
 * unquoted value extends to the next blank, and may be empty. In quotes, the escapes of Go and JSON are resolved; a
 * backslash before anything else stands for itself. Keys are matched exactly; of a key that occurs twice, the last value
 * counts. A line without `=` is rejected, since it is most likely a sentence. A line of blanks is blank.
 */
export class LogfmtLineParser implements LineParser {
  readonly #fields: number;
  readonly #table: Pick<KeyTable, 'find'>;
  readonly #texts = new EscapedTexts();

  /**
   * @param names wanted keys, in the order of the `ParsedLine`
   * @param table finds their numbers
   */
  constructor(names: readonly string[], table?: Pick<KeyTable, 'find'>) {
    this.#fields = names.length;
    this.#table = table ?? new KeyTable(names.map((name) => ({ name, parent: ofLine })));
  }

  isBlank(bytes: Uint8Array, start: number, end: number): boolean {
    return skipSpace(bytes, start, end) === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, _isText: boolean, line: ParsedLine): string | null {
    line.kinds.fill(Kind.absent, 0, this.#fields);
    line.hasReplaced = false;
    this.#texts.clear();
    const fail = (at: number, expected: string): string =>
      `is not logfmt: ${expectedAt(bytes, start, end, at, expected)}`;
    let hasPair = false;
    let at = skipSpace(bytes, start, end);
    while (at < end) {
      const keyStart = at;
      while (at < end && endsKey[bytes[at]!] === 0) at++;
      const behind = at < end ? bytes[at]! : 0;
      if (behind === quote) return fail(at, 'no quotation mark in a key');
      if (at === keyStart) return fail(at, 'a key before "="');
      const field = this.#table.find(bytes, keyStart, at, ofLine);
      if (behind !== equals) {
        if (field >= 0) line.set(field, Kind.text, trueText, 0, trueText.length);
      } else if (at + 1 < end && bytes[at + 1] === quote) {
        const textStart = at + 2;
        at = this.#quoted(bytes, textStart, end, field, line);
        if (at === end) return fail(end, 'a quotation mark that ends the value');
        at++;
        if (at < end && isBlank[bytes[at]!] === 0) return fail(at, 'a blank after the quotation mark');
      } else {
        const valueStart = ++at;
        while (at < end && isBlank[bytes[at]!] === 0) at++;
        if (field >= 0) line.set(field, Kind.text, bytes, valueStart, at);
      }
      if (behind === equals) hasPair = true;
      at = skipSpace(bytes, at, end);
    }
    return hasPair ? null : noPairReason;
  }

  /**
   * Reads a quoted text from `start` on, and sets it where `field` is one of the line's. Returns the position of the closing
   * quote, or `end` where there is none.
   */
  #quoted(bytes: Uint8Array, start: number, end: number, field: number, line: ParsedLine): number {
    let at = start;
    let hasEscape = false;
    for (;;) {
      while (at < end && endsQuotedRun[bytes[at]!] === 0) at++;
      if (at >= end) return end;
      if (bytes[at] === quote) break;
      hasEscape = true;
      at += 2;
    }
    if (field < 0) return at;
    if (hasEscape) this.#texts.keep(bytes, start, at, field, line);
    else line.set(field, Kind.text, bytes, start, at);
    return at;
  }
}

/** The distinct keys of a line that the parser accepts. */
export function logfmtKeys(bytes: Uint8Array): string[] {
  const keys = new Set<string>();
  const find = (source: Uint8Array, start: number, end: number): number => {
    keys.add(bytesText(source, start, end));
    return -1;
  };
  new LogfmtLineParser([], { find }).parse(bytes, 0, bytes.length, true, new ParsedLine(0));
  return [...keys];
}
