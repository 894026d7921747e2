import { RE2JS } from 're2js';
import { LogstrataError } from '../../engine/index.js';
import { CaptureRows, setsMax, type RowChange, type RowMatch } from './capture-rows.js';

/**
 * Instructions of a compiled pattern, numbered as in RE2 (`syntax/prog.go` of Go's regexp, which re2js keeps). Look-behinds,
 * an addition of re2js, do not occur: they need a flag that is not set here.
 */
export const Op = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  emptyWidth: 4,
  fail: 5,
  match: 6,
  nop: 7,
  rune: 8,
  rune1: 9,
  runeAny: 10,
  runeAnyNotNewline: 11,
} as const;

/** Conditions of an empty-width instruction, as bits. */
export const Empty = {
  beginLine: 1,
  endLine: 2,
  beginText: 4,
  endText: 8,
  wordBoundary: 16,
  noWordBoundary: 32,
} as const;

/** Kinds of characters next to a position that empty-width instructions distinguish. */
const Context = { text: 0, newline: 1, word: 2, other: 3 } as const;

/** A compiled pattern as plain arrays, indexed by instruction. */
export interface PatternProgram {
  readonly start: number;
  readonly op: Uint8Array;
  readonly out: Int32Array;
  /** By instruction: second branch of `alt`, conditions of `emptyWidth`, group half of `capture` (2 g is the start of group g). */
  readonly arg: Int32Array;
  readonly classes: RuneClasses;
  /** For rune instructions, the row of `classes.matches`; -1 for others. */
  readonly matcher: Int32Array;
  /** Whether every match begins at the start of the text. */
  readonly anchored: boolean;
}

/** Code points divided into classes: no instruction of the program distinguishes two code points of one class. */
export interface RuneClasses {
  readonly count: number;
  /** Class of each ASCII code. */
  readonly ofAscii: Uint16Array;
  /** First code point of each interval, ascending from 0; `ofInterval` has the interval's class. */
  readonly intervals: Int32Array;
  readonly ofInterval: Uint16Array;
  /** Whether matcher m accepts class c: `matches[m * count + c]`. */
  readonly matches: Uint8Array;
  /** A `Context` per class; `other` where the pattern has no condition that depends on it. */
  readonly contexts: Uint8Array;
}

interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: ArrayLike<number>;
  matchRune(rune: number): boolean;
}

const runeMax = 0x10ffff;

/**
 * Limit on comparisons of characters with instructions for dividing them into classes: less than a second. Patterns of real
 * logs take some thousand.
 */
const comparisonsMax = 32 * 1024 * 1024;

/** Unicode case folding has no pairs beyond the Supplementary Multilingual Plane. */
const foldingRuneMax = 0x1ffff;

/** Bit of `arg` by which re2js marks an instruction that ignores case. */
const foldCase = 1;

/**
 * Converts the program that re2js compiled. Returns null where it does not have the known form, which a later version of
 * re2js may change; re2js then has to run the pattern itself. Throws `invalid` for a program that distinguishes too many
 * characters.
 */
export function readPatternProgram(pattern: RE2JS): PatternProgram | null {
  if (!isKnownForm()) return null;
  return convertProgram(pattern);
}

/** Patterns whose programs contain every relevant kind of instruction and condition, with the expected instructions. */
const knownPrograms: readonly (readonly [pattern: string, instructions: string])[] = [
  ['^(?P<x>[a-c]|x.)(?s:.)*$', '5 4:4 3:2 8 9 11 1:4 3:3 10 1:10 4:8 6'],
  ['(?m:^)|(?m:$)|\\b\\B', '5 4:1 4:2 1:2 4:16 4:32 1:4 6'],
];

let knownForm: boolean | undefined;

function isKnownForm(): boolean {
  knownForm ??= knownPrograms.every(([text, instructions]) => {
    const program = convertProgram(RE2JS.compile(text));
    return program !== null && describe(program) === instructions;
  });
  return knownForm;
}

