import type { FarRows } from '../far/far-cluster.js';
import type { FarCopy, OrdinalRun } from '../store/manifest/manifest.js';
import type { Position } from '../core/cursor.js';
import { isLogstrataError, LogstrataError } from '../core/errors.js';
import {
  farPartsMax,
  farUnitsOfWriter,
  farWindowRows,
  rowGroupRowsMax,
  searchGrowth,
} from '../core/limits.js';
import type { Schema } from '../core/schema.js';
import type { PreparedPredicates } from './predicate.js';
import type { RowGroupFilter, ScanWork } from './row-group-filter.js';
import { countSelected, type Matches, type Selection } from './selection.js';
import { rangeOfRun, type RowRange, type ScanPlan } from './plan.js';
import { areFiltered, farCondition, findsWholeTexts } from './far-condition.js';
import { askedFields, type FarPage } from './far-page.js';
import { FarStream } from './far-stream.js';

/** Pages per window of an answer without predicates, so that one page is on its way while another is written. */
const pagesOfWindow = 4;

/** What a scan reads from the far tier. */
export interface FarWish {
  readonly schema: Schema;
  readonly predicates: PreparedPredicates;
  /** The fields of matching rows that are read. */
  readonly fields: readonly number[];
}

/** A range of runs whose rows are asked for together, and the streams that answer. */
interface Window {
  /** Covers the runs [first, end) of the plan. Runs among them that are not in the far tier are skipped. */
  readonly first: number;
  readonly end: number;
  readonly streams: ReadonlyMap<string, FarStream>;
}

/** The part of a window that one stream answers, with the positions of its first and last row. */
interface StreamPart {
  readonly far: FarRows;
  readonly copies: Map<string, FarCopy>;
  from: Position;
  to: Position;
  rows: number;
  /** In the direction of the plan. */
  readonly runs: OrdinalRun[];
}

/** Rows of a page that are in one run. */
interface RowSpan {
  readonly from: number;
  readonly to: number;
  readonly hasFurther: boolean;
}

const noRows: RowSpan = { from: 0, to: 0, hasFurther: false };

/**
 * Reads the far runs of a plan in its direction. Neighbouring runs are asked for together as a window: each shard that has rows of them
 * gets one question, all at the same time. With predicates, each window covers more rows than the one before, so that a rare match takes
 * few questions and a frequent one little work.
 */
export class FarReader {
  readonly #selections = new WeakMap<FarPage, Selection>();
  readonly #ending = new AbortController();
  readonly #onAbort = (): void => this.#end(this.work.pace.signal?.reason);
  #windowRows: number;
  #window: Window | null = null;

  constructor(
    private readonly plan: ScanPlan,
    private readonly filter: RowGroupFilter,
    private readonly work: ScanWork,
    private readonly wish: FarWish,
  ) {
    this.#windowRows = farWindowRows * (findsWholeTexts(wish.predicates) ? searchGrowth ** 2 : 1);
    const { signal } = work.pace;
    if (signal?.aborted === true) this.#onAbort();
    else signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Cancels the questions that are pending. */
  close(): void {
    this.work.pace.signal?.removeEventListener('abort', this.#onAbort);
    this.#end(undefined);
  }

  #end(reason: unknown): void {
    this.#ending.abort(
      isLogstrataError(reason) ? reason : new LogstrataError('cancelled', 'the query was cancelled'),
    );
  }

