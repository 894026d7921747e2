import { Context, Empty, findInterval, Op, type PatternProgram } from './pattern-program.js';

/** Entries of the transition table; beyond it (4 MiB) the states are forgotten and found again as lines need them. */
const tableEntriesMax = 1024 * 1024;

/** Threads kept in all states together; bounds the memory of patterns with large counted repetitions. */
const threadsMax = 1024 * 1024;

/**
 * When the states are forgotten before they have read this many bytes each, the pattern has too many of them for an
 * automaton: finding a state costs as much as reading some hundred bytes.
 */
const bytesPerStateMin = 64;

const nothing = new Int32Array(0);

/** The text ended or no thread is left. */
const dead = -1;

/** The state before the first character is always made first. */
const startState = 0;

/** Entry of the transition table for what has not been asked yet; other negative entries are steps. */
const unknown = -1;

/**
 * A transition that does more than to go to another state. Threads are known by their place in the state's order of
 * priority, and `places` says which row of capture positions belongs to the thread at each place.
 */
interface Step {
  /** First table entry of the next state, or `dead`. */
  readonly next: number;
  /** Whether each thread stays at its place and no capture is set. */
  readonly keepsRows: boolean;
  /** For each place the old place whose row it gets; null when all stay. */
  readonly places: Int32Array | null;
  /** Pairs of a place and the place whose captures it gets a copy of, -1 for none set: threads that are new. */
  readonly copies: Int32Array;
  /** Pairs of a place and a capture half that gets the position. */
  readonly sets: Int32Array;
  readonly match: StepMatch | null;
}

/** A thread has reached the end of the pattern before the character of the transition. */
interface StepMatch {
  /** Place of the thread, -1 for one that started here. */
  readonly source: number;
  /** Capture halves that are set at the position. */
  readonly sets: Int32Array;
}

interface State {
  /** Instructions at which threads wait for the next character, by priority; their conditions are not checked yet. */
  readonly pcs: Int32Array;
  readonly context: number;
  /** A match was found, so that no new thread starts. */
  readonly matched: boolean;
  /** Whatever comes next, a match ends here: the transition that leaves the state records it. */
  readonly alwaysMatches: boolean;
}

interface CaptureSet {
  readonly slot: number;
  readonly next: CaptureSet | null;
}

/** What one transition comes to. */
class Transition {
  readonly pcs: number[] = [];
  readonly sources: number[] = [];
  readonly sets: (CaptureSet | null)[] = [];
  match: { source: number; sets: CaptureSet | null } | null = null;
}

/**
 * Runs a compiled pattern in time linear to the text: a deterministic automaton with captures, built as lines ask for
 * it. A state is the list of RE2's threads in their order of priority, so matches and captures are those of RE2 (leftmost,
 * first alternative) by construction. Each thread has a row of capture positions; a transition says which row
 * each thread goes on with. Most characters of a log line change neither rows nor state.
 *
 * Conditions (`^`, `\b`, …) look at the character behind the position, so a state's threads pass them only when that
 * character is known: on the transition.
 */
export class PatternAutomaton {
  /** Byte positions of the wanted groups after a match: start and end of each, -1 for a group that took no part. */
  readonly captures: Int32Array;
  readonly #program: PatternProgram;
  readonly #slotOf: Int32Array;
  readonly #slots: number;
  readonly #stride: number;
  readonly #states = new Map<string, number>();
  #stateList: State[] = [];
  #threads = 0;
  #table = new Int32Array(0);
  #steps: Step[] = [];
  /** Capture positions, `#slots` a row. */
  #rows = new Int32Array(0);
  /** The row of the thread at each place; a permutation of all rows. */
  #rowOf = new Int32Array(0);
  #oldRowOf = new Int32Array(0);
  #bytesRead = 0;
  #exhausted = false;
  /** The transition (numbered by `#visit`) on which an instruction was met before, and behind, the character. */
  readonly #visited: Int32Array;
  readonly #reached: Int32Array;
  #visit = 0;

