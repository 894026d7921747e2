import { stableOrder } from '../../core/arrays.js';
import { assert } from '../../core/errors.js';
import { compareRuns, JoinedRuns, type PositionedRows, type RunList } from './run-list.js';

/** Runs as one array for each value: 24 bytes per run, a third of what objects take. */
interface Columns {
  /** Index of the row group. */
  readonly group: Uint32Array;
  readonly firstRow: Uint32Array;
  readonly rows: Uint32Array;
  readonly partition: Uint32Array;
  readonly firstOrdinal: Float64Array;
}

function newColumns(length: number): Columns {
  return {
    group: new Uint32Array(length),
    firstRow: new Uint32Array(length),
    rows: new Uint32Array(length),
    partition: new Uint32Array(length),
    firstOrdinal: new Float64Array(length),
  };
}

/** Runs without an object for each. Rows that are in no order of time have millions of runs. */
class RunColumns<Group> implements RunList<Group> {
  constructor(
    readonly length: number,
    private readonly columns: Columns,
    private readonly groups: readonly Group[],
  ) {}

  at(index: number): PositionedRows<Group> | undefined {
    const place = index < 0 ? this.length + index : index;
    if (place < 0 || place >= this.length) return undefined;
    const { group, firstRow, rows, partition, firstOrdinal } = this.columns;
    return {
      rowGroup: this.groups[group[place]!]!,
      firstRow: firstRow[place]!,
      rows: rows[place]!,
      partition: partition[place]!,
      firstOrdinal: firstOrdinal[place]!,
    };
  }

  *[Symbol.iterator](): Iterator<PositionedRows<Group>> {
    for (let i = 0; i < this.length; i++) yield this.at(i)!;
  }
}

/** Collects a known number of runs, in any order. */
export class RunColumnsBuilder<Group> {
  readonly #columns: Columns;
  readonly #groups: Group[] = [];
  readonly #numbers = new Map<Group, number>();
  #length = 0;

  /** @param capacity number of runs that will be added */
  constructor(private readonly capacity: number) {
    this.#columns = newColumns(capacity);
  }

  add({ rowGroup, firstRow, rows, partition, firstOrdinal }: PositionedRows<Group>): void {
    const columns = this.#columns;
    const at = this.#length++;
    columns.group[at] = this.#numberOf(rowGroup);
    columns.firstRow[at] = firstRow;
    columns.rows[at] = rows;
    columns.partition[at] = partition;
    columns.firstOrdinal[at] = firstOrdinal;
  }

  #numberOf(rowGroup: Group): number {
    const known = this.#numbers.get(rowGroup);
    if (known !== undefined) return known;
    this.#numbers.set(rowGroup, this.#groups.length);
    return this.#groups.push(rowGroup) - 1;
  }

  /** The runs, sorted by position. */
  finish(): RunList<Group> {
    assert(this.#length === this.capacity, 'as many runs have come as were to come');
    const order = orderOf(this.#columns);
    const columns = order === null ? this.#columns : taken(this.#columns, order);
    return new RunColumns(this.#length, columns, this.#groups);
  }
}

/** The indexes of the runs in ascending order of position; null if they ascend already. Takes linear time if the runs of each partition ascend. */
function orderOf({ partition, firstOrdinal }: Columns): Uint32Array | null {
  const { length } = partition;
  const isBehind = (a: number, b: number): boolean =>
    partition[b]! > partition[a]! || (partition[b] === partition[a] && firstOrdinal[b]! > firstOrdinal[a]!);
  let next = 1;
  while (next < length && isBehind(next - 1, next)) next++;
  if (next >= length) return null;
  const order = stableOrder(partition);
  for (let from = 0, to = 0; from < length; from = to) {
    while (to < length && partition[order[to]!] === partition[order[from]!]) to++;
    const some = order.subarray(from, to);
    if (some.some((run, i) => i > 0 && !isBehind(some[i - 1]!, run)))
      some.sort((a, b) => firstOrdinal[a]! - firstOrdinal[b]!);
  }
  return order;
}

function taken(columns: Columns, order: Uint32Array): Columns {
  const result = newColumns(order.length);
  order.forEach((run, i) => {
    result.group[i] = columns.group[run]!;
    result.firstRow[i] = columns.firstRow[run]!;
    result.rows[i] = columns.rows[run]!;
    result.partition[i] = columns.partition[run]!;
    result.firstOrdinal[i] = columns.firstOrdinal[run]!;
  });
  return result;
}

/** Merges two lists of runs. Two arrays become one array. Other lists are joined without a copy if one follows the other, else copied. */
export function mergeRuns<Group>(a: RunList<Group>, b: RunList<Group>): RunList<Group> {
  if (a.length === 0) return b;
  if (b.length === 0) return a;
  if (Array.isArray(a) && Array.isArray(b)) {
    const runs: PositionedRows<Group>[] = [];
    mergeInto<Group>(a, b, (run) => runs.push(run));
    return runs;
  }
  if (compareRuns(a.at(-1)!, b.at(0)!) < 0) return new JoinedRuns(a, b);
  if (compareRuns(b.at(-1)!, a.at(0)!) < 0) return new JoinedRuns(b, a);
  const columns = new RunColumnsBuilder<Group>(a.length + b.length);
  mergeInto(a, b, (run) => columns.add(run));
  return columns.finish();
}

function mergeInto<Group>(
  a: RunList<Group>,
  b: RunList<Group>,
  add: (run: PositionedRows<Group>) => void,
): void {
  let i = 0;
  for (const run of b) {
    for (; i < a.length && compareRuns(a.at(i)!, run) < 0; i++) add(a.at(i)!);
    add(run);
  }
  for (; i < a.length; i++) add(a.at(i)!);
}