function describe(program: PatternProgram): string {
  const withArgument: readonly number[] = [Op.alt, Op.capture, Op.emptyWidth];
  const texts = Array.from(program.op, (op, pc) =>
    withArgument.includes(op) ? `${op}:${program.arg[pc]}` : op,
  );
  return texts.join(' ');
}

function convertProgram(pattern: RE2JS): PatternProgram | null {
  const compiled: unknown = pattern.re2Input?.prog;
  if (!isProgram(compiled)) return null;
  const { inst, start } = compiled;
  if (inst.some((i) => i.op < Op.alt || i.op > Op.runeAnyNotNewline)) return null;
  const matchers = new Map<string, Instruction>();
  const names: string[] = [];
  for (const i of inst) {
    const name = isRuneOp(i.op) ? `${i.op}:${i.arg & foldCase}:${Array.from(i.runes).join()}` : '';
    names.push(name);
    if (name !== '') matchers.set(name, i);
  }
  const numbers = new Map([...matchers.keys()].map((name, number) => [name, number]));
  return {
    start,
    op: Uint8Array.from(inst, (i) => i.op),
    out: Int32Array.from(inst, (i) => i.out),
    arg: Int32Array.from(inst, (i) => i.arg),
    classes: divideRunes([...matchers.values()], emptyConditions(inst)),
    matcher: Int32Array.from(names, (name) => numbers.get(name) ?? -1),
    anchored: beginsWithText(inst, start),
  };
}

function isProgram(value: unknown): value is { inst: Instruction[]; start: number } {
  if (typeof value !== 'object' || value === null || !('inst' in value) || !('start' in value)) return false;
  const { inst, start } = value;
  return typeof start === 'number' && Array.isArray(inst) && inst.length > 0 && inst.every(isInstruction);
}

function isInstruction(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    'op' in value &&
    typeof value.op === 'number' &&
    'out' in value &&
    typeof value.out === 'number' &&
    'arg' in value &&
    typeof value.arg === 'number' &&
    'runes' in value &&
    'matchRune' in value &&
    typeof value.matchRune === 'function'
  );
}

function isRuneOp(op: number): boolean {
  return op >= Op.rune && op <= Op.runeAnyNotNewline;
}

function emptyConditions(inst: readonly Instruction[]): number {
  return inst.reduce((all, i) => (i.op === Op.emptyWidth ? all | i.arg : all), 0);
}

/** Whether every match must first pass an instruction that requires the start of the text. */
function beginsWithText(inst: readonly Instruction[], start: number): boolean {
  let pc = start;
  for (;;) {
    const i = inst[pc]!;
    if (i.op === Op.emptyWidth && (i.arg & Empty.beginText) !== 0) return true;
    if (i.op !== Op.emptyWidth && i.op !== Op.capture && i.op !== Op.nop) return false;
    pc = i.out;
  }
}

function matchesRune(i: Instruction, rune: number): boolean {
  switch (i.op) {
    case Op.runeAny:
      return true;
    case Op.runeAnyNotNewline:
      return rune !== 10;
    case Op.rune1:
      return rune === i.runes[0];
    default:
      return i.matchRune(rune);
  }
}

/** Whether the characters that the instruction accepts can only be found by comparing all of them. */
function comparesAll(i: Instruction): boolean {
  return isOneRune(i) && (i.arg & foldCase) !== 0 && i.runes[0]! >= 0x80;
}

function isOneRune(i: Instruction): boolean {
  return (i.op === Op.rune || i.op === Op.rune1) && i.runes.length === 1;
}

/** Adds the borders of the intervals within which the instruction accepts all code points or none. */
function addBorders(i: Instruction, borders: Set<number>): void {
  const add = (low: number, high: number): void => void borders.add(low).add(high + 1);
  if (i.op === Op.runeAnyNotNewline) add(10, 10);
  if (i.op !== Op.rune && i.op !== Op.rune1) return;
  if (i.runes.length !== 1) {
    for (let k = 0; k < i.runes.length; k += 2) add(i.runes[k]!, i.runes[k + 1]!);
    return;
  }
  const rune = i.runes[0]!;
  add(rune, rune);
  if ((i.arg & foldCase) === 0) return;
  // An ASCII letter folds only to ASCII letters, the Kelvin sign and the long s; the partners of others are searched.
  const last = comparesAll(i) ? foldingRuneMax : 0x7f;
  for (let other = 0; other <= last; other++) if (i.matchRune(other)) add(other, other);
  for (const other of [0x17f, 0x212a]) if (i.matchRune(other)) add(other, other);
}

