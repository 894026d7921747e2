import type { FarRows } from '../../store/far/far-rows.js';
import type { FarCopy } from '../../store/manifest/far-copy.js';
import type { OrdinalRun } from '../../store/manifest/manifest.js';
import type { Position } from '../../terms/cursor.js';
import { isLogstrataError, LogstrataError } from '../../terms/errors.js';
import { farPartsMax, farUnitsOfWriter, farWindowRows } from '../../terms/far-limits.js';
import { rowGroupRowsMax, searchGrowth } from '../../terms/limits.js';
import type { Schema } from '../../terms/schema.js';
import type { PreparedPredicates } from '../job/predicate.js';
import type { RowGroupFilter, ScanWork } from '../filter/row-group-filter.js';
import { countSelected, type Matches, type Selection } from '../job/selection.js';
import { rangeOfRun, type RowRange, type ScanPlan } from '../plan/plan.js';
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

/** Consecutive rows of the answer that are in one page: the row spans of its runs, in the direction of the plan. */
interface Gathered {
  readonly page: FarPage;
  readonly spans: RowSpan[];
}

interface RowSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * Reads the far runs of a plan in its direction. Neighbouring runs are asked for together as a window: each shard that has rows of them
 * gets one question, all at the same time. With predicates, each window covers more rows than the one before, so that a rare match takes
 * few questions and a frequent one little work.
 */
export class FarReader {
  readonly #plan: ScanPlan;
  readonly #filter: RowGroupFilter;
  readonly #work: ScanWork;
  readonly #wish: FarWish;
  readonly #selections = new WeakMap<FarPage, Selection>();
  readonly #ending = new AbortController();
  readonly #onAbort = (): void => this.#end(this.#work.pace.signal?.reason);
  #windowRows: number;
  #window: Window | null = null;