  /** `groups` are the numbers of the groups whose positions are wanted; `captures` has them in this order. */
  constructor(program: PatternProgram, groups: readonly number[]) {
    this.#program = program;
    this.#slots = groups.length * 2;
    this.captures = new Int32Array(this.#slots);
    this.#slotOf = slotsOfCaptures(program, groups);
    this.#stride = program.classes.count + 1;
    this.#visited = new Int32Array(program.op.length);
    this.#reached = new Int32Array(program.op.length);
  }

  /** The pattern has too many states; `match` answers no more. */
  get exhausted(): boolean {
    return this.#exhausted;
  }

  /** Finds the first match in bytes[start, end), which must be UTF-8. Undefined when the automaton is exhausted. */
  match(bytes: Uint8Array, start: number, end: number): boolean | undefined {
    for (let attempt = 0; attempt < 2 && !this.#exhausted; attempt++) {
      const answer = this.#run(bytes, start, end);
      if (answer !== undefined) return answer;
    }
    this.#exhausted = true;
    return undefined;
  }

  #run(bytes: Uint8Array, start: number, end: number): boolean | undefined {
    const ofAscii = this.#program.classes.ofAscii;
    if (this.#stateList.length === 0) this.#stateOf([], Context.text, false);
    let table = this.#table;
    let state = startState;
    let at = start;
    let pending: StepMatch | null = null;
    let pendingAt = 0;
    let matched = false;
    while (state !== dead) {
      let width = 1;
      let rune = 0;
      let runeClass: number;
      if (at < end) {
        rune = bytes[at]!;
        if (rune < 0x80) {
          const entry = table[state + ofAscii[rune]!]!;
          if (entry >= 0) {
            state = entry;
            at++;
            continue;
          }
          runeClass = ofAscii[rune]!;
        } else {
          width = rune < 0xe0 ? 2 : rune < 0xf0 ? 3 : 4;
          runeClass = this.#classOf(decodeRune(bytes, at, width));
        }
      } else {
        runeClass = this.#stride - 1;
      }
      let entry = table[state + runeClass]!;
      if (entry === unknown) {
        entry = this.#findTransition(state, runeClass);
        if (entry === unknown) {
          this.#forget(at - start);
          return undefined;
        }
        table = this.#table;
      }
      if (entry >= 0) {
        state = entry;
        at += width;
        continue;
      }
      const step = this.#steps[-2 - entry]!;
      if (step.match !== null) {
        pending = step.match;
        pendingAt = at;
        matched = true;
      }
      if (!step.keepsRows) {
        // The rows of a match that was put off are about to change.
        if (pending !== null) this.#keepMatch(pending, pendingAt);
        pending = null;
        this.#applyStep(step, at);
      }
      state = step.next;
      at += width;
    }
    if (pending !== null) this.#keepMatch(pending, pendingAt);
    this.#bytesRead += at - start;
    return matched;
  }

  #classOf(rune: number): number {
    const { intervals, ofInterval } = this.#program.classes;
    return ofInterval[findInterval(intervals, rune)]!;
  }

