import { pointAt, pointLength } from '../../engine/index.js';
import {
  conditionsBetween,
  Context,
  findInterval,
  Op,
  type PatternProgram,
} from '../../engine/patterns/pattern-program.js';
import { CaptureRows, setsMax, type RowChange, type RowMatch } from './capture-rows.js';

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
  readonly pcs: Int32Array;
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
  /** Pairs of a thread and a capture slot that it sets. With more than `setsMax` numbers the line is given up. */
  readonly sets: number[] = [];
  match: RowMatch | null = null;
}

/**
 * Runs a compiled pattern in time linear in the text, as a deterministic automaton with captures that is built lazily. A
 * state is the list of RE2's threads in their order of priority, so matches and captures are RE2's (leftmost, first
 * alternative first) by construction. Each thread has a row of capture positions; a transition says which row each thread
 * continues with. Most characters of a log line change neither rows nor state.
 *
 * Conditions (`^`, `\b`, …) depend on the character after the position, so threads pass them on the transition, when that
 * character is known.
 *
 * Where states have to be dropped, the text is followed on from the current one. Where they are too many, none is looked for again.
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
  /** Position in the last text behind which nothing was read. */
  reached = 0;
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

  /** Whether the pattern has too many states to keep them. */
  get exhausted(): boolean {
    return this.#exhausted;
  }

  /**
   * Finds the first match in bytes[start, end), which must be UTF-8, from `from` on. Undefined where it takes more than
   * `patternStepsMax` steps; that does not depend on earlier lines.
   */
  match(bytes: Uint8Array, start: number, end: number, from = start): boolean | undefined {
    if (!this.countsInstructions) this.#lineSteps = 0;
    this.#pending = null;
    this.#matched = false;
    this.#run(bytes, from, end, from === start ? Context.text : this.#contextBefore(bytes, from));
    this.#keepPending();
    return this.#gaveUp ? undefined : this.#matched;
  }

  get #gaveUp(): boolean {
    return this.#lineSteps > patternStepsMax;
  }

  /** The context of the character before `at`. */
  #contextBefore(bytes: Uint8Array, at: number): number {
    let first = at - 1;
    while ((bytes[first]! & 0xc0) === 0x80) first--;
    return this.#program.classes.contexts[this.#classOf(pointAt(bytes, first))]!;
  }

  /** Runs over the text, which `before` precedes, until nothing can change any more, or the line is given up. */
  #run(bytes: Uint8Array, start: number, end: number, before: number): void {
    const ofAscii = this.#program.classes.ofAscii;
    if (this.#stateList.length === 0) this.#stateOf([], Context.text, false);
    let state = before === Context.text ? startState : this.#stateOf([], before, false);
    if (state === unknown) {
      this.#forget(startState, 0);
      state = this.#stateOf([], before, false);
    }
    let table = this.#table;
    let at = start;
    let counted = start;
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
          width = pointLength(lead);
          runeClass = this.#classOf(pointAt(bytes, at));
        }
      } else {
        runeClass = this.#stride - 1;
      }
      let entry = table[state + runeClass]!;
      if (entry === unknown) {
        entry = this.#findTransition(state, runeClass);
        if (this.#gaveUp) break;
        if (entry === unknown) {
          state = this.#forget(state, at - counted);
          counted = at;
        }
        table = this.#table;
        if (entry === unknown) continue;
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
    this.#bytesRead += at - counted;
    this.reached = at;
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
    const atEnd = runeClass === this.#stride - 1;
    const context = atEnd ? Context.text : this.#program.classes.contexts[runeClass]!;
    const transition = this.#step(from, atEnd ? -1 : runeClass, conditionsBetween(from.context, context));
    const { pcs, sources, sets, match } = transition;
    const matched = from.matched || match !== null;
    let next = dead;
    // Else further characters can't change anything.
    if (!atEnd && (pcs.length > 0 || !(matched || this.#program.anchored))) {
      next = this.#stateOf(pcs, context, matched);
      if (next === unknown) return unknown;
    }
    const rows = this.#slots === 0 ? null : this.#rows.plan(sources, from.pcs.length, sets);
    const step: Step = { next, rows, match };
    const isSilent = this.#isSilent(step, state, from);
    if (!isSilent) {
      this.#numbers += numbersIn(step);
      if (this.#numbers > numbersMax && this.#steps.length > 0) return unknown;
    }
    const entry = isSilent ? next : -2 - (this.#steps.push(step) - 1);
    this.#table[state + runeClass] = entry;
    return entry;
  }

  /**
   * Whether a transition only changes the state. On a loop of a state that always matches, a match need not be recorded,
   * because a later one will be.
   */
  #isSilent(step: Step, state: number, from: State): boolean {
    if (step.next === dead || step.rows !== null) return false;
    return step.match === null || (step.next === state && from.alwaysMatches);
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
          transition.match = { source, sets: Int32Array.from(slotsOf(sets)) };
          waiting.length = 0;
          waitingSets.length = 0;
          return;
        default:
          if (runeClass < 0 || classes.matches[matcher[pc]! * classes.count + runeClass] === 0) break;
          // A thread of lower priority at the same instruction can't give another match.
          if (this.#reached[out[pc]!] === this.#visit) break;
          this.#reached[out[pc]!] = this.#visit;
          for (const slot of transition.sets.length > setsMax ? [] : slotsOf(sets))
            transition.sets.push(transition.pcs.length, slot);
          transition.pcs.push(out[pc]!);
          transition.sources.push(source);
      }
    }
  }

  /** First table entry of a state, which is created if it is new; `unknown` where there is no room for it. */
  #stateOf(pcs: readonly number[] | Int32Array, context: number, matched: boolean): number {
    const key = this.#exhausted ? null : `${matched ? '+' : '-'}${context}:${pcs.join()}`;
    const known = key === null ? undefined : this.#states.get(key);
    if (known !== undefined) return known;
    const base = this.#stateList.length * this.#stride;
    const full = base + this.#stride > tableEntriesMax || this.#numbers + pcs.length > numbersMax;
    if (full && base > 0) return unknown;
    if (base + this.#stride > this.#table.length) this.#growTable(base + this.#stride);
    const state: State = { pcs: Int32Array.from(pcs), context, matched, alwaysMatches: false };
    const alwaysMatches = key !== null && this.#step(state, -1, 0).match !== null;
    this.#stateList.push({ ...state, alwaysMatches });
    if (key !== null) this.#states.set(key, base);
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

  /** Drops all states but one, of which the new entry is returned, after `bytes` more bytes. */
  #forget(state: number, bytes: number): number {
    const { pcs, context, matched } = this.#stateList[state / this.#stride]!;
    this.#bytesRead += bytes;
    if (this.#bytesRead < bytesPerStateMin * this.#stateList.length) this.#exhausted = true;
    this.#bytesRead = 0;
    this.#states.clear();
    this.#stateList = [];
    this.#numbers = 0;
    this.#table = new Int32Array(0);
    this.#steps = [];
    this.#stateOf([], Context.text, false);
    return this.#stateOf(pcs, context, matched);
  }
}

function numbersIn({ rows, match }: Step): number {
  const ofRows = rows === null ? 0 : rows.copies.length + rows.sets.length;
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
