import { alignedBytes } from '../core/allocator.js';
import { openScratch, scratchBytes, type Scratch, type TypedArray } from '../core/scratch.js';
import { kernelsOver, type Kernels } from '../kernels/kernels.js';
import { PatternPositions } from './pattern-positions.js';
import { conditionsBetween, Context, type PatternProgram } from './pattern-program.js';

/** Limits on states and on the table of their transitions: 3 MiB. Beyond, the states are dropped and computed again as texts need them. */
const statesMax = 4096;
const tableEntriesMax = 128 * 1024;

/**
 * If the states are dropped before they have read this many bytes each on average, the pattern has too many states to keep them: computing
 * one takes as long as following all positions over some hundred bytes.
 */
const bytesPerStateMin = 512;

/** Bytes that one step reads, by the transition table and without it: a few milliseconds. */
const stepBytes = { kept: 1024 * 1024, followed: 64 * 1024 } as const;

/** Transitions that one step computes: a few milliseconds. */
const stepTransitionsMax = 1024;

/** Entries of the transition table that are no states. The kernel `searchStates` has the same. */
const unknown = -1;
const matched = -2;
const failed = -3;
const beyondAscii = -4;

/** Results of `searchStates`. From `missing` on: the class for which a transition is missing. */
const allDone = 0;
const atBytesEnd = 1;
const missing = 2;

/** Words of the plan that the kernels read. The first are the place of a search: four lanes with a row each, and the next row. */
const word = {
  row: 0,
  at: 1,
  state: 2,
  next: 16,
  read: 17,
  lane: 18,
  bytes: 19,
  bits: 21,
  accepts: 29,
  wirings: 30,
  active: 32,
  set: 33,
} as const;
const planWords = 34;
const placeWords = 17;
const lanes: readonly number[] = [0, 4, 8, 12];

/** Patterns that a thread remembers: those of the queries that run, and of pages that ask again. */
const keptMax = 16;

/** What is kept for a key; made if it is not, and then another is forgotten where there are too many. */
export function kept<T>(cache: Map<string, T>, key: string, make: () => T): T {
  const value = cache.get(key) ?? make();
  cache.delete(key);
  cache.set(key, value);
  const [oldest] = cache.keys();
  if (cache.size > keptMax) cache.delete(oldest!);
  return value;
}

const searches = new Map<string, PatternSearch>();

/** The search for a pattern, whose states the thread keeps. Throws `invalid` for a pattern that is too large. */
export function patternSearch({ text, program }: { text: string; program: PatternProgram }): PatternSearch {
  return kept(searches, text, () => new PatternSearch(program));
}

/** The strings of a column: row r is bytes[offsets[r], offsets[r + 1]), which must be UTF-8. */
export interface Texts {
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** What is in the kernels' memory during a step. */
interface Placed {
  readonly scratch: Scratch;
  readonly kernels: Kernels;
  readonly plan: Uint32Array;
  readonly table: Int32Array;
}

/**
 * Finds the texts that match a pattern anywhere, in time linear in the texts: by a deterministic automaton whose states are computed as texts
 * need them. Where there are too many of them, all positions of the pattern are followed over each character instead. A match needs no
 * captures, so a text is read only up to its first match.
 *
 * Conditions (`^`, `\b`, …) depend on the character after a place, so a match is known with the character after it, or with the end of the
 * text, which has a class of its own.
 */
export class PatternSearch {
  readonly #program: PatternProgram;
  /** Words of a set of positions. */
  readonly #setWords: number;
  /** What the kernel reads and does not depend on texts, and where the parts are in it, in bytes. */
  readonly #block: Uint32Array;
  readonly #partsAt: readonly number[];
  readonly #stride: number;
  #table = new Int32Array(0);
  readonly #states = new Map<string, number>();
  /** By state: its positions, and the context of the character before it. */
  #active: Uint32Array[] = [];
  #contexts: number[] = [];
  #bytesRead = 0;
  #isExhausted = false;