  get #isFiltered(): boolean {
    return areFiltered(this.wish.predicates);
  }

  get #isForward(): boolean {
    return this.plan.direction === 'forward';
  }

  /**
   * Yields the matches of the runs [first, end), which are all far, in the direction of the plan. The matches of a page are given together.
   * They may be more than `limit`, which returns the number of rows that are still wanted.
   */
  async *matches(first: number, end: number, limit: () => number): AsyncGenerator<Matches, void> {
    const runs = this.#runs(first, end);
    let found = 0;
    for (let run = runs.next(); run.done !== true;) {
      const stream = this.#streamOf(run.value.index, limit());
      const page = await stream.page(limit());
      const spans: RowSpan[] = [];
      let isLeft = false;
      // All runs with rows in this page, unless rows of another page come between.
      while (!isLeft && run.done !== true && this.#streamOf(run.value.index, limit()) === stream) {
        const { index, range } = run.value;
        const span = page === null ? noRows : this.#rowsOf(page, range);
        spans.push(span);
        found += span.to - span.from;
        isLeft = !span.hasFurther;
        if (page !== null && isLeft && (this.#isFiltered || found < range.rows)) break;
        // Without predicates every row must be answered. A missing row is an error, so that an answer is never silently short.
        if (!this.#isFiltered && found !== range.rows) throw this.#rowsAt(index).lacking(found, range);
        found = 0;
        run = runs.next();
      }
      if (isLeft) stream.leave();
      const matches = page === null ? null : await this.#matchesOf(page, spans);
      if (matches !== null) yield matches;
      if (limit() <= 0) return;
    }
  }

  /** The runs [first, end) with rows of the plan, in its direction. */
  *#runs(first: number, end: number): Generator<{ readonly index: number; readonly range: RowRange }, void> {
    for (let k = 0; k < end - first; k++) {
      const index = this.#isForward ? first + k : end - 1 - k;
      const range = rangeOfRun(this.plan, index);
      if (range !== null) yield { index, range };
    }
  }

  /** The rows of a page that are in a range. `hasFurther` is true where the page has rows beyond it, so that no later page has rows of it. */
  #rowsOf(page: FarPage, range: RowRange): RowSpan {
    const { partition, firstOrdinal, rows } = range;
    const from = page.rowsBefore(partition, firstOrdinal, false);
    const to = page.rowsBefore(partition, firstOrdinal + rows - 1, true);
    return { from, to, hasFurther: this.#isForward ? to < page.rows : from > 0 };
  }

  /** The matches among spans of a page, given in the direction of the plan; null where there are none. */
  async #matchesOf(page: FarPage, spans: readonly RowSpan[]): Promise<Matches | null> {
    const ascending = this.#isForward ? spans : spans.toReversed();
    const ranges = ascending.flatMap(({ from, to }) => page.ranges(from, to));
    if (ranges.length === 0) return null;
    let selection = this.#selections.get(page);
    if (selection === undefined) {
      const share = { firstRow: 0, endRow: page.rows, units: 1 };
      selection = await this.filter.look(page, share);
      this.#selections.set(page, selection);
    }
    await this.work.pace.pause();
    const take = countSelected(selection, ranges);
    return take === 0 ? null : { unit: { rowGroup: page, ranges }, selection, skip: 0, take };
  }

  /** Where the rows of a run are stored. */
  #rowsAt(index: number): FarRows {
    return this.plan.runs.at(index)!.rowGroup.far!;
  }

  #streamOf(index: number, limit: number): FarStream {
    const { group } = this.#rowsAt(index);
    const window = this.#window;
    const isInside = window !== null && index >= window.first && index < window.end;
    const known = isInside ? window : this.#begin(index, limit);
    this.#window = known;
    return known.streams.get(group)!;
  }

  /** Asks for the window that begins with run `index`. */
  #begin(index: number, limit: number): Window {
    const { parts, last } = this.#partsFrom(index, limit);
    const streams = new Map<string, FarStream>();
    const { schema, predicates, fields } = this.wish;
    const { direction } = this.plan;
    for (const [group, { far, copies, from, to, rows, runs }] of parts) {
      const question = {
        agent: far.agent,
        shard: far.copy?.shard ?? 0,
        copies: [...copies.values()],
        from,
        to,
        direction,
        condition: farCondition(predicates, schema, far.stored),
        predicates: predicates.asked,
        schema: askedFields(fields, schema, far.stored),
        shown: schema,
        expected: this.#isFiltered ? undefined : this.#isForward ? runs : runs.toReversed(),
      };
      // Without predicates no more rows are wanted than the part has live rows. Rows that are no longer live may lie between them; then the
      // stream asks for a further page.
      const wanted = this.#isFiltered ? limit : Math.min(limit, rows);
      const stream = new FarStream(far, question, wanted, this.#ending.signal, ({ bytes }) => {
        this.work.stats.bytesRead += bytes;
      });
      streams.set(group, stream);
    }
    return { first: Math.min(index, last), end: Math.max(index, last) + 1, streams };
  }

  /** The far runs of the window that begins with run `index`, grouped by stream, and the index of the last run. */
  #partsFrom(index: number, limit: number): { parts: Map<string, StreamPart>; last: number } {
    const { runs, first, end } = this.plan;
    const step = this.#isForward ? 1 : -1;
    const rowsMax = this.#isFiltered ? this.#windowRows : Math.min(limit, pagesOfWindow * rowGroupRowsMax);
    this.#windowRows *= searchGrowth;
    const parts = new Map<string, StreamPart>();
    let rows = 0;
    let units = 0;
    let last = index;
    for (let i = index; i >= first && i < end && rows < rowsMax && units < farPartsMax; i += step) {
      const { far } = runs.at(i)!.rowGroup;
      const range = far === undefined ? null : rangeOfRun(this.plan, i);
      if (far === undefined || range === null) continue;
      last = i;
      rows += range.rows;
      const from = { partition: range.partition, ordinal: range.firstOrdinal };
      const to = { partition: range.partition, ordinal: range.firstOrdinal + range.rows - 1 };
      let part = parts.get(far.group);
      if (part === undefined) {
        part = { far, copies: new Map(), from, to, rows: 0, runs: [] };
        parts.set(far.group, part);
      } else if (step > 0) part.to = to;
      else part.from = from;
      part.rows += range.rows;
      part.runs.push(range);
      const { copy } = far;
      if (copy === null) units += part.rows === range.rows ? farUnitsOfWriter : 0;
      else if (!part.copies.has(copy.attempt)) units++;
      if (copy !== null) part.copies.set(copy.attempt, copy);
    }
    return { parts, last };
  }
}
