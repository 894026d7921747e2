import type { OrdinalRun } from './manifest.js';

/** Consecutive rows of a row group that have consecutive ordinals. */
export interface PositionedRows<Group> extends OrdinalRun {
  readonly rowGroup: Group;
  /** Index of the first row in the row group. */
  readonly firstRow: number;
}

/** Runs in ascending order of position that never overlap. An array is a valid implementation. */
export interface RunList<Group> extends Iterable<PositionedRows<Group>> {
  readonly length: number;
  /** The run at `index`; a negative index counts from the end. */
  at(index: number): PositionedRows<Group> | undefined;
}

/** Two lists of runs, where all runs of the second follow those of the first. */
export class JoinedRuns<Group> implements RunList<Group> {
  readonly length: number;

  constructor(
    private readonly first: RunList<Group>,
    private readonly second: RunList<Group>,
  ) {
    this.length = first.length + second.length;
  }

  at(index: number): PositionedRows<Group> | undefined {
    const place = index < 0 ? this.length + index : index;
    if (place < 0) return undefined;
    const before = this.first.length;
    return place < before ? this.first.at(place) : this.second.at(place - before);
  }

  *[Symbol.iterator](): Iterator<PositionedRows<Group>> {
    for (const runs of [this.first, this.second]) for (const run of runs) yield run;
  }
}

/** Compares runs by position, ascending. Runs of live files never overlap. */
export function compareRuns(a: OrdinalRun, b: OrdinalRun): number {
  return a.partition - b.partition || a.firstOrdinal - b.firstOrdinal;
}
