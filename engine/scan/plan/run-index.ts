import type { RowGroup, SnapshotRuns } from '../../store/reading/snapshot.js';

const indexes = new WeakMap<SnapshotRuns, RunIndex>();

/** The index of a snapshot's runs. It is made once and shared by all queries on the same state. */
export function indexOfRuns(runs: SnapshotRuns): RunIndex {
  let index = indexes.get(runs);
  if (index === undefined) {
    index = new RunIndex(runs);
    indexes.set(runs, index);
  }
  return index;
}

/** Indices of runs. */
type RunNumbers = readonly number[] | Uint32Array;

const noRuns: RunNumbers = [];

/** Row groups with more runs than this keep the indices in a `Uint32Array`, at four bytes each. */
const numbersMax = 64;

/**
 * Prefix sums over the runs of a snapshot. With them the time to plan a query hardly depends on the number of runs. Each array has one
 * element more than there are runs; element `i` is about the runs before run `i`.
 */
export class RunIndex {
  /** Number of rows in the runs before each run. */
  readonly #rowsBefore: Float64Array;
  /** Number of row groups whose first run is before each run. */
  readonly #begunBefore: Uint32Array;
  /** Number of row groups whose last run is before each run. */
  readonly #endedBefore: Uint32Array;
  /** Number of runs in the far tier before each run; null where no run is there. */
  readonly #farBefore: Uint32Array | null;
  /** Indices of the runs of each row group, ascending. */
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

  /** Number of rows in the runs [first, end). */
  rows(first: number, end: number): number {
    return this.#rowsBefore[end]! - this.#rowsBefore[first]!;
  }

  /** Whether one of the runs [first, end) is in the far tier. */
  hasFar(first: number, end: number): boolean {
    const before = this.#farBefore;
    return before !== null && first < end && before[end]! > before[first]!;
  }

  /** Number of row groups with a run in [first, end), plus those that have runs on both sides of it and none inside. */
  rowGroups(first: number, end: number): number {
    return end <= first ? 0 : this.#begunBefore[end]! - this.#endedBefore[first]!;
  }

  /** Indices of the row group's runs within [first, end), ascending. */
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

/** Index of the first of the ascending `values` that is not less than `value`; their length where there is none. */
export function lowerBound(values: readonly number[] | Uint16Array | Uint32Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
