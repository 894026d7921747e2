import type { RecordEvents } from './record-events.js';

/** One entry of a group's log: events that a reading has found, or the mark that ends the reading. */
export interface LogEntry {
  /** Number of the reading in its group, from 1; 0 for events that no reading of the group has found. */
  readonly reading: number;
  /** null marks the end of the reading. */
  readonly events: RecordEvents | null;
}

/** Bytes of events that the logs of all groups hold together. */
export interface LogBudget {
  bytes: number;
}

/** The memory that the logs of all groups share. */
export interface LogRoom {
  readonly budget: LogBudget;
  /** Frees memory if the logs hold more than `followLogsBytesMax` together. */
  readonly check: () => void;
}

/**
 * The events that a group's readings have found. An entry is kept until every follower of the group has taken it, or until it is dropped to
 * free memory. Indexes of entries start at 0 and are never reused.
 */
export class EventLog {
  readonly #budget: LogBudget;
  #entries: LogEntry[] = [];
  #first = 0;
  #bytes = 0;

  constructor(budget: LogBudget) {
    this.#budget = budget;
  }

  /** Index of the oldest entry that is kept. */
  get first(): number {
    return this.#first;
  }

  /** Index that the next entry gets. */
  get end(): number {
    return this.#first + this.#entries.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(entry: LogEntry): void {
    this.#entries.push(entry);
    this.#count(entry.events?.bytes.length ?? 0);
  }

  /** The entry with this index, which must still be kept (`first` ≤ index < `end`). */
  at(index: number): LogEntry {
    return this.#entries[index - this.#first]!;
  }

  /** Drops all entries with an index below `end`. */
  dropBefore(end: number): void {
    const dropped = this.#entries.splice(0, end - this.#first);
    this.#first += dropped.length;
    for (const { events } of dropped) this.#count(-(events?.bytes.length ?? 0));
  }

  /** Drops the oldest entries until the log holds at most `bytes`. */
  shrink(bytes: number): void {
    let end = this.#first;
    for (let left = this.#bytes; left > bytes; end++) left -= this.at(end).events?.bytes.length ?? 0;
    this.dropBefore(end);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }
}
