import type { ByteSet, LineStep } from './delimited-lines.js';
import { compilePattern, readPatternProgram } from '../../engine/patterns/compile-pattern.js';
import { Empty, findInterval, Op, type PatternProgram } from '../../engine/patterns/pattern-program.js';

const byteCount = 256;

/** Limit on steps: more than any line has fields and delimiters. Only patterns that repeat a class many times exceed it. */
const stepsMax = 1000;

/**
 * Converts a pattern to steps that always take the pattern's first choice, from the beginning of a line and without
 * backtracking. Where the steps succeed, they find what the pattern finds. Where they fail, the line may still match, by
 * another choice or at another place. Null for a pattern whose choices can't be decided by the next byte, or for which steps
 * would mostly fail.
 *
 * @param names the wanted groups; a group's index is its field
 */
export function delimitedSteps(regex: string, names: readonly string[]): LineStep[] | null {
  const pattern = compilePattern(regex);
  const program = readPatternProgram(pattern);
  const fields = new Map(
    Object.entries(pattern.namedGroups()).map(([name, group]) => [group, names.indexOf(name)]),
  );
  const writer = new StepWriter(program, fields);
  return writer.write(program.start) ? joinLiterals(writer.steps) : null;
}

/** What may come next: the possible bytes, whether the line may end, and whether anything may come. */
interface First {
  readonly set: ByteSet;
  readonly mayEndLine: boolean;
  readonly isAnything: boolean;
}

/** A repeated character class. */
interface Repetition {
  readonly set: ByteSet;
  readonly least: number;
  readonly isLazy: boolean;
  /** The instruction after it. */
  readonly next: number;
}

/** Writes the instructions of a pattern's program as steps. */
class StepWriter {
  readonly steps: LineStep[] = [];
  /** For each written instruction, the number of its step. */
  readonly #written = new Map<number, number>();
  /** Instructions on the path to the current one. */
  readonly #open = new Set<number>();

  constructor(
    private readonly program: PatternProgram,
    private readonly fields: ReadonlyMap<number, number>,
  ) {}

  /** Writes the instructions from `start` on. Returns false where they can't be written as steps. */
  write(start: number): boolean {
    const opened: number[] = [];
    let done: boolean | null = null;
    for (let pc = start; done === null;) {
      const known = this.#written.get(pc);
      if (known !== undefined) {
        // A jump back to an open instruction would be a loop of more than a class.
        done = !this.#open.has(pc);
        this.steps.push({ kind: 'jump', to: known });
        break;
      }
      if (this.steps.length >= stepsMax) return false;
      this.#written.set(pc, this.steps.length);
      this.#open.add(pc);
      opened.push(pc);
      const next = this.#instruction(pc);
      if (typeof next === 'number') pc = next;
      else done = next;
    }
    for (const pc of opened) this.#open.delete(pc);
    return done === true;
  }

