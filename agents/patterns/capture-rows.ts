/** Positions in the rows of all threads at once (32 MiB). A line that needs more is given up. */
const positionsMax = 8 * 1024 * 1024;

/** Numbers that say which captures one transition sets, two for each (16 MiB). A line that needs more is given up. */
export const setsMax = 4 * 1024 * 1024;

/** Moving so many numbers takes as long as following an instruction, which is a step. */
const movesPerStep = 8;

/** What a transition does to the rows of its threads. */
export interface RowChange {
  /** For each place the old place whose row it gets; null when all stay. */
  readonly places: Int32Array | null;
  /** Pairs of a place and the place whose captures it gets a copy of, -1 for none set: threads that are new. */
  readonly copies: Int32Array;
  /** Pairs of a place and a capture half that gets the position. */
  readonly sets: Int32Array;
  /** In steps of an instruction; infinite for a change that takes too much memory, and can't be applied. */
  readonly cost: number;
}

/** The captures of a thread that has reached the end of the pattern. */
export interface RowMatch {
  /** Place of the thread, -1 for one that started here. */
  readonly source: number;
  /** Capture halves that are set at the position. */
  readonly sets: Int32Array;
}

/**
 * Capture positions of the threads of an automaton: a row of `slots` numbers for each. Threads are known by their place, and rows change
 * places where moving them would take longer.
 */
export class CaptureRows {
  #rows = new Int32Array(0);
  /** The row of the thread at each place; a permutation of all rows. */
  #rowOf = new Int32Array(0);
  #oldRowOf = new Int32Array(0);

  constructor(private readonly slots: number) {}

  /**
   * The change by which the threads of a state with so many `threads` become those with these `sources`: the place of the thread that
   * each goes on from, -1 for a new one. `sets` are pairs as in a `RowChange`. Null for no change.
   */
  plan(sources: readonly number[], threads: number, sets: readonly number[]): RowChange | null {
    const stays = sources.every((source, thread) => source === thread);
    if (stays && sets.length === 0) return null;
    const places = Math.max(threads, sources.length);
    if (sets.length > setsMax || !this.#reserve(places)) {
      return { places: null, copies: new Int32Array(0), sets: new Int32Array(0), cost: Infinity };
    }
    const moves = stays ? { places: null, copies: new Int32Array(0) } : planMoves(sources, places);
    const copied = (moves.copies.length / 2) * this.slots;
    const cost = ((moves.places?.length ?? 0) + copied + sets.length) / movesPerStep;
    return { ...moves, sets: Int32Array.from(sets), cost };
  }

  /** Changes the rows at a position. */
  apply({ places, copies, sets }: RowChange, at: number): void {
    if (places !== null) this.#movePlaces(places);
    if (copies.length > 0) this.#copyRows(copies);
    const rows = this.#rows;
    const rowOf = this.#rowOf;
    const slots = this.slots;
    for (let i = 0; i < sets.length; i += 2) rows[rowOf[sets[i]!]! * slots + sets[i + 1]!] = at;
  }

  /** Writes the captures of a match at `at`. Returns what that cost, as the cost of a `RowChange`. */
  keep({ source, sets }: RowMatch, at: number, captures: Int32Array): number {
    const { slots } = this;
    const from = source < 0 ? -1 : this.#rowOf[source]! * slots;
    for (let slot = 0; slot < slots; slot++) captures[slot] = from < 0 ? -1 : this.#rows[from + slot]!;
    for (let i = 0; i < sets.length; i++) captures[sets[i]!] = at;
    return slots / movesPerStep;
  }

  #movePlaces(places: Int32Array): void {
    const rowOf = this.#rowOf;
    const old = this.#oldRowOf;
    for (let place = 0; place < places.length; place++) old[place] = rowOf[place]!;
    for (let place = 0; place < places.length; place++) rowOf[place] = old[places[place]!]!;
  }

  #copyRows(copies: Int32Array): void {
    const { slots } = this;
    const rows = this.#rows;
    for (let i = 0; i < copies.length; i += 2) {
      const to = this.#rowOf[copies[i]!]! * slots;
      const from = copies[i + 1]! < 0 ? -1 : this.#rowOf[copies[i + 1]!]! * slots;
      for (let slot = 0; slot < slots; slot++) rows[to + slot] = from < 0 ? -1 : rows[from + slot]!;
    }
  }

  /** Makes a row for each of so many threads. False where they take too much memory. */
  #reserve(places: number): boolean {
    const { length } = this.#rowOf;
    if (places <= length) return true;
    const most = Math.floor(positionsMax / this.slots);
    if (places > most) return false;
    const count = Math.min(places * 2, most);
    const rows = this.#rows;
    const rowOf = this.#rowOf;
    this.#rows = new Int32Array(count * this.slots);
    this.#rows.set(rows);
    this.#rowOf = Int32Array.from({ length: count }, (_, place) => (place < length ? rowOf[place]! : place));
    this.#oldRowOf = new Int32Array(count);
    return true;
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