  constructor(plan: ScanPlan, filter: RowGroupFilter, work: ScanWork, wish: FarWish) {
    this.#plan = plan;
    this.#filter = filter;
    this.#work = work;
    this.#wish = wish;
    this.#windowRows = farWindowRows * (findsWholeTexts(wish.predicates) ? searchGrowth ** 2 : 1);
    const { signal } = work.pace;
    if (signal?.aborted === true) this.#onAbort();
    else signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Cancels the questions that are pending. */
  close(): void {
    this.#work.pace.signal?.removeEventListener('abort', this.#onAbort);
    this.#end(undefined);
  }

  #end(reason: unknown): void {
    this.#ending.abort(
      isLogstrataError(reason) ? reason : new LogstrataError('cancelled', 'the query was cancelled'),
    );
  }

  get #isFiltered(): boolean {
    return areFiltered(this.#wish.predicates);
  }

  get #isForward(): boolean {
    return this.#plan.direction === 'forward';
  }

  /**
   * Yields the matches of the runs [first, end), which are all far, in the direction of the plan. The matches of a page are given together.
   * They may be more than `limit`, which returns the number of rows that are still wanted.
   */
  async *matches(first: number, end: number, limit: () => number): AsyncGenerator<Matches, void> {
    let gathered: Gathered | null = null;
    for (let k = 0; k < end - first; k++) {
      const index = this.#isForward ? first + k : end - 1 - k;
      const range = rangeOfRun(this.#plan, index);
      if (range === null) continue;
      const stream = this.#streamOf(index, limit());
      let found = 0;
      for (;;) {
        const page = await stream.page(limit());
        if (page === null) break;
        const { from, to, isOver } = this.#rowsOf(page, range);
        found += to - from;
        if (gathered !== null && gathered.page !== page) {
          const matches = await this.#matchesOf(gathered);
          if (matches !== null) yield matches;
          gathered = null;
        }
        gathered ??= { page, spans: [] };
        if (from < to) gathered.spans.push({ from, to });
        if (isOver) break;
        stream.leave();
        const matches = await this.#matchesOf(gathered);
        if (matches !== null) yield matches;
        gathered = null;
        if (limit() <= 0) return;
        if (!this.#isFiltered && found >= range.rows) break;
      }
      // Without predicates every row must be answered. A missing row is an error, so that an answer is never silently short.
      if (!this.#isFiltered && found !== range.rows) throw this.#rowsAt(index).lacking(found, range);
    }
    const matches = gathered === null ? null : await this.#matchesOf(gathered);
    if (matches !== null) yield matches;
  }

  /**
   * The rows of a page that are in a range. `isOver` is true where the page has rows beyond the range, so that no later page has rows of
   * it.
   */
  #rowsOf(page: FarPage, range: RowRange): RowSpan & { readonly isOver: boolean } {
    const { partition, firstOrdinal, rows } = range;
    const from = page.rowsBefore(partition, firstOrdinal, false);
    const to = page.rowsBefore(partition, firstOrdinal + rows - 1, true);
    const edge = this.#isForward ? page.rows : 0;
    return { from, to, isOver: this.#isForward ? to < edge : from > edge };
  }

  /** The matches among the rows that were gathered from a page; null where there are none. */
  async #matchesOf({ page, spans }: Gathered): Promise<Matches | null> {
    if (spans.length === 0) return null;
    let selection = this.#selections.get(page);
    if (selection === undefined) {
      const share = { firstRow: 0, endRow: page.rows, units: 1 };
      selection = await this.#filter.look(page, share);
      this.#selections.set(page, selection);
    }
    const pause = this.#work.pace.pause();
    if (pause !== undefined) await pause;
    const ascending = this.#isForward ? spans : spans.reverse();
    const ranges = ascending.flatMap(({ from, to }) => page.ranges(from, to));
    const take = countSelected(selection, ranges);
    return take === 0 ? null : { unit: { rowGroup: page, ranges }, selection, skip: 0, take };
  }

  /** Where the rows of a run are stored. */
  #rowsAt(index: number): FarRows {
    return this.#plan.runs.at(index)!.rowGroup.far!;
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
    const { schema, predicates, fields } = this.#wish;
    const { direction } = this.#plan;
    for (const [group, part] of parts) {
      const { far, from, to } = part;
      const { stored } = far;
      const condition = farCondition(predicates, schema, stored);
      const asked = askedFields(fields, schema, stored);
      const copies = [...part.copies.values()];
      const question = {
        far,
        copies,
        from,
        to,
        direction,
        condition,
        asked,
        schema,
        predicates: predicates.asked,
        expected: this.#isFiltered ? undefined : this.#isForward ? part.runs : part.runs.toReversed(),
      };
      const stream = new FarStream(question, this.#ending.signal, ({ bytes }) => {
        this.#work.stats.bytesRead += bytes;
      });
      // Without predicates no more rows are wanted than the part has live rows. Rows that are no longer live may lie between them; then the
      // stream asks for a further page.
      stream.begin(this.#isFiltered ? limit : Math.min(limit, part.rows));
      streams.set(group, stream);
    }
    return { first: Math.min(index, last), end: Math.max(index, last) + 1, streams };
  }

  /** The far runs of the window that begins with run `index`, grouped by stream, and the index of the last run. */
  #partsFrom(index: number, limit: number): { parts: Map<string, StreamPart>; last: number } {
    const { runs, first, end } = this.#plan;
    const step = this.#isForward ? 1 : -1;
    const rowsMax = this.#isFiltered ? this.#windowRows : Math.min(limit, pagesOfWindow * rowGroupRowsMax);
    this.#windowRows *= searchGrowth;
    const parts = new Map<string, StreamPart>();
    let rows = 0;
    let units = 0;
    let last = index;
    for (let i = index; i >= first && i < end && rows < rowsMax && units < farPartsMax; i += step) {
      const { far } = runs.at(i)!.rowGroup;
      const range = far === undefined ? null : rangeOfRun(this.#plan, i);
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
