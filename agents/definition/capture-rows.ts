/** Limit on the capture positions of all threads together (32 MiB). A line that needs more is given up. */
const positionsMax = 8 * 1024 * 1024;

/** Limit on the numbers that describe which captures one transition sets, two per capture (16 MiB). A line that needs more is given up. */
export const setsMax = 4 * 1024 * 1024;

/** Moving this many numbers costs as much as one step, i.e. following an instruction. */
const movesPerStep = 8;

/** How a transition changes the rows of threads. */
export interface RowChange {
  /** For each place, the old place whose row it takes over; null where all rows stay. */
  readonly places: Int32Array | null;
  /** For new threads: pairs of a place and the place whose captures are copied to it, -1 for no captures. */
  readonly copies: Int32Array;
  /** Pairs of a place and the capture slot that is set to the position. */
  readonly sets: Int32Array;
  /** Cost in steps (instructions followed); infinite for a change that needs too much memory and can't be applied. */
  readonly cost: number;
}

/** The captures of a thread that has reached the end of the pattern. */
export interface RowMatch {
  /** Place of the thread; -1 for a thread that started at this position. */
  readonly source: number;
  /** Capture slots that are set to the position. */
  readonly sets: Int32Array;
}

/**
 * The capture positions of an automaton's threads: one row of `slots` numbers per thread. A thread is identified by its
 * place, an index into a permutation of the rows, so that reordering threads need not move their rows.
 */
export class CaptureRows {
  #rows = new Int32Array(0);
  /** Index of the row of the thread at each place; a permutation of all rows. */
  #rowOf = new Int32Array(0);
  #oldRowOf = new Int32Array(0);

  constructor(private readonly slots: number) {}

  /**
   * Plans the change from a state with `threads` threads to the next one. `sources` has, for each next thread, the place of
   * the thread that it continues, or -1 for a new one. `sets` are pairs as in `RowChange`. Returns null where nothing
   * changes.
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

  /** Applies a change at a text position. */
  apply({ places, copies, sets }: RowChange, at: number): void {
    if (places !== null) this.#movePlaces(places);
    if (copies.length > 0) this.#copyRows(copies);
    const rows = this.#rows;
    const rowOf = this.#rowOf;
    const slots = this.slots;
    for (let i = 0; i < sets.length; i += 2) rows[rowOf[sets[i]!]! * slots + sets[i + 1]!] = at;
  }

  /** Writes the captures of a match at `at` to `captures`. Returns the cost, in steps as in `RowChange`. */
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

  /** Allocates rows for this many threads. Returns false where they need too much memory. */
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
 * Assigns rows to the threads of the next state. The first thread that continues a place keeps its row; others get a free
 * row with a copy.
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