  /** Writes one instruction. Returns the next one, or whether everything from there on was written. */
  #instruction(pc: number): number | boolean {
    const { op, out, arg } = this.program;
    const repetition = this.#repetition(pc);
    if (repetition !== null) return this.#writeRun(repetition);
    switch (op[pc]) {
      case Op.match:
        this.steps.push({ kind: 'accept' });
        return true;
      case Op.nop:
        return out[pc]!;
      case Op.capture: {
        const field = this.fields.get(arg[pc]! >> 1) ?? -1;
        if (field >= 0) this.steps.push({ kind: (arg[pc]! & 1) === 0 ? 'begin' : 'end', field });
        return out[pc]!;
      }
      case Op.emptyWidth:
        return this.#writeEdge(arg[pc]!) ? out[pc]! : false;
      case Op.alt:
        return this.#writeBranch(out[pc]!, arg[pc]!);
      default: {
        const set = isClass(this.program, pc) ? byteSet(this.program, pc) : null;
        // Non-ASCII characters take more than one byte.
        if (set === null || set[0x80] === 1) return false;
        this.steps.push({ kind: 'one', set });
        return out[pc]!;
      }
    }
  }

  #writeRun({ set, least, isLazy, next }: Repetition): number | false {
    const first = this.#first(next);
    if (first === null) return false;
    // A byte could belong to the repetition or to what follows it: the first choice would often be wrong.
    if (first.set.some((flag, byte) => flag === 1 && set[byte] === 1)) return false;
    if (isLazy && first.isAnything) return false;
    this.steps.push({ kind: 'run', set, least });
    return next;
  }

  #writeEdge(condition: number): boolean {
    if (condition === Empty.endText || condition === Empty.endLine) {
      this.steps.push({ kind: 'line end' });
      return true;
    }
    if (condition !== Empty.beginText && condition !== Empty.beginLine) return false;
    return this.steps.every(({ kind }) => kind === 'begin' || kind === 'end');
  }

  #writeBranch(preferred: number, other: number): boolean {
    const first = this.#first(preferred);
    if (first === null || first.isAnything || first.mayEndLine) return false;
    const at = this.steps.push({ kind: 'branch', set: first.set, otherwise: 0 }) - 1;
    if (!this.write(preferred)) return false;
    const otherwise = this.steps.length;
    this.steps[at] = { kind: 'branch', set: first.set, otherwise };
    if (this.write(other)) return true;
    // The other branch can't be written: replace it by a step that always fails, so that such a line is decoded singly.
    this.steps.length = otherwise;
    for (const [pc, step] of this.#written) if (step >= otherwise) this.#written.delete(pc);
    this.steps.push({ kind: 'one', set: new Uint8Array(byteCount) });
    return true;
  }

  #repetition(pc: number): Repetition | null {
    const { op, out, arg } = this.program;
    // In the program, a class that is repeated once or more precedes its branch.
    const isBranch = op[pc] === Op.alt;
    const branch = isBranch ? pc : out[pc]!;
    if (op[branch] !== Op.alt) return null;
    const isLoop = (body: number): boolean =>
      isClass(this.program, body) && out[body] === branch && (isBranch || body === pc);
    const isLazy = !isLoop(out[branch]!);
    if (isLazy && !isLoop(arg[branch]!)) return null;
    const body = isLazy ? arg[branch]! : out[branch]!;
    const set = byteSet(this.program, body);
    if (set === null) return null;
    return { set, least: isBranch ? 0 : 1, isLazy, next: isLazy ? out[branch]! : arg[branch]! };
  }

  /** What the instructions from `start` on may take first; null where that is not known. */
  #first(start: number): First | null {
    const { op, out, arg } = this.program;
    const set = new Uint8Array(byteCount);
    let mayEndLine = false;
    let isAnything = false;
    const seen = new Set<number>();
    const left = [start];
    for (let pc = left.pop(); pc !== undefined; pc = left.pop()) {
      if (seen.has(pc)) continue;
      seen.add(pc);
      if (op[pc] === Op.match) {
        isAnything = true;
      } else if (op[pc] === Op.alt) {
        left.push(out[pc]!, arg[pc]!);
      } else if (op[pc] === Op.nop || op[pc] === Op.capture) {
        left.push(out[pc]!);
      } else if (op[pc] === Op.emptyWidth) {
        if (arg[pc] !== Empty.endText && arg[pc] !== Empty.endLine) return null;
        mayEndLine = true;
      } else {
        const taken = isClass(this.program, pc) ? byteSet(this.program, pc) : null;
        if (taken === null) return null;
        taken.forEach((flag, byte) => (set[byte]! |= flag));
      }
    }
    return { set, mayEndLine, isAnything };
  }
}

function isClass({ op }: PatternProgram, pc: number): boolean {
  return op[pc]! >= Op.rune && op[pc]! <= Op.runeAnyNotNewline;
}

/** The bytes of the characters that an instruction accepts; null where it accepts some, but not all, non-ASCII characters. */
function byteSet({ classes, matcher }: PatternProgram, pc: number): ByteSet | null {
  const { matches, count, ofAscii, intervals, ofInterval } = classes;
  const takes = (runeClass: number): number => matches[matcher[pc]! * count + runeClass]!;
  const set = new Uint8Array(byteCount);
  for (let code = 0; code < 0x80; code++) set[code] = takes(ofAscii[code]!);
  const first = findInterval(intervals, 0x80);
  const takesHigh = takes(ofInterval[first]!);
  for (let i = first; i < intervals.length; i++) if (takes(ofInterval[i]!) !== takesHigh) return null;
  return set.fill(takesHigh, 0x80);
}

/** Joins consecutive steps for single characters into one literal. */
function joinLiterals(steps: readonly LineStep[]): LineStep[] {
  const targets = new Set(steps.flatMap(targetOf));
  const joined: LineStep[] = [];
  const places: number[] = [];
  steps.forEach((step, i) => {
    const byte = step.kind === 'one' ? onlyByte(step.set) : null;
    const last = joined.at(-1);
    if (byte !== null && last?.kind === 'literal' && !targets.has(i)) {
      joined[joined.length - 1] = { kind: 'literal', bytes: Uint8Array.of(...last.bytes, byte) };
    } else {
      joined.push(byte === null ? step : { kind: 'literal', bytes: Uint8Array.of(byte) });
    }
    places.push(joined.length - 1);
  });
  return joined.map((step) => {
    if (step.kind === 'branch') return { ...step, otherwise: places[step.otherwise]! };
    return step.kind === 'jump' ? { ...step, to: places[step.to]! } : step;
  });
}

function targetOf(step: LineStep): number[] {
  if (step.kind === 'branch') return [step.otherwise];
  return step.kind === 'jump' ? [step.to] : [];
}

function onlyByte(set: ByteSet): number | null {
  const first = set.indexOf(1);
  return first >= 0 && set.indexOf(1, first + 1) < 0 ? first : null;
}
