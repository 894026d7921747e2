/** Limit on the capture positions of all threads together (32 MiB). A line that needs more is given up. */
const positionsMax = 8 * 1024 * 1024;

/** Limit on the numbers that describe which captures one transition sets, two per capture (16 MiB). A line that needs more is given up. */
export const setsMax = 4 * 1024 * 1024;

/** Moving this many numbers costs as much as one step, i.e. following an instruction. */
const movesPerStep = 8;

/** How a transition changes the rows of threads. */
export interface RowChange {
  /** Pairs of a thread and the one whose row is copied to it, -1 for no captures. In their order, a row is replaced once it is not needed. */
  readonly copies: Int32Array;
  /** Pairs of a thread and the capture slot that is set to the position. */
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

/** The capture positions of an automaton's threads: one row of `slots` numbers per thread, in the threads' order of priority. */
export class CaptureRows {
  #rows = new Int32Array(0);

  constructor(private readonly slots: number) {}

  /**
   * Plans the change from a state with `threads` threads to the next one. `sources` has, for each next thread, the thread that it continues,
   * or -1 for a new one. They ascend, and new ones come last. `sets` are pairs as in `RowChange`. Returns null where nothing changes.
   */
  plan(sources: readonly number[], threads: number, sets: readonly number[]): RowChange | null {
    const copies: number[] = [];
    sources.forEach((source, thread) => {
      if (source > thread) copies.push(thread, source);
    });
    for (let thread = sources.length - 1; thread >= 0; thread--)
      if (sources[thread]! < thread) copies.push(thread, sources[thread]!);
    if (copies.length === 0 && sets.length === 0) return null;
    const positions = Math.max(threads, sources.length) * this.slots;
    if (sets.length > setsMax || positions > positionsMax)
      return { copies: new Int32Array(0), sets: new Int32Array(0), cost: Infinity };
    const rows = this.#rows;
    if (positions > rows.length) {
      this.#rows = new Int32Array(Math.min(2 * positions, positionsMax));
      this.#rows.set(rows);
    }
    const cost = ((copies.length / 2) * this.slots + sets.length) / movesPerStep;
    return { copies: Int32Array.from(copies), sets: Int32Array.from(sets), cost };
  }

  /** Applies a change at a text position. */
  apply({ copies, sets }: RowChange, at: number): void {
    const rows = this.#rows;
    const { slots } = this;
    for (let i = 0; i < copies.length; i += 2) {
      const to = copies[i]! * slots;
      const from = copies[i + 1]! * slots;
      if (from < 0) for (let slot = 0; slot < slots; slot++) rows[to + slot] = -1;
      else for (let slot = 0; slot < slots; slot++) rows[to + slot] = rows[from + slot]!;
    }
    for (let i = 0; i < sets.length; i += 2) rows[sets[i]! * slots + sets[i + 1]!] = at;
  }

  /** Writes the captures of a match at `at` to `captures`. Returns the cost, in steps as in `RowChange`. */
  keep({ source, sets }: RowMatch, at: number, captures: Int32Array): number {
    const { slots } = this;
    for (let slot = 0; slot < slots; slot++)
      captures[slot] = source < 0 ? -1 : this.#rows[source * slots + slot]!;
    for (let i = 0; i < sets.length; i++) captures[sets[i]!] = at;
    return slots / movesPerStep;
  }
}
