import { RE2JS } from 're2js';
import { LogstrataError } from '../engine/errors.js';
import { PatternAutomaton } from './pattern-automaton.js';
import { readPatternProgram } from './pattern-program.js';

/**
 * A pattern of lines in Go/RE2 syntax, with the matches and captures of Go's `FindSubmatch`: found anywhere in the line,
 * leftmost, first alternative first. Time is linear in the line, whatever the pattern.
 *
 * re2js parses and compiles the pattern. Its program is run by an automaton over the bytes (`pattern-automaton.ts`), and
 * by re2js itself where the automaton would need too many states.
 */
export class LinePattern {
  /** Names of the wanted groups, in the order of `captures`. */
  readonly groupNames: readonly string[];
  readonly #pattern: RE2JS;
  readonly #groups: readonly number[];
  readonly #automaton: PatternAutomaton | null;
  #captures: Int32Array;

  /**
   * Throws `invalid` when the pattern is not RE2 syntax. `wanted` limits the groups whose positions are recorded, which
   * makes the others cost nothing; names that the pattern lacks are left out of `groupNames`.
   */
  constructor(text: string, wanted?: ReadonlySet<string>) {
    this.#pattern = compilePattern(text);
    const named = Object.entries(this.#pattern.namedGroups()).filter(([name]) => wanted?.has(name) ?? true);
    this.groupNames = named.map(([name]) => name);
    this.#groups = named.map(([, group]) => group);
    const program = readPatternProgram(this.#pattern);
    this.#automaton = program === null ? null : new PatternAutomaton(program, this.#groups);
    this.#captures = new Int32Array(this.#groups.length * 2);
  }

  /**
   * Byte positions in what was matched last: start and end of each group of `groupNames`, both -1 for a group that took
   * no part. Valid until the next call of `match`.
   */
  get captures(): Int32Array {
    return this.#captures;
  }

  /** What runs the pattern at present. */
  get runner(): 'automaton' | 're2js' {
    return this.#automaton === null || this.#automaton.exhausted ? 're2js' : 'automaton';
  }

  /** Finds the pattern in bytes[start, end), which must be UTF-8. */
  match(bytes: Uint8Array, start: number, end: number): boolean {
    const automaton = this.#automaton;
    if (automaton !== null) {
      const matched = automaton.match(bytes, start, end);
      if (matched !== undefined) {
        this.#captures = automaton.captures;
        return matched;
      }
    }
    return this.#matchSlowly(bytes, start, end);
  }

  #matchSlowly(bytes: Uint8Array, start: number, end: number): boolean {
    const matcher = this.#pattern.matcher(bytes.subarray(start, end));
    if (!matcher.find()) return false;
    const captures = new Int32Array(this.#groups.length * 2);
    this.#groups.forEach((group, i) => {
      const from = matcher.start(group);
      captures[2 * i] = from < 0 ? -1 : start + from;
      captures[2 * i + 1] = from < 0 ? -1 : start + matcher.end(group);
    });
    this.#captures = captures;
    return true;
  }
}

/** Compiles a pattern in Go/RE2 syntax. Throws `invalid` when it is none. */
export function compilePattern(text: string): RE2JS {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new LogstrataError('invalid', `bad pattern: ${problem}`, { cause: error });
  }
}
