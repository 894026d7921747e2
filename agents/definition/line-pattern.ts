import type { RE2JS } from 're2js';
import { compilePattern, readPatternProgram } from '../../engine/patterns/compile-pattern.js';
import type { PatternProgram } from '../../engine/patterns/pattern-program.js';
import { PatternAutomaton, patternStepsMax } from './pattern-automaton.js';

/** Number of bytes at the beginning of a line that `multiline.start` is matched against. */
export const startBytesMax = 4096;

/**
 * Limit on instructions for which a match of `startBytesMax` bytes never exceeds `patternStepsMax`, even where invalid UTF-8
 * triples the bytes. So it is always decided whether a line begins a record.
 */
export const startInstructionsMax = Math.floor(patternStepsMax / (3 * startBytesMax + 1));

/**
 * A pattern of lines in Go/RE2 syntax. Matches and captures are those of Go's `FindSubmatch`: anywhere in the line,
 * leftmost, first alternative first. Time is linear in the length of the line for every pattern; a line that would take more
 * than `patternStepsMax` steps is given up, which depends on the pattern and the line alone.
 *
 * re2js parses and compiles the pattern. An automaton over the bytes runs its program (`pattern-automaton.ts`).
 */
export class LinePattern {
  /** Names of the wanted groups, in the order of `captures`. */
  readonly groupNames: readonly string[];
  readonly #pattern: RE2JS;
  readonly #groups: readonly number[];
  readonly #program: PatternProgram;
  readonly #automaton: PatternAutomaton;
  #captures: Int32Array;
  /** Position in the last text behind which `match` read nothing. */
  reached = 0;

  /**
   * Compiles a pattern. Throws `invalid` for a pattern that is not RE2 syntax, or that compiles to more than
   * `instructionsMax` instructions. Only the positions of groups in `wanted` are recorded; other groups then cost nothing.
   * Names that the pattern lacks are left out of `groupNames`. With `all`, `captures` has all groups, with or without a name.
   */
  constructor(text: string, wanted?: ReadonlySet<string> | 'all', instructionsMax?: number) {
    this.#pattern = compilePattern(text, instructionsMax);
    const isAll = wanted === 'all';
    const named = Object.entries(this.#pattern.namedGroups());
    const found = isAll ? [] : named.filter(([name]) => wanted?.has(name) ?? true);
    this.groupNames = found.map(([name]) => name);
    const groups = isAll ? this.#pattern.groupCount() : 0;
    this.#groups = isAll ? Array.from({ length: groups }, (_, i) => i + 1) : found.map(([, group]) => group);
    this.#program = readPatternProgram(this.#pattern);
    this.#automaton = new PatternAutomaton(this.#program, this.#groups);
    this.#captures = this.#automaton.captures;
  }

  /**
   * Byte positions of the last match: start and end of each group of `groupNames`, both -1 for a group that did not take
   * part. Valid until the next call of `match`.
   */
  get captures(): Int32Array {
    return this.#captures;
  }

  /** Whether the automaton's states are kept from line to line; false for a pattern with too many states. */
  get keepsStates(): boolean {
    return !this.#automaton.exhausted;
  }

  /** Searches the pattern in bytes[start, end), which must be UTF-8, from `from` on. Undefined for a line that is given up. */
  match(bytes: Uint8Array, start: number, end: number, from = start): boolean | undefined {
    const automaton = this.#automatonFor(end - start);
    const matched = automaton.match(bytes, start, end, from);
    this.reached = automaton.reached;
    this.#captures = automaton.captures;
    return matched;
  }

  /**
   * The automaton of all lines, where the line is so short that following all instructions for each byte can't exceed the limit of steps. A
   * longer line gets one of its own that counts instructions, so that it is given up or not independently of earlier lines.
   */
  #automatonFor(lineBytes: number): PatternAutomaton {
    if ((lineBytes + 1) * this.#pattern.programSize() <= patternStepsMax) return this.#automaton;
    return new PatternAutomaton(this.#program, this.#groups, true);
  }
}
