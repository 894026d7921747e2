import { isUtf8 } from 'node:buffer';
import { repairUtf8 } from '../engine/utf8.js';
import { LinePattern } from './line-pattern.js';
import { Kind, type LineParser, type ParsedLine } from './parsed-line.js';

/** Why a line of an agent of format `plain` is rejected. */
export const noMatchReason = 'does not match the pattern';

/**
 * Parses lines by a pattern: the fields are its named captures. A capture that took no part is absent, an empty one is the
 * empty text. Bytes that are not UTF-8 become U+FFFD before the pattern sees them. An empty line is blank.
 */
export class PlainLineParser implements LineParser {
  readonly #pattern: LinePattern;
  /** For each group of the pattern its field. */
  readonly #fields: Int32Array;

  /** `names` are the fields wanted, in the order of the `ParsedLine`. Throws `invalid` for a bad pattern. */
  constructor(regex: string, names: readonly string[]) {
    this.#pattern = new LinePattern(regex, new Set(names));
    this.#fields = Int32Array.from(this.#pattern.groupNames, (name) => names.indexOf(name));
  }

  isBlank(_bytes: Uint8Array, start: number, end: number): boolean {
    return start === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, isText: boolean, line: ParsedLine): string | null {
    line.hasReplaced = false;
    if (!isText && !isUtf8(bytes.subarray(start, end))) return this.#parseRepaired(bytes, start, end, line);
    return this.#parseText(bytes, start, end, line) ? null : noMatchReason;
  }

  #parseText(bytes: Uint8Array, start: number, end: number, line: ParsedLine): boolean {
    const pattern = this.#pattern;
    if (!pattern.match(bytes, start, end)) return false;
    const captures = pattern.captures;
    const fields = this.#fields;
    for (let group = 0; group < fields.length; group++) {
      const from = captures[2 * group]!;
      const kind = from < 0 ? Kind.absent : Kind.text;
      line.set(fields[group]!, kind, bytes, from, captures[2 * group + 1]!);
    }
    return true;
  }

  #parseRepaired(bytes: Uint8Array, start: number, end: number, line: ParsedLine): string | null {
    const repaired = repairUtf8(bytes, start, end);
    if (!this.#parseText(repaired.bytes, 0, repaired.bytes.length, line)) return noMatchReason;
    for (const field of this.#fields) {
      const from = line.starts[field]!;
      const to = line.ends[field]!;
      const count = repaired.replacedAt.filter((at) => at >= from && at < to).length;
      line.countReplaced(field, count);
    }
    return null;
  }
}
