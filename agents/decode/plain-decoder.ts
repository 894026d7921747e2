import { isUtf8 } from 'node:buffer';
import { repairUtf8 } from '../../engine/index.js';
import { LinePattern } from '../patterns/line-pattern.js';
import { patternStepsMax } from '../patterns/pattern-automaton.js';
import { Kind, type LineParser, type ParsedLine } from './parsed-line.js';

/** Why lines of an agent with format `plain` are rejected. */
export const noMatchReason = 'does not match the pattern';
export const patternStepsReason = `takes more than ${patternStepsMax} steps to match against the pattern`;

/**
 * Parses lines by a pattern, whose named captures are the fields. A capture that did not take part is absent; an empty one
 * is the empty text. Invalid UTF-8 becomes U+FFFD before the pattern is matched. An empty line is blank.
 */
export class PlainLineParser implements LineParser {
  readonly #pattern: LinePattern;
  /** For each group of the pattern, its field. */
  readonly #fields: Int32Array;

  /** `names` are the wanted fields, in the order of the `ParsedLine`. Throws `invalid` for an invalid pattern. */
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
    return this.#parseText(bytes, start, end, line);
  }

  #parseText(bytes: Uint8Array, start: number, end: number, line: ParsedLine): string | null {
    const pattern = this.#pattern;
    const matched = pattern.match(bytes, start, end);
    if (matched !== true) return matched === false ? noMatchReason : patternStepsReason;
    const captures = pattern.captures;
    const fields = this.#fields;
    for (let group = 0; group < fields.length; group++) {
      const from = captures[2 * group]!;
      const kind = from < 0 ? Kind.absent : Kind.text;
      line.set(fields[group]!, kind, bytes, from, captures[2 * group + 1]!);
    }
    return null;
  }

  #parseRepaired(bytes: Uint8Array, start: number, end: number, line: ParsedLine): string | null {
    const repaired = repairUtf8(bytes, start, end);
    const problem = this.#parseText(repaired.bytes, 0, repaired.bytes.length, line);
    if (problem !== null) return problem;
    const { replacedAt } = repaired;
    for (const field of this.#fields) {
      const before = countBelow(replacedAt, line.starts[field]!);
      line.countReplaced(field, countBelow(replacedAt, line.ends[field]!) - before);
    }
    return null;
  }
}

/** Number of the ascending `positions` that are below `end`. */
function countBelow(positions: readonly number[], end: number): number {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle]! < end) low = middle + 1;
    else high = middle;
  }
  return low;
}
