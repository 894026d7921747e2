import { RE2JS, RE2JSException } from 're2js';
import { LogstrataError } from '../../engine/index.js';
import { PatternAutomaton, patternStepsMax } from './pattern-automaton.js';
import { readPatternProgram, type PatternProgram } from './pattern-program.js';

/** Instructions of a compiled pattern: those of real logs have some hundreds; a line may take as many steps for each of its bytes. */
const instructionsMaxDefault = 64 * 1024;

/** Bytes of a line that `multiline.start` looks at. */
export const startBytesMax = 4096;

/** A pattern of so many instructions never gives up so few bytes, three times as many where they are not UTF-8: each line begins a record or not. */
export const startInstructionsMax = Math.floor(patternStepsMax / (3 * startBytesMax + 1));

/**
 * A pattern of lines in Go/RE2 syntax, with the matches and captures of Go's `FindSubmatch`: found anywhere in the line,
 * leftmost, first alternative first. Time is linear in the line, whatever the pattern, and a line that would take more than
 * `patternStepsMax` steps is given up. Which lines those are depends on the pattern and the line alone.
 *
 * re2js parses and compiles the pattern. Its program is run by an automaton over the bytes (`pattern-automaton.ts`).
 */
export class LinePattern {
  /** Names of the wanted groups, in the order of `captures`. */
  readonly groupNames: readonly string[];
  readonly #pattern: RE2JS;
  readonly #groups: readonly number[];
  readonly #program: PatternProgram | null;
  readonly #automaton: PatternAutomaton | null;
  #captures: Int32Array;

  /**
   * Throws `invalid` when the pattern is not RE2 syntax, or compiles to more than `instructionsMax`. `wanted` limits the groups whose
   * positions are recorded, which makes the others cost nothing; names that the pattern lacks are left out of `groupNames`.
   */
  constructor(text: string, wanted?: ReadonlySet<string>, instructionsMax?: number) {
    this.#pattern = compilePattern(text, instructionsMax);
    const named = Object.entries(this.#pattern.namedGroups()).filter(([name]) => wanted?.has(name) ?? true);
    this.groupNames = named.map(([name]) => name);
    this.#groups = named.map(([, group]) => group);
    this.#program = readPatternProgram(this.#pattern);
    this.#automaton = this.#program === null ? null : new PatternAutomaton(this.#program, this.#groups);
    this.#captures = new Int32Array(this.#groups.length * 2);
  }

  /**
   * Byte positions in what was matched last: start and end of each group of `groupNames`, both -1 for a group that took
   * no part. Valid until the next call of `match`.
   */
  get captures(): Int32Array {
    return this.#captures;
  }

  /** Whether the states of the pattern are kept from line to line; false for one that has too many. */
  get keepsStates(): boolean {
    return this.#automaton?.exhausted === false;
  }

  /** Finds the pattern in bytes[start, end), which must be UTF-8. Undefined where the line is given up. */
  match(bytes: Uint8Array, start: number, end: number): boolean | undefined {
    const automaton = this.#automatonFor(end - start);
    if (automaton === null) return this.#matchSlowly(bytes, start, end);
    const matched = automaton.match(bytes, start, end);
    this.#captures = automaton.captures;
    return matched;
  }

  /** A line for which following instructions may take too long has an automaton of its own, so that the lines before don't matter. */
  #automatonFor(lineBytes: number): PatternAutomaton | null {
    if (this.#program === null || this.#isShort(lineBytes)) return this.#automaton;
    return new PatternAutomaton(this.#program, this.#groups, true);
  }

  /** Whether following all instructions over each character can't take too many steps. */
  #isShort(lineBytes: number): boolean {
    return (lineBytes + 1) * this.#pattern.programSize() <= patternStepsMax;
  }

  /** Has re2js itself run a program whose form is not known. */
  #matchSlowly(bytes: Uint8Array, start: number, end: number): boolean | undefined {
    if (!this.#isShort(end - start)) return undefined;
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

/** Compiles a pattern in Go/RE2 syntax. Throws `invalid` when it is none, or too large. */
export function compilePattern(text: string, instructionsMax = instructionsMaxDefault): RE2JS {
  let pattern: RE2JS;
  try {
    pattern = RE2JS.compile(text);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const problem = error.message.replace(/^error parsing regexp: /, '');
    throw new LogstrataError('invalid', `not a regular expression in Go's (RE2) syntax: ${problem}`, {
      cause: error,
    });
  }
  const size = pattern.programSize();
  if (size <= instructionsMax) return pattern;
  throw new LogstrataError(
    'invalid',
    `too large: with its repetitions written out it has ${size} instructions, more than ${instructionsMax}`,
  );
}