function contextOf(rune: number, conditions: number): number {
  const asksLines = (conditions & (Empty.beginLine | Empty.endLine)) !== 0;
  const asksWords = (conditions & (Empty.wordBoundary | Empty.noWordBoundary)) !== 0;
  if (rune === 10 && asksLines) return Context.newline;
  return asksWords && /^[0-9A-Za-z_]$/.test(String.fromCodePoint(rune)) ? Context.word : Context.other;
}

function divideRunes(matchers: readonly Instruction[], conditions: number): RuneClasses {
  const borders = new Set<number>([0]);
  requireFew(matchers.filter(comparesAll).length * foldingRuneMax);
  for (const i of matchers) addBorders(i, borders);
  if (conditions !== 0) for (const border of [10, 11, 48, 58, 65, 91, 95, 96, 97, 123]) borders.add(border);
  borders.delete(runeMax + 1);
  const intervals = Int32Array.from(borders).sort();
  requireFew(matchers.length * intervals.length);
  const numbers = new Map<string, number>();
  const representatives: number[] = [];
  const ofInterval = Uint16Array.from(intervals, (rune) => {
    const answers = matchers.map((i) => (matchesRune(i, rune) ? '1' : '0')).join('');
    const key = `${contextOf(rune, conditions)}${answers}`;
    const known = numbers.get(key) ?? numbers.size;
    if (known === numbers.size) representatives.push(rune);
    numbers.set(key, known);
    return known;
  });
  const count = numbers.size;
  const matches = new Uint8Array(matchers.length * count);
  matchers.forEach((i, m) => {
    representatives.forEach((rune, c) => (matches[m * count + c] = matchesRune(i, rune) ? 1 : 0));
  });
  const ofAscii = new Uint16Array(128);
  for (let code = 0; code < 128; code++) ofAscii[code] = ofInterval[findInterval(intervals, code)]!;
  const contexts = Uint8Array.from(representatives, (rune) => contextOf(rune, conditions));
  return { count, ofAscii, intervals, ofInterval, matches, contexts };
}

function requireFew(comparisons: number): void {
  if (comparisons <= comparisonsMax) return;
  throw new LogstrataError(
    'invalid',
    'too large: it has too many different characters and character classes',
  );
}

/** Index of the interval that contains a code point. */
export function findInterval(intervals: Int32Array, rune: number): number {
  let low = 0;
  let high = intervals.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (intervals[middle]! <= rune) low = middle;
    else high = middle;
  }
  return low;
}

/** Limit on the transition table's entries (4 MiB). When it is full, the states are dropped and computed again as lines need them. */
const tableEntriesMax = 1024 * 1024;

/** Limit on the numbers in all states and steps together (16 MiB); bounds the memory for patterns with large counted repetitions. */
const numbersMax = 4 * 1024 * 1024;

/**
 * If the states are dropped before they have read this many bytes each on average, the pattern has too many states for an
 * automaton: computing a state costs as much as reading some hundred bytes.
 */
const bytesPerStateMin = 64;

/**
 * Limit on the steps of one line. A step is following an instruction, or moving some capture positions; this many take about
 * a second. Usual patterns take less than one step per byte.
 */
export const patternStepsMax = 20_000_000;

/** No state: the text has ended, or no thread is left. */
const dead = -1;

/** The state before the first character; it is always created first. */
const startState = 0;

/** Table entry of a transition that has not been computed. Other negative entries are steps: `-2 - index`. */
const unknown = -1;

/** A transition that does more than change the state. Threads are identified by their place in the state's order of priority. */
interface Step {
  /** First table entry of the next state, or `dead`. */
  readonly next: number;
  /** Null where each thread keeps its place and no capture is set. */
  readonly rows: RowChange | null;
  /** Set where a thread reached the end of the pattern before the character of the transition. */
  readonly match: RowMatch | null;
}

