import { highHalf, hourMs, lowHalf } from '../core/cursor.js';
import type { LinePart } from '../scan/json-lines.js';
import { partsOf, positionIn } from '../scan/json-lines.js';
import type { WrittenFields } from '../scan/json-columns.js';
import { rangeOfRun, planScan, type ScanPlan } from '../scan/plan.js';
import type { Matches } from '../scan/selection.js';
import type { RowGroup, SnapshotRun, SnapshotRuns } from '../store/reading/snapshot.js';
import type { ClockSpan, Clocks } from './clocks.js';
import type { Gap } from './known-gaps.js';

/** Index of the run that has a record at a position, or of the first one after it. */
function runAt(runs: SnapshotRuns, partition: number, ordinal: number): number {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const run = runs.at(middle)!;
    const isLeft =
      run.partition < partition || (run.partition === partition && run.firstOrdinal + run.rows <= ordinal);
    if (isLeft) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** An agent's matches in the order of their positions, each with its clock. */
export class AgentStream {
  /** The current match: its hour (Infinity at the end), clock, ordinal, row and row group. */
  hour = Infinity;
  clock = 0;
  ordinal = 0;
  row = 0;
  rowGroup: RowGroup | null = null;
  #parts: LinePart[] = [];
  #part: LinePart | null = null;
  /** Index in the part. */
  #at = 0;
  #span: ClockSpan | null = null;
  #run: SnapshotRun | null = null;

  constructor(
    readonly written: WrittenFields,
    private readonly found: AsyncIterator<Matches, void> | null,
    private readonly clocks: Clocks,
  ) {}

  /** Moves to the next match without a wait; false where `next` has to. */
  step(): boolean {
    const part = this.#part;
    if (part === null || this.#at + 1 >= part.end) return false;
    this.#at++;
    if (this.#look(part)) return true;
    this.#at--;
    return false;
  }

  async next(): Promise<void> {
    if (this.#part !== null && ++this.#at >= this.#part.end) this.#part = null;
    while (this.#part === null) {
      this.#part = this.#parts.shift() ?? null;
      if (this.#part !== null) {
        this.#at = this.#part.first;
        break;
      }
      const result = await this.found?.next();
      if (result === undefined || result.done === true) {
        this.hour = Infinity;
        this.rowGroup = null;
        return;
      }
      this.rowGroup = result.value.unit.rowGroup;
      this.#parts = [...partsOf(result.value)];
    }
    const part = this.#part;
    if (this.#look(part)) return;
    const { partition, ordinal } = positionIn(part, this.#at);
    const { runs } = this.clocks;
    const index = runAt(runs, partition, ordinal);
    this.#run = runs.at(index)!;
    this.#span = await this.clocks.spanOf(index, ordinal - this.#run.firstOrdinal);
    this.#look(part);
  }

  /** Takes the match of the part; false where its clock is not in the span. */
  #look({ rows, partition, ordinalOfRow0 }: LinePart): boolean {
    const row = rows === null ? this.#at : rows[this.#at]!;
    const ordinal = ordinalOfRow0 + row;
    this.row = row;
    this.ordinal = ordinal;
    this.hour = partition;
    const [span, run] = [this.#span, this.#run];
    if (span === null || run?.partition !== partition) return false;
    const inRun = ordinal - run.firstOrdinal;
    if (inRun < span.from || inRun >= span.end) return false;
    this.clock = span.clock(inRun);
    return true;
  }

  async close(): Promise<void> {
    await this.found?.return?.();
  }
}

/**
 * The last record of an agent, matching or not, that stands before a place in the order. The place only moves forward. A place is an hour, and
 * the latest clock of records of this agent that stand before it: clocks are whole milliseconds, so that is 1 less where other agents come first.
 */
export class AgentCut {
  /** The position of that record, or of a later one that was passed before, as the halves of its cursor. */
  high: number;
  low: number;
  /** A place at or before the next record: no record is passed on the way to an earlier one. */
  hour = 0;
  clock = -1;
  readonly #plan: ScanPlan;
  /** The next record: its run, and its index in the run. */
  #run: number;
  #row = 0;
  /** Of the run: its partition, its first ordinal, and the end of the rows within the bounds. */
  #partition = 0;
  #firstOrdinal = 0;
  #end = 0;
  #span: ClockSpan | null = null;

  constructor(
    private readonly clocks: Clocks,
    bounds: Gap,
  ) {
    this.#plan = planScan(clocks.runs, { ...bounds, limit: 0, predicates: [] });
    const { partition, ordinal } = bounds.after;
    this.low = lowHalf(ordinal);
    this.high = highHalf(partition, ordinal);
    this.#run = this.#plan.first;
    this.#enter(this.#run);
  }

  /** Moves to a place that is not earlier, if the clocks on the way are at hand; else returns false, and `move` has to. */
  step(hour: number, clock: number): boolean {
    const span = this.#span;
    if (span === null || hour !== this.hour) return false;
    const row = span.firstLater(this.#row, clock);
    if (row >= span.end || row >= this.#end) return false;
    this.#pass(row);
    this.clock = span.clock(row);
    return true;
  }

  async move(hour: number, clock: number): Promise<void> {
    const { runs } = this.clocks;
    while (this.#run < this.#plan.end) {
      if (this.#partition < hour) {
        const last = Math.min(this.#plan.end, runAt(runs, hour, 0)) - 1;
        if (last > this.#run) this.#enter(last);
        this.#leave();
        continue;
      }
      this.hour = this.#partition;
      this.clock = this.#partition * hourMs;
      if (this.#partition > hour) return;
      this.clock = await this.clocks.startOf(this.#run);
      if (this.clock > clock) return;
      if ((await this.clocks.endOf(this.#run)) <= clock) {
        this.#leave();
        continue;
      }
      const span = await this.clocks.spanOf(this.#run, this.#row);
      const end = Math.min(span.end, this.#end);
      const row = Math.min(end, span.firstLater(this.#row, clock));
      this.#pass(row);
      if (row === this.#end) this.#leave();
      else if (row < end) {
        this.#span = span;
        this.clock = span.clock(row);
        return;
      }
    }
    this.hour = Infinity;
  }

  /** Goes to the first row of a run that is within the bounds. */
  #enter(run: number): void {
    this.#run = run;
    this.#span = null;
    const range = run < this.#plan.end ? rangeOfRun(this.#plan, run) : null;
    if (range === null) return;
    this.#partition = range.partition;
    this.#firstOrdinal = this.clocks.runs.at(run)!.firstOrdinal;
    this.#row = range.firstOrdinal - this.#firstOrdinal;
    this.#end = this.#row + range.rows;
  }

  #leave(): void {
    this.#pass(this.#end);
    this.#enter(this.#run + 1);
  }

  #pass(row: number): void {
    if (row <= this.#row) return;
    this.#row = row;
    const ordinal = this.#firstOrdinal + row - 1;
    this.low = lowHalf(ordinal);
    this.high = highHalf(this.#partition, ordinal);
  }
}