  #keepMatch(match: StepMatch, at: number): void {
    const slots = this.#slots;
    const captures = this.captures;
    const from = match.source < 0 ? -1 : this.#rowOf[match.source]! * slots;
    for (let slot = 0; slot < slots; slot++) captures[slot] = from < 0 ? -1 : this.#rows[from + slot]!;
    for (let i = 0; i < match.sets.length; i++) captures[match.sets[i]!] = at;
  }

  #applyStep(step: Step, at: number): void {
    if (step.places !== null) this.#movePlaces(step.places);
    if (step.copies.length > 0) this.#copyRows(step.copies);
    const { sets } = step;
    const rows = this.#rows;
    const rowOf = this.#rowOf;
    const slots = this.#slots;
    for (let i = 0; i < sets.length; i += 2) rows[rowOf[sets[i]!]! * slots + sets[i + 1]!] = at;
  }

  #movePlaces(places: Int32Array): void {
    const rowOf = this.#rowOf;
    const old = this.#oldRowOf;
    for (let place = 0; place < places.length; place++) old[place] = rowOf[place]!;
    for (let place = 0; place < places.length; place++) rowOf[place] = old[places[place]!]!;
  }

  #copyRows(copies: Int32Array): void {
    const slots = this.#slots;
    const rows = this.#rows;
    for (let i = 0; i < copies.length; i += 2) {
      const to = this.#rowOf[copies[i]!]! * slots;
      const from = copies[i + 1]! < 0 ? -1 : this.#rowOf[copies[i + 1]!]! * slots;
      for (let slot = 0; slot < slots; slot++) rows[to + slot] = from < 0 ? -1 : rows[from + slot]!;
    }
  }

  /** The table entry of a transition that was not asked before; `unknown` when there is no room for its state. */
  #findTransition(state: number, runeClass: number): number {
    const from = this.#stateList[state / this.#stride]!;
    const atEnd = runeClass === this.#stride - 1;
    const context = atEnd ? Context.text : this.#program.classes.contexts[runeClass]!;
    const transition = this.#step(from, atEnd ? -1 : runeClass, emptyConditions(from.context, context));
    const matched = from.matched || transition.match !== null;
    let next = dead;
    if (!atEnd && (transition.pcs.length > 0 || !(matched || this.#program.anchored))) {
      next = this.#stateOf(transition.pcs, context, matched);
      if (next === unknown) return unknown;
    }
    const step = this.#compileStep(transition, from.pcs.length, next);
    const entry = this.#isSilent(step, state, from) ? next : -2 - (this.#steps.push(step) - 1);
    this.#table[state + runeClass] = entry;
    return entry;
  }

  /** A match need not be recorded on a loop of a state that will record a later one whatever follows. */
  #isSilent(step: Step, state: number, from: State): boolean {
    if (step.next === dead || !step.keepsRows) return false;
    return step.match === null || (step.next === state && from.alwaysMatches);
  }

  #compileStep(transition: Transition, threads: number, next: number): Step {
    const { pcs, sources, match } = transition;
    const sets: number[] = [];
    transition.sets.forEach((set, thread) => {
      for (const slot of slotsOf(set)) sets.push(thread, slot);
    });
    const stays = this.#slots === 0 || sources.every((source, thread) => source === thread);
    const places = Math.max(threads, pcs.length);
    if (places > this.#rowOf.length) this.#growRows(places * 2);
    const moves = stays ? null : planMoves(sources, places);
    return {
      next,
      keepsRows: stays && sets.length === 0,
      places: moves?.places ?? null,
      copies: moves?.copies ?? nothing,
      sets: Int32Array.from(sets),
      match: match === null ? null : { source: match.source, sets: Int32Array.from(slotsOf(match.sets)) },
    };
  }

  #growRows(count: number): void {
    const { length } = this.#rowOf;
    const rows = this.#rows;
    const rowOf = this.#rowOf;
    this.#rows = new Int32Array(count * this.#slots);
    this.#rows.set(rows);
    this.#rowOf = Int32Array.from({ length: count }, (_, place) => (place < length ? rowOf[place]! : place));
    this.#oldRowOf = new Int32Array(count);
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

  /** Follows one thread through instructions that take no character, as RE2's machine does, and over the character. */
  #follow(
    start: number,
    source: number,
    runeClass: number,
    conditions: number,
    transition: Transition,
  ): void {
    const { op, out, arg, classes, matcher } = this.#program;
    const waiting: number[] = [start];
    const waitingSets: (CaptureSet | null)[] = [null];
    while (waiting.length > 0) {
      const pc = waiting.pop()!;
      const sets = waitingSets.pop()!;
      if (this.#visited[pc] === this.#visit) continue;
      this.#visited[pc] = this.#visit;
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
          return;
        default:
          if (runeClass < 0 || classes.matches[matcher[pc]! * classes.count + runeClass] === 0) break;
          // A thread of lower priority at the same instruction would never get past it.
          if (this.#reached[out[pc]!] === this.#visit) break;
          this.#reached[out[pc]!] = this.#visit;
          transition.pcs.push(out[pc]!);
          transition.sources.push(source);
          transition.sets.push(sets);
      }
    }
  }

  /** First table entry of a state, made where it is new; `unknown` when there is no room for it. */
  #stateOf(pcs: readonly number[], context: number, matched: boolean): number {
    const key = `${matched ? '+' : '-'}${context}:${pcs.join()}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const base = this.#stateList.length * this.#stride;
    const full = base + this.#stride > tableEntriesMax || this.#threads + pcs.length > threadsMax;
    if (full && base > 0) return unknown;
    if (base + this.#stride > this.#table.length) this.#growTable(base + this.#stride);
    const state: State = { pcs: Int32Array.from(pcs), context, matched, alwaysMatches: false };
    const alwaysMatches = this.#step(state, -1, 0).match !== null;
    this.#stateList.push({ ...state, alwaysMatches });
    this.#states.set(key, base);
    this.#threads += pcs.length;
    return base;
  }

  #growTable(entries: number): void {
    const table = this.#table;
    this.#table = new Int32Array(Math.max(entries, Math.min(table.length * 2, tableEntriesMax), 1024)).fill(
      unknown,
    );
    this.#table.set(table);
  }

  /** Forgets all states, `bytes` into a line. */
  #forget(bytes: number): void {
    this.#bytesRead += bytes;
    if (this.#bytesRead < bytesPerStateMin * this.#stateList.length) this.#exhausted = true;
    this.#bytesRead = 0;
    this.#states.clear();
    this.#stateList = [];
    this.#threads = 0;
    this.#table = new Int32Array(0);
    this.#steps = [];
  }
}

/**
 * Which rows the threads of the next state get, out of as many `places` as there are: the first thread that goes on from a
 * place keeps its row, others get a copy in a row that is free.
 */
function planMoves(
  sources: readonly number[],
  places: number,
): { places: Int32Array | null; copies: Int32Array } {
  const oldPlace = new Int32Array(places).fill(-1);
  const keeperOf = new Int32Array(places).fill(-1);
  sources.forEach((source, place) => {
    if (source < 0 || keeperOf[source] !== -1) return;
    keeperOf[source] = place;
    oldPlace[place] = source;
  });
  const copies: number[] = [];
  let free = 0;
  for (let place = 0; place < places; place++) {
    if (oldPlace[place] !== -1) continue;
    while (keeperOf[free] !== -1) free++;
    oldPlace[place] = free++;
    const source = sources[place];
    if (source !== undefined) copies.push(place, source < 0 ? -1 : keeperOf[source]!);
  }
  const stays = oldPlace.every((old, place) => old === place);
  return { places: stays ? null : oldPlace, copies: Int32Array.from(copies) };
}

/** For each half of a group (2 g, 2 g + 1) its slot in `captures`, or -1. */
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
function emptyConditions(before: number, after: number): number {
  let conditions = 0;
  if (before === Context.text) conditions |= Empty.beginText | Empty.beginLine;
  if (before === Context.newline) conditions |= Empty.beginLine;
  if (after === Context.text) conditions |= Empty.endText | Empty.endLine;
  if (after === Context.newline) conditions |= Empty.endLine;
  const isBoundary = (before === Context.word) !== (after === Context.word);
  return conditions | (isBoundary ? Empty.wordBoundary : Empty.noWordBoundary);
}

/** The code point of a UTF-8 sequence of `width` (2 to 4) bytes. */
function decodeRune(bytes: Uint8Array, at: number, width: number): number {
  let rune = bytes[at]! & (0xff >> (width + 1));
  for (let i = 1; i < width; i++) rune = (rune << 6) | (bytes[at + i]! & 0x3f);
  return rune;
}