interface State {
  /** Instructions at which threads wait for the next character, by priority. Their conditions are checked on the transition. */
  readonly pcs: ArrayLike<number>;
  readonly context: number;
  /** Whether a match was found, after which no new thread starts. */
  readonly matched: boolean;
  /** Whether a match ends here whatever comes next; the transition that leaves the state records it. */
  readonly alwaysMatches: boolean;
}

interface CaptureSet {
  readonly slot: number;
  readonly next: CaptureSet | null;
}

/** The result of following all threads over a character. */
class Transition {
  readonly pcs: number[] = [];
  readonly sources: number[] = [];
  readonly sets: (CaptureSet | null)[] = [];
  match: { source: number; sets: CaptureSet | null } | null = null;
}

/** A transition and the state that it leads to. */
interface Move {
  readonly transition: Transition;
  /** Whether further characters can change anything; if not, `context` and `matched` are meaningless. */
  readonly goesOn: boolean;
  readonly context: number;
  readonly matched: boolean;
}

/**
 * Runs a compiled pattern in time linear in the text, as a deterministic automaton with captures that is built lazily. A
 * state is the list of RE2's threads in their order of priority, so matches and captures are RE2's (leftmost, first
 * alternative first) by construction. Each thread has a row of capture positions; a transition says which row each thread
 * continues with. Most characters of a log line change neither rows nor state.
 *
 * Conditions (`^`, `\b`, …) depend on the character after the position, so threads pass them on the transition, when that
 * character is known.
 */
export class PatternAutomaton {
  /** Byte positions of the wanted groups after a match: start and end of each, -1 for a group that did not take part. */
  readonly captures: Int32Array;
  readonly #program: PatternProgram;
  readonly #slotOf: Int32Array;
  readonly #slots: number;
  readonly #stride: number;
  readonly #states = new Map<string, number>();
  #stateList: State[] = [];
  /** Count of numbers in all states and steps. */
  #numbers = 0;
  #table = new Int32Array(0);
  #steps: Step[] = [];
  readonly #rows: CaptureRows;
  #bytesRead = 0;
  #exhausted = false;
  /** Steps of the current line so far; the limit is `patternStepsMax`. */
  #lineSteps = 0;
  /** A match whose captures are still in the rows, and its end position (`#pendingAt`). */
  #pending: RowMatch | null = null;
  #pendingAt = 0;
  #matched = false;
  /**
   * Per instruction, the number (`#visit`) of the last transition that met it before the character; `#reached` has the same
   * for after the character.
   */
  readonly #visited: Int32Array;
  readonly #reached: Int32Array;
  #visit = 0;
  /** Stack of instructions that the current thread still has to follow, and the captures set on the way to each; empty between threads. */
  readonly #waiting: number[] = [];
  readonly #waitingSets: (CaptureSet | null)[] = [];

  /**
   * @param groups numbers of the groups whose positions are wanted, in the order of `captures`
   * @param countsInstructions whether followed instructions count as steps. Only for an automaton of a single line:
   * otherwise the count depends on the lines before.
   */
  constructor(
    program: PatternProgram,
    groups: readonly number[],
    private readonly countsInstructions = false,
  ) {
    this.#program = program;
    this.#slots = groups.length * 2;
    this.captures = new Int32Array(this.#slots);
    this.#rows = new CaptureRows(this.#slots);
    this.#slotOf = slotsOfCaptures(program, groups);
    this.#stride = program.classes.count + 1;
    this.#visited = new Int32Array(program.op.length);
    this.#reached = new Int32Array(program.op.length);
  }

  /** Whether the pattern has too many states to keep them. Each character is then followed through the instructions. */
  get exhausted(): boolean {
    return this.#exhausted;
  }

  /**
   * Finds the first match in bytes[start, end), which must be UTF-8. Undefined where it takes more than `patternStepsMax`
   * steps; that does not depend on earlier lines.
   */
  match(bytes: Uint8Array, start: number, end: number): boolean | undefined {
    for (let attempt = 0; attempt < 2 && !this.#exhausted; attempt++) {
      this.#begin();
      if (this.#run(bytes, start, end)) return this.#finish();
    }
    this.#exhausted = true;
    this.#begin();
    this.#runUncached(bytes, start, end);
    return this.#finish();
  }

  #begin(): void {
    if (!this.countsInstructions) this.#lineSteps = 0;
    this.#pending = null;
    this.#matched = false;
  }

  #finish(): boolean | undefined {
    this.#keepPending();
    return this.#gaveUp ? undefined : this.#matched;
  }

