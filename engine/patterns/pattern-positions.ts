import { LogstrataError } from '../core/errors.js';
import { isRuneOp, Op, type PatternProgram } from './pattern-program.js';

/** Maximum positions: more than a pattern of a thousand characters has that repeats nothing a fixed number of times. */
export const positionsMax = 1024;

/** Maximum size of a wiring's branches. Only patterns of dozens of groups that may each be left out need more. */
const branchesBytesMax = 2048;

/** Fewer positions that can be left out cost less as branches. */
const skippedMin = 8;

/** Sets of positions are read by sixteen bytes. */
const wordsPerUnit = 4;

/** What is reached from an instruction without a character: positions, and whether the end of the pattern is. */
interface Reached {
  readonly positions: readonly number[];
  readonly isMatch: boolean;
}

/**
 * The positions of a pattern: its instructions that take a character, in their order (Glushkov's automaton). The positions whose characters
 * have just been read are all that a search has to know, and one step over a character combines a few words of them, whatever the text.
 */
export class PatternPositions {
  /** Words of a set, which has one bit for each position. */
  readonly words: number;
  /** For each class of characters, the set of positions that take it. */
  readonly accepts: Uint32Array;
  /** All conditions that the pattern asks for. */
  readonly #asked: number;
  readonly #program: PatternProgram;
  readonly #instructions: readonly number[];
  readonly #positionAt: Int32Array;
  readonly #wirings = new Map<number, Uint32Array>();

  /** Throws `invalid` for a pattern that is too large. */
  constructor(program: PatternProgram) {
    const { op, arg, classes, matcher } = program;
    this.#program = program;
    this.#instructions = [...op.keys()].filter((pc) => isRuneOp(op[pc]!));
    requirePositions(this.#instructions.length);
    this.#positionAt = new Int32Array(op.length);
    this.words = wordsPerUnit * Math.max(1, Math.ceil(this.#instructions.length / 32 / wordsPerUnit));
    this.accepts = new Uint32Array(classes.count * this.words);
    this.#instructions.forEach((pc, position) => {
      this.#positionAt[pc] = position;
      for (let c = 0; c < classes.count; c++)
        if (classes.matches[matcher[pc]! * classes.count + c] === 1)
          setBit(this.accepts, c * this.words, position);
    });
    this.#asked = op.reduce((all, each, pc) => (each === Op.emptyWidth ? all | arg[pc]! : all), 0);
  }

  /**
   * Which positions follow which between two characters where these conditions hold, as the kernel `followPositions` reads it. Throws
   * `invalid` where that takes too many words.
   */
  wiring(conditions: number): Uint32Array {
    const asked = conditions & this.#asked;
    let wiring = this.#wirings.get(asked);
    if (wiring === undefined) this.#wirings.set(asked, (wiring = this.#wire(asked)));
    return wiring;
  }

  #wire(conditions: number): Uint32Array {
    const { out, start } = this.#program;
    const { words } = this;
    const known = new Map<number, Reached>();
    const reachedFrom = (pc: number): Reached => {
      const reached = known.get(pc) ?? this.#reach(pc, conditions);
      known.set(pc, reached);
      return reached;
    };
    const followers = this.#instructions.map((pc) => reachedFrom(out[pc]!));
    const { positions: first, isMatch: isEmptyMatch } = reachedFrom(start);
    const skipped = skippedIn([first, ...followers.map((each) => each.positions)]);
    if (skipped.size < skippedMin) skipped.clear();
    const entered = (positions: readonly number[]): number[] =>
      positions.filter((next, i) => positions[i - 1] !== next - 1 || !skipped.has(next - 1));
    // The sets `first`, `last`, `chained`, `looped` and `skipped`, one after another.
    const sets = new Uint32Array(5 * words);
    for (const position of entered(first)) setBit(sets, 0, position);
    for (const position of skipped) setBit(sets, 4 * words, position);
    const branching = new Map<string, number[]>();
    followers.forEach(({ positions, isMatch }, position) => {
      const next = entered(positions);
      if (isMatch) setBit(sets, words, position);
      if (next.includes(position + 1)) setBit(sets, 2 * words, position);
      if (next.includes(position)) setBit(sets, 3 * words, position);
      const others = next.filter((each) => each !== position && each !== position + 1).join();
      if (others === '') return;
      const members = branching.get(others);
      if (members === undefined) branching.set(others, [position]);
      else members.push(position);
    });
    const branches = Array.from(branching, ([targets, members]) => {
      const [from, to] = [unitsOf(members), unitsOf(targets.split(',').map(Number))];
      return [4 * from.at, 4 * from.words.length, 4 * to.at, 4 * to.words.length, ...from.words, ...to.words];
    }).flat();
    if (4 * branches.length > branchesBytesMax)
      throw new LogstrataError(
        'invalid',
        'too large: it has too many parts that can be left out or repeated',
      );
    return Uint32Array.of(+isEmptyMatch, 4 * branches.length, skipped.size, 0, ...sets, ...branches);
  }

  /** Follows instructions that take no character. */
  #reach(start: number, conditions: number): Reached {
    const { op, out, arg } = this.#program;
    const positions: number[] = [];
    let isMatch = false;
    const found = new Set([start]);
    for (const pc of found) {
      if (isRuneOp(op[pc]!)) positions.push(this.#positionAt[pc]!);
      else if (op[pc] === Op.match) isMatch = true;
      else if (op[pc] === Op.alt || op[pc] === Op.altMatch) found.add(out[pc]!).add(arg[pc]!);
      else if (op[pc] === Op.emptyWidth && (arg[pc]! & ~conditions) !== 0) continue;
      else if (op[pc] !== Op.fail) found.add(out[pc]!);
    }
    return { positions: positions.sort((a, b) => a - b), isMatch };
  }
}

/** The positions that can be left out: wherever one of them may come next, so may the one after it. */
function skippedIn(sets: readonly (readonly number[])[]): Set<number> {
  const skipped = new Set(sets.flat());
  for (const set of new Set(sets))
    set.forEach((position, i) => {
      if (set[i + 1] !== position + 1) skipped.delete(position);
    });
  return skipped;
}

/** Throws `invalid` where a pattern has this many positions. */
export function requirePositions(positions: number): void {
  if (positions <= positionsMax) return;
  throw new LogstrataError(
    'invalid',
    `too large: with its repetitions written out it has ${positions} characters and classes, more than ${positionsMax}`,
  );
}

function setBit(words: Uint32Array, at: number, bit: number): void {
  words[at + (bit >> 5)]! |= 1 << (bit & 31);
}

/** The words of a set from the first unit to the last that has any of the bits, and the index of the first of them. */
function unitsOf(bits: readonly number[]): { at: number; words: Uint32Array } {
  const unit = 32 * wordsPerUnit;
  const first = Math.floor(bits[0]! / unit);
  const words = new Uint32Array((Math.floor(bits.at(-1)! / unit) + 1 - first) * wordsPerUnit);
  for (const bit of bits) setBit(words, 0, bit - first * unit);
  return { at: first * wordsPerUnit, words };
}
