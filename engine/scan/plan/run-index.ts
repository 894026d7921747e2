import type { RowGroup, SnapshotRuns } from '../../store/reading/snapshot.js';

const indexes = new WeakMap<SnapshotRuns, RunIndex>();

/** The index of a snapshot's runs, made once for all queries that see the same state. */
export function indexOfRuns(runs: SnapshotRuns): RunIndex {
  let index = indexes.get(runs);
  if (index === undefined) {
    index = new RunIndex(runs);
    indexes.set(runs, index);
  }
  return index;
}

/** Numbers of runs. */
type RunNumbers = readonly number[] | Uint32Array;

const noRuns: RunNumbers = [];

/** A row group of more runs has their numbers in an array of four bytes each. */
const numbersMax = 64;

/** Sums over the runs before each run. With them planning takes about the same time however many runs there are. A run is named by its index. */
export class RunIndex {
  /** Rows of the runs before each run; one more than there are runs. */
  readonly #rowsBefore: Float64Array;
  /** Row groups whose first run stands before each run; one more than there are runs. */
  readonly #begunBefore: Uint32Array;
  /** Row groups whose last run stands before each run; one more than there are runs. */
  readonly #endedBefore: Uint32Array;
  /** Runs in the far tier before each run; null where there are none. */
  readonly #farBefore: Uint32Array | null;
  /** Ascending. */
  readonly #runsOf = new Map<RowGroup, RunNumbers>();

  constructor(runs: SnapshotRuns) {
    this.#rowsBefore = new Float64Array(runs.length + 1);
    this.#begunBefore = new Uint32Array(runs.length + 1);
    this.#endedBefore = new Uint32Array(runs.length + 1);
    const runsOf = new Map<RowGroup, number[]>();
    for (let i = 0; i < runs.length; i++) {
      const { rowGroup, rows } = runs.at(i)!;
      this.#rowsBefore[i + 1] = this.#rowsBefore[i]! + rows;
      const known = runsOf.get(rowGroup);
      this.#begunBefore[i + 1] = this.#begunBefore[i]! + (known === undefined ? 1 : 0);
      if (known === undefined) runsOf.set(rowGroup, [i]);
      else known.push(i);
    }
    this.#farBefore = farBefore(runs);
    for (const [rowGroup, places] of runsOf) {
      this.#endedBefore[places.at(-1)! + 1]! += 1;
      this.#runsOf.set(rowGroup, places.length > numbersMax ? Uint32Array.from(places) : places);
    }
    for (let i = 0; i < runs.length; i++) this.#endedBefore[i + 1]! += this.#endedBefore[i]!;
  }

  /** Rows of the runs [first, end). */
  rows(first: number, end: number): number {
    return this.#rowsBefore[end]! - this.#rowsBefore[first]!;
  }

  /** Whether one of the runs [first, end) is in the far tier. */
  hasFar(first: number, end: number): boolean {
    const before = this.#farBefore;
    return before !== null && first < end && before[end]! > before[first]!;
  }

  /** Row groups whose runs reach into [first, end): all that have one there, and those that have some on either side. */
  rowGroups(first: number, end: number): number {
    return end <= first ? 0 : this.#begunBefore[end]! - this.#endedBefore[first]!;
  }

  /** The row group's runs within [first, end), ascending. */
  runsOf(rowGroup: RowGroup, first: number, end: number): RunNumbers {
    const runs = this.#runsOf.get(rowGroup) ?? noRuns;
    const from = lowerBound(runs, first);
    const to = lowerBound(runs, end);
    return from === 0 && to === runs.length ? runs : runs.slice(from, to);
  }
}

function farBefore(runs: SnapshotRuns): Uint32Array | null {
  let before: Uint32Array | null = null;
  for (let i = 0; i < runs.length; i++) {
    const isFar = runs.at(i)!.rowGroup.far !== undefined;
    if (isFar) before ??= new Uint32Array(runs.length + 1);
    if (before !== null) before[i + 1] = before[i]! + (isFar ? 1 : 0);
  }
  return before;
}

/** Index of the first of the ascending values that is not below `value`. */
function lowerBound(values: RunNumbers, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