  get #gaveUp(): boolean {
    return this.#lineSteps > patternStepsMax;
  }

  /**
   * Runs over the text until nothing can change any more, or the line is given up. Returns false where the states were
   * dropped on the way.
   */
  #run(bytes: Uint8Array, start: number, end: number): boolean {
    const ofAscii = this.#program.classes.ofAscii;
    if (this.#stateList.length === 0) this.#stateOf([], Context.text, false);
    let table = this.#table;
    let state = startState;
    let at = start;
    while (state !== dead) {
      let width = 1;
      let runeClass: number;
      if (at < end) {
        const lead = bytes[at]!;
        if (lead < 0x80) {
          const entry = table[state + ofAscii[lead]!]!;
          if (entry >= 0) {
            state = entry;
            at++;
            continue;
          }
          runeClass = ofAscii[lead]!;
        } else {
          width = runeWidth(lead);
          runeClass = this.#classOf(decodeRune(bytes, at, width));
        }
      } else {
        runeClass = this.#stride - 1;
      }
      let entry = table[state + runeClass]!;
      if (entry === unknown) {
        entry = this.#findTransition(state, runeClass);
        if (this.#gaveUp) break;
        if (entry === unknown) {
          this.#forget(at - start);
          return false;
        }
        table = this.#table;
      }
      if (entry >= 0) {
        state = entry;
      } else {
        const step = this.#steps[-2 - entry]!;
        this.#take(step, at);
        if (this.#gaveUp) break;
        state = step.next;
      }
      at += width;
    }
    this.#bytesRead += at - start;
    return true;
  }

  /** Like `#run`, but without keeping states. */
  #runUncached(bytes: Uint8Array, start: number, end: number): void {
    const { ofAscii } = this.#program.classes;
    let from: State = { pcs: [], context: Context.text, matched: false, alwaysMatches: false };
    for (let at = start; ;) {
      const lead = at < end ? bytes[at]! : 0;
      const width = lead < 0x80 ? 1 : runeWidth(lead);
      let runeClass = this.#stride - 1;
      if (at < end) runeClass = lead < 0x80 ? ofAscii[lead]! : this.#classOf(decodeRune(bytes, at, width));
      const { transition, goesOn, context, matched } = this.#moveFrom(from, runeClass);
      this.#take(this.#compileStep(transition, from.pcs.length, dead), at);
      if (!goesOn || this.#gaveUp) return;
      from = { pcs: transition.pcs, context, matched, alwaysMatches: false };
      at += width;
    }
  }

  /** Applies a step at position `at`: a match and the change of rows. */
  #take(step: Step, at: number): void {
    if (step.match !== null) {
      this.#pending = step.match;
      this.#pendingAt = at;
      this.#matched = true;
    }
    const { rows } = step;
    if (rows === null) return;
    // Copy the captures of a pending match before its rows change.
    this.#keepPending();
    this.#lineSteps += rows.cost;
    if (!this.#gaveUp) this.#rows.apply(rows, at);
  }

  #classOf(rune: number): number {
    const { intervals, ofInterval } = this.#program.classes;
    return ofInterval[findInterval(intervals, rune)]!;
  }

  #keepPending(): void {
    const match = this.#pending;
    if (match === null) return;
    this.#pending = null;
    this.#lineSteps += this.#rows.keep(match, this.#pendingAt, this.captures);
  }

  /** Computes a transition and returns its table entry; `unknown` where there is no room for it or its state. */
  #findTransition(state: number, runeClass: number): number {
    const from = this.#stateList[state / this.#stride]!;
    const { transition, goesOn, context, matched } = this.#moveFrom(from, runeClass);
    let next = dead;
    if (goesOn) {
      next = this.#stateOf(transition.pcs, context, matched);
      if (next === unknown) return unknown;
    }
    const step = this.#compileStep(transition, from.pcs.length, next);
    const isSilent = this.#isSilent(step, state, from);
    if (!isSilent) {
      this.#numbers += numbersIn(step);
      if (this.#numbers > numbersMax && this.#steps.length > 0) return unknown;
    }
    const entry = isSilent ? next : -2 - (this.#steps.push(step) - 1);
    this.#table[state + runeClass] = entry;
    return entry;
  }

  #moveFrom(from: State, runeClass: number): Move {
    const atEnd = runeClass === this.#stride - 1;
    const context = atEnd ? Context.text : this.#program.classes.contexts[runeClass]!;
    const transition = this.#step(from, atEnd ? -1 : runeClass, conditionsBetween(from.context, context));
    const matched = from.matched || transition.match !== null;
    const goesOn = !atEnd && (transition.pcs.length > 0 || !(matched || this.#program.anchored));
    return { transition, goesOn, context, matched };
  }

  /**
   * Whether a transition only changes the state. On a loop of a state that always matches, a match need not be recorded,
   * because a later one will be.
   */
  #isSilent(step: Step, state: number, from: State): boolean {
    if (step.next === dead || step.rows !== null) return false;
    return step.match === null || (step.next === state && from.alwaysMatches);
  }

  #compileStep(transition: Transition, threads: number, next: number): Step {
    const { pcs, sources, match } = transition;
    const sets: number[] = [];
    // With more sets the line is given up.
    for (let thread = 0; thread < pcs.length && sets.length <= setsMax; thread++) {
      for (const slot of slotsOf(transition.sets[thread]!)) sets.push(thread, slot);
    }
    return {
      next,
      rows: this.#slots === 0 ? null : this.#rows.plan(sources, threads, sets),
      match: match === null ? null : { source: match.source, sets: Int32Array.from(slotsOf(match.sets)) },
    };
  }

  /** Follows all threads over a character of class `runeClass`, -1 for the end of the text. */
  #step(from: State, runeClass: number, conditions: number): Transition {
    const transition = new Transition();
    this.#visit++;
    for (let thread = 0; thread < from.pcs.length && transition.match === null; thread++) {
      this.#follow(from.pcs[thread]!, thread, runeClass, conditions, transition);
    }
    if (!from.matched && transition.match === null) {
      this.#follow(this.#program.start, -1, runeClass, conditions, transition);
    }
    return transition;
  }

  /** Follows one thread through instructions that consume nothing, as RE2's machine does, and over the character. */
  #follow(
    start: number,
    source: number,
    runeClass: number,
    conditions: number,
    transition: Transition,
  ): void {
    const { op, out, arg, classes, matcher } = this.#program;
    const waiting = this.#waiting;
    const waitingSets = this.#waitingSets;
    waiting.push(start);
    waitingSets.push(null);
    while (waiting.length > 0) {
      const pc = waiting.pop()!;
      const sets = waitingSets.pop()!;
      if (this.#visited[pc] === this.#visit) continue;
      this.#visited[pc] = this.#visit;
      if (this.countsInstructions) this.#lineSteps++;
      switch (op[pc]) {
        case Op.alt:
        case Op.altMatch:
          waiting.push(arg[pc]!, out[pc]!);
          waitingSets.push(sets, sets);
          break;
        case Op.capture: {
          const slot = this.#slotOf[arg[pc]!]!;
          waiting.push(out[pc]!);
          waitingSets.push(slot < 0 ? sets : { slot, next: sets });
          break;
        }
        case Op.emptyWidth:
          if ((arg[pc]! & ~conditions) !== 0) break;
          waiting.push(out[pc]!);
          waitingSets.push(sets);
          break;
        case Op.nop:
          waiting.push(out[pc]!);
          waitingSets.push(sets);
          break;
        case Op.fail:
          break;
        case Op.match:
          transition.match = { source, sets };
          waiting.length = 0;
          waitingSets.length = 0;
          return;
        default:
          if (runeClass < 0 || classes.matches[matcher[pc]! * classes.count + runeClass] === 0) break;
          // A thread of lower priority at the same instruction can't give another match.
          if (this.#reached[out[pc]!] === this.#visit) break;
          this.#reached[out[pc]!] = this.#visit;
          transition.pcs.push(out[pc]!);
          transition.sources.push(source);
          transition.sets.push(sets);
      }
    }
  }

  /** First table entry of a state, which is created if it is new; `unknown` where there is no room for it. */
  #stateOf(pcs: readonly number[], context: number, matched: boolean): number {
    const key = `${matched ? '+' : '-'}${context}:${pcs.join()}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const base = this.#stateList.length * this.#stride;
    const full = base + this.#stride > tableEntriesMax || this.#numbers + pcs.length > numbersMax;
    if (full && base > 0) return unknown;
    if (base + this.#stride > this.#table.length) this.#growTable(base + this.#stride);
    const state: State = { pcs: Int32Array.from(pcs), context, matched, alwaysMatches: false };
    const alwaysMatches = this.#step(state, -1, 0).match !== null;
    this.#stateList.push({ ...state, alwaysMatches });
    this.#states.set(key, base);
    // Twice, because the key has as many numbers.
    this.#numbers += 2 * pcs.length;
    return base;
  }

  #growTable(entries: number): void {
    const table = this.#table;
    this.#table = new Int32Array(Math.max(entries, Math.min(table.length * 2, tableEntriesMax), 1024)).fill(
      unknown,
    );
    this.#table.set(table);
  }

  /** Drops all states, after `bytes` bytes of a line. */
  #forget(bytes: number): void {
    this.#bytesRead += bytes;
    if (this.#bytesRead < bytesPerStateMin * this.#stateList.length) this.#exhausted = true;
    this.#bytesRead = 0;
    this.#states.clear();
    this.#stateList = [];
    this.#numbers = 0;
    this.#table = new Int32Array(0);
    this.#steps = [];
  }
}

function numbersIn({ rows, match }: Step): number {
  const ofRows = rows === null ? 0 : (rows.places?.length ?? 0) + rows.copies.length + rows.sets.length;
  return ofRows + (match?.sets.length ?? 0);
}

/** For each half of a group (2 g, 2 g + 1), its slot in `captures`, or -1. */
function slotsOfCaptures(program: PatternProgram, groups: readonly number[]): Int32Array {
  let halves = 2;
  program.op.forEach((op, pc) => {
    if (op === Op.capture) halves = Math.max(halves, program.arg[pc]! + 1);
  });
  const slots = new Int32Array(halves + 1).fill(-1);
  groups.forEach((group, i) => {
    slots[2 * group] = 2 * i;
    slots[2 * group + 1] = 2 * i + 1;
  });
  return slots;
}

function slotsOf(sets: CaptureSet | null): number[] {
  const slots: number[] = [];
  for (let set = sets; set !== null; set = set.next) slots.push(set.slot);
  return slots;
}

/** The conditions that hold between two characters. */
function conditionsBetween(before: number, after: number): number {
  let conditions = 0;
  if (before === Context.text) conditions |= Empty.beginText | Empty.beginLine;
  if (before === Context.newline) conditions |= Empty.beginLine;
  if (after === Context.text) conditions |= Empty.endText | Empty.endLine;
  if (after === Context.newline) conditions |= Empty.endLine;
  const isBoundary = (before === Context.word) !== (after === Context.word);
  return conditions | (isBoundary ? Empty.wordBoundary : Empty.noWordBoundary);
}

/** Length of a UTF-8 sequence by its first byte, which is at least 0x80. */
function runeWidth(lead: number): number {
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/** The code point of a UTF-8 sequence of `width` (2 to 4) bytes. */
function decodeRune(bytes: Uint8Array, at: number, width: number): number {
  let rune = bytes[at]! & (0xff >> (width + 1));
  for (let i = 1; i < width; i++) rune = (rune << 6) | (bytes[at + i]! & 0x3f);
  return rune;
}
