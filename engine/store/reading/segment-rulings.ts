import { ruling, type Ruling } from '../sealed/filter-probing.js';

/** What is known of the row groups of one segment, for one query. */
export class SegmentRulings {
  readonly #of: Uint8Array;
  #failure: unknown;

  constructor(rowGroups: number) {
    this.#of = new Uint8Array(rowGroups);
  }

  /** What reading the filters has thrown, of those that are `failed`. */
  get failure(): unknown {
    return this.#failure;
  }

  of(rowGroup: number): Ruling {
    return this.#of[rowGroup]! as Ruling;
  }

  set(rowGroup: number, said: Ruling): void {
    this.#of[rowGroup] = said;
  }

  /** Takes what is said of row groups from `said`, which has a ruling for each row group of the segment. */
  take(rowGroups: readonly number[], said: Uint8Array): void {
    for (const rowGroup of rowGroups) this.#of[rowGroup] = said[rowGroup]!;
  }

  /** Notes that the filters of row groups could not be read. Damaged ones are read, and rule nothing out. */
  fail(rowGroups: readonly number[], error: unknown): void {
    this.#failure = error;
    for (const rowGroup of rowGroups) this.#of[rowGroup] = ruling.failed;
  }
}
