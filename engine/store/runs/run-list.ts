/** Rows of a row group that follow one another, and whose positions do too. */
export interface PositionedRows<Group> {
  readonly rowGroup: Group;
  /** First row in the row group. */
  readonly firstRow: number;
  readonly rows: number;
  readonly partition: number;
  readonly firstOrdinal: number;
}

/** Runs that ascend by position and never overlap. An array of them is one. */
export interface RunList<Group> extends Iterable<PositionedRows<Group>> {
  readonly length: number;
  /** The run of a number; counted from the end where it is negative. */
  at(index: number): PositionedRows<Group> | undefined;
}

/** Two lists of runs, of which all of the second stand behind the first. */
export class JoinedRuns<Group> implements RunList<Group> {
  readonly length: number;
  readonly #first: RunList<Group>;
  readonly #second: RunList<Group>;

  constructor(first: RunList<Group>, second: RunList<Group>) {
    this.#first = first;
    this.#second = second;
    this.length = first.length + second.length;
  }

  at(index: number): PositionedRows<Group> | undefined {
    const place = index < 0 ? this.length + index : index;
    if (place < 0) return undefined;
    const before = this.#first.length;
    return place < before ? this.#first.at(place) : this.#second.at(place - before);
  }

  *[Symbol.iterator](): Iterator<PositionedRows<Group>> {
    yield* this.#first;
    yield* this.#second;
  }
}

/** Compares runs by their positions. */
export function compareByPosition(a: PositionedRows<unknown>, b: PositionedRows<unknown>): number {
  return a.partition - b.partition || a.firstOrdinal - b.firstOrdinal;
}
