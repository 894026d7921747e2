import type { RecordEvents } from './record-events.js';

/** A part of what a reading has found; null ends the reading. */
export interface LogEntry {
  /** Counts the readings of a group, from 1 on. */
  readonly reading: number;
  readonly events: RecordEvents | null;
}

/** Counts what all logs hold. */
export interface LogBudget {
  bytes: number;
}

/** What the readings of a group have found, for as long as one of its followers has not taken it. Entries are counted from 0 on. */
export class EventLog {
  readonly #budget: LogBudget;
  #entries: LogEntry[] = [];
  /** The first entry that is still there, and the one that comes next. */
  #first = 0;
  #bytes = 0;

  constructor(budget: LogBudget) {
    this.#budget = budget;
  }

  get first(): number {
    return this.#first;
  }

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

  /** An entry that is still there. */
  at(index: number): LogEntry {
    return this.#entries[index - this.#first]!;
  }

  /** Drops the entries before `end`. */
  dropBefore(end: number): void {
    const dropped = this.#entries.splice(0, end - this.#first);
    this.#first += dropped.length;
    for (const { events } of dropped) this.#count(-(events?.bytes.length ?? 0));
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }
}