  /** Throws `invalid` for a pattern that is too large. */
  constructor(program: PatternProgram) {
    const { classes } = program;
    const positions = new PatternPositions(program);
    this.#program = program;
    this.#setWords = positions.words;
    // A column for each class, one for the end of a text, and one for bytes beyond ASCII, as their classes depend on several of them.
    this.#stride = classes.count + 2;
    const columns = new Uint16Array(256).fill(4 * (classes.count + 1));
    classes.ofAscii.forEach((each, code) => (columns[code] = 4 * each));
    const parts = [columns, classes.intervals, classes.ofInterval, classes.contexts, positions.accepts];
    [this.#block, this.#partsAt] = joinParts([...parts, wiringsOf(positions)]);
  }

  /** Whether the pattern has too many states to keep them. */
  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  /**
   * Clears the bits of the rows [from, to) that don't match, where they are set. Yields after each few milliseconds of work. `from` must be
   * a multiple of 8.
   */
  *narrow(texts: Texts, bits: Uint8Array, from: number, to: number): Generator<undefined, void> {
    const place = placeAt(from, to);
    const active = new Uint32Array(this.#setWords);
    while (!this.#step(texts, bits, to, place, active)) yield;
  }

  /** Goes on from a place, which it moves on. Returns whether all rows are done. */
  #step(texts: Texts, bits: Uint8Array, to: number, place: Uint32Array, active: Uint32Array): boolean {
    const { offsets, bytes } = texts;
    const open = lanes.filter((lane) => place[lane + word.row]! < to);
    const row = firstOpen(place);
    const start = Math.min(offsets[place[word.next]!]!, ...open.map((lane) => place[lane + word.at]!));
    const wasExhausted = this.#isExhausted;
    let bytesEnd = Math.min(offsets[to]!, start + stepBytes[wasExhausted ? 'followed' : 'kept']);
    while (bytesEnd < offsets[to]! && (bytes[bytesEnd]! & 0xc0) === 0x80) bytesEnd--;
    const first = row >> 3;
    const bitsBytes = ((to + 7) >> 3) - first;
    const placed = this.#place(texts, [row, to], [start, bytesEnd], active, bitsBytes);
    const { scratch, kernels, plan } = placed;
    plan.set(place);
    const bitsAt = scratch.copy(bits, first, first + bitsBytes);
    plan[word.bits] = bitsAt - first;
    const search = wasExhausted ? kernels.searchPositions : kernels.searchStates;
    let result = atBytesEnd;
    for (let computed = 0; computed < stepTransitionsMax && this.#isExhausted === wasExhausted; computed++) {
      result = search(plan.byteOffset, to, bytesEnd);
      if (result < missing) break;
      this.#compute(placed, result - missing);
    }
    place.set(plan.subarray(0, placeWords));
    // Rows that are not decided are searched again in the other way.
    if (this.#isExhausted !== wasExhausted) place.set(placeAt(firstOpen(place), to));
    active.set(new Uint32Array(plan.buffer, plan[word.active]!, active.length));
    this.#table = placed.table.slice(0, this.#active.length * this.#stride);
    this.#bytesRead += plan[word.read]!;
    scratch.copyOut(bitsAt, bits, first, bitsBytes);
    return result === allDone;
  }

  #place(
    { offsets, bytes }: Texts,
    [row, to]: readonly [number, number],
    [at, bytesEnd]: readonly [number, number],
    active: Uint32Array,
    bitsBytes: number,
  ): Placed {
    const { classes } = this.#program;
    const tableBytes = 4 * (tableEntriesMax + this.#stride);
    const setBytes = 4 * this.#setWords;
    const scratch = openScratch(
      scratchBytes(bytes, bytesEnd - at) +
        scratchBytes(offsets, to + 1 - row) +
        this.#block.byteLength +
        tableBytes +
        2 * setBytes +
        4 * planWords +
        bitsBytes,
    );
    const blockAt = scratch.copy(this.#block, 0, this.#block.length);
    const [ascii, intervals, ofInterval, contexts, accepts, wirings] = this.#partsAt.map(
      (part) => blockAt + part,
    );
    const tableAt = scratch.reserve(tableBytes);
    const activeAt = scratch.copy(active, 0, active.length);
    const nextAt = scratch.reserve(setBytes);
    const planAt = scratch.reserve(4 * planWords);
    const { buffer } = scratch.view(planAt, 4 * planWords);
    const table = new Int32Array(buffer, tableAt, tableBytes / 4);
    table.set(this.#table);
    if (this.#active.length === 0) this.#stateOf(new Uint32Array(this.#setWords), Context.text, table);
    const plan = new Uint32Array(buffer, planAt, planWords);
    const bytesAt = scratch.place(bytes, at, bytesEnd) - at;
    const offsetsAt = scratch.place(offsets, row, to + 1) - 4 * row;
    const classesAt = [ascii!, intervals!, ofInterval!, classes.intervals.length];
    const sets = [contexts!, accepts!, wirings!, setBytes, activeAt, nextAt];
    plan.set([0, 0, bytesAt, offsetsAt, 0, ...classesAt, tableAt, classes.count, ...sets], word.read);
    return { scratch, kernels: kernelsOver(scratch), plan, table };
  }

  /** Computes the transition by a class from the state of the lane that the plan names. */
  #compute({ kernels, plan, table }: Placed, runeClass: number): void {
    const { classes, anchored } = this.#program;
    const from = plan[(plan[word.lane]! - plan.byteOffset) / 4 + word.state]! / 4;
    const state = from / this.#stride;
    const setBytes = 4 * this.#setWords;
    const isEnd = runeClass === classes.count;
    const context = isEnd ? Context.text : classes.contexts[runeClass]!;
    const activeAt = plan[word.active]!;
    const nextAt = plan[word.set]!;
    const setAt = (at: number): Uint32Array => new Uint32Array(plan.buffer, at, this.#setWords);
    setAt(activeAt).set(this.#active[state]!);
    const wiringsAt = plan[word.wirings]!;
    const wiring = new Uint32Array(plan.buffer, wiringsAt, 16)[4 * this.#contexts[state]! + context]!;
    const acceptsAt = plan[word.accepts]! + (isEnd ? 0 : runeClass * setBytes);
    const isMatch = kernels.followPositions(activeAt, wiringsAt + wiring, acceptsAt, nextAt, setBytes) !== 0;
    const next = setAt(nextAt).slice();
    const isOver = isEnd || (anchored && next.every((each) => each === 0));
    const entry = isMatch ? matched : isOver ? failed : this.#stateOf(next, context, table);
    if (entry === unknown) this.#forget(plan, table);
    else table[from + runeClass] = entry;
  }

  /** First table entry of a state, which is created if it is new; `unknown` where there is no room for it. */
  #stateOf(active: Uint32Array<ArrayBuffer>, context: number, table: Int32Array): number {
    const key = String.fromCharCode(context, ...new Uint16Array(active.buffer));
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const base = this.#active.length * this.#stride;
    if (this.#active.length === statesMax || base + this.#stride > table.length) return unknown;
    table.fill(unknown, base, base + this.#stride);
    table[base + this.#stride - 1] = beyondAscii;
    this.#active.push(active);
    this.#contexts.push(context);
    // States are known by the offset of their row in bytes.
    this.#states.set(key, 4 * base);
    return 4 * base;
  }

  /** Drops all states but those of the lanes. From then on no states are kept where there are too many. */
  #forget(plan: Uint32Array, table: Int32Array): void {
    const [active, contexts] = [this.#active as Uint32Array<ArrayBuffer>[], this.#contexts];
    this.#isExhausted = this.#bytesRead + plan[word.read]! < bytesPerStateMin * active.length;
    this.#bytesRead = plan[word.read] = 0;
    this.#states.clear();
    this.#active = [];
    this.#contexts = [];
    this.#stateOf(new Uint32Array(this.#setWords), Context.text, table);
    for (const lane of lanes) {
      const state = plan[lane + word.state]! / 4 / this.#stride;
      plan[lane + word.state] = this.#stateOf(active[state]!, contexts[state]!, table);
    }
  }
}

/** The place before the rows [row, to). */
function placeAt(row: number, to: number): Uint32Array {
  const place = new Uint32Array(placeWords);
  for (const lane of lanes) place[lane + word.row] = to;
  place[word.next] = row;
  return place;
}

/** The first row that is not decided. */
function firstOpen(place: Uint32Array): number {
  return Math.min(place[word.next]!, ...lanes.map((lane) => place[lane + word.row]!));
}

/** The wirings by the contexts before and after a place, as the kernels read them: where each is behind the first byte, then all of them. */
function wiringsOf(positions: PatternPositions): Uint32Array {
  const contexts = Object.values(Context);
  const all = contexts.flatMap((before) =>
    contexts.map((after) => positions.wiring(conditionsBetween(before, after))),
  );
  const different = [...new Set(all)];
  const [words, at] = joinParts([new Uint32Array(all.length), ...different]);
  words.set(all.map((wiring) => at[1 + different.indexOf(wiring)]!));
  return words;
}

/** Joins arrays, each at a multiple of sixteen bytes. */
function joinParts(parts: readonly TypedArray[]): [words: Uint32Array, partsAt: readonly number[]] {
  let end = 0;
  const partsAt = parts.map((part) => {
    const at = end;
    end += alignedBytes(part.byteLength);
    return at;
  });
  const bytes = new Uint8Array(end);
  parts.forEach((part, i) =>
    bytes.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), partsAt[i]!),
  );
  return [new Uint32Array(bytes.buffer), partsAt];
}
