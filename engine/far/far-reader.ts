import { firstIndex } from '../core/arrays.js';
import type { Column, RecordBatch } from '../columns/column.js';
import { convertColumn, nullColumn } from '../columns/convert-column.js';
import {
  lackingRows,
  type FarAnswer,
  type FarSource,
  type SourceOf,
  type SourceQuestion,
} from './far-cluster.js';
import { countFar, type FarCountWish } from './far-counts.js';
import type { RemoteRows } from '../store/reading/snapshot.js';
import type { RemoteCount, RemoteReader, RemoteSource, RemoteWish } from '../scan/tiered-finder.js';
import { MemoryRowGroup } from '../store/reading/hot-rows.js';
import { assert, isLogstrataError, LogstrataError } from '../core/errors.js';
import type { Schema } from '../core/schema.js';
import { type RowRange, indexOfRuns, rangeOfRun, type ScanPlan } from '../scan/plan.js';
import { storedField, farCondition, findsWholeTexts } from './far-condition.js';
import { comparePositions, type Position } from '../core/cursor.js';
import {
  farAnswerBytes,
  rowGroupRowsMax,
  farPartsMax,
  farUnitsOfWriter,
  farWindowRows,
  searchGrowth,
} from '../core/limits.js';
import type { FarCopy, OrdinalRun } from '../store/manifest/manifest.js';
import type { RowGroupFilter, ScanWork } from '../scan/row-group-filter.js';
import { countSelected, type Matches, type Selection } from '../scan/selection.js';

/** Rows that a far tier has answered, as a row group in memory with the fields of `schema`. They ascend by position, with gaps. */
export class FarPage extends MemoryRowGroup {
  readonly hot = false;

  /**
   * @param asked the fields that were asked for, and that the answer has
   * @param stored the fields that the rows were shipped with
   */
  constructor(
    readonly file: string,
    private readonly schema: Schema,
    private readonly asked: Schema,
    private readonly stored: Schema,
    private readonly answer: FarAnswer,
  ) {
    super();
  }

  get batch(): RecordBatch {
    return this.answer.batch;
  }

  get rows(): number {
    return this.answer.batch.length;
  }

  get bytes(): number {
    return this.answer.bytes;
  }

  /** The partition of a row's position. */
  partition(row: number): number {
    return this.answer.partitions[row]!;
  }

  /** The ordinal of a row's position. */
  ordinal(row: number): number {
    return this.answer.ordinals[row]!;
  }

  /** The number of rows before a position; with `orAt`, a row at that position is included. */
  rowsBefore(partition: number, ordinal: number, orAt: boolean): number {
    return firstIndex(this.rows, (row) => {
      const order = this.partition(row) - partition || this.ordinal(row) - ordinal;
      return orAt ? order > 0 : order >= 0;
    });
  }

  /** The rows [from, to) as ranges of consecutive positions. */
  ranges(from: number, to: number): RowRange[] {
    const ranges: RowRange[] = [];
    for (let first = from; first < to;) {
      const partition = this.partition(first);
      const firstOrdinal = this.ordinal(first);
      let end = first + 1;
      while (
        end < to &&
        this.partition(end) === partition &&
        this.ordinal(end) === firstOrdinal + end - first
      )
        end++;
      ranges.push({ firstRow: first, rows: end - first, partition, firstOrdinal });
      first = end;
    }
    return ranges;
  }

  zone(): null {
    return null;
  }

  protected make(field: number): Column {
    const { name, type } = this.schema.fields[field]!;
    const kept = storedField(field, this.schema, this.stored);
    if (kept === null) return nullColumn(type, this.rows);
    const place = this.asked.fields.findIndex((other) => other.name === name);
    assert(place >= 0, `field ${name} is read, and was not asked for`);
    return convertColumn(this.answer.batch.columns[place]!, kept.conversion, type);
  }
}

/** The stored fields, with their stored types, that `fields` need. Fields without stored values are left out. */
function askedFields(fields: readonly number[], schema: Schema, stored: Schema): Schema {
  const asked = fields.map((field) => storedField(field, schema, stored)?.field);
  return { fields: stored.fields.filter((kept) => asked.includes(kept)) };
}

/** Factor by which each further page of a stream may be longer. */
const pageGrowth = 4;

/** What one stream asks for: the first rows of its range in its direction, both ends inclusive, as many as a page has. */
export type StreamQuestion = Omit<SourceQuestion, 'limit'>;

/**
 * The rows of one shard between two positions, page by page in one direction. The next page is asked for as soon as the one before has
 * arrived, so that it is on its way while that one is written.
 */
export class FarStream {
  /** The number of rows that take about `farAnswerBytes`. */
  readonly #pageRows: number;
  /** Number of rows of the page that was asked for last. */
  #size = 0;
  #next: Promise<FarAnswer> | null = null;
  /** The range that has not been asked for yet; null where nothing is left. */
  #rest: { readonly from: Position; readonly to: Position } | null;
  #page: FarPage | null = null;

  /** Asks for the first page, with at most `limit` rows. */
  constructor(
    private readonly far: RemoteRows,
    private readonly source: FarSource,
    private readonly question: StreamQuestion,
    limit: number,
    private readonly signal: AbortSignal,
    private readonly onPage: (page: FarPage) => void,
  ) {
    this.#rest = question;
    const rows = question.copies.reduce((sum, copy) => sum + copy.rows, 0);
    const bytes = question.copies.reduce((sum, copy) => sum + copy.bytes, 0);
    const rowBytes = Math.max(1, bytes / Math.max(1, rows));
    this.#pageRows = Math.max(1, Math.min(rowGroupRowsMax, Math.floor(farAnswerBytes / rowBytes)));
    this.#ask(limit);
  }

  /** The current page, or the next one where there is none; null at the end. `limit` is the number of rows wanted from here on. */
  async page(limit: number): Promise<FarPage | null> {
    if (this.#page !== null) return this.#page;
    if (this.#next === null) this.#ask(limit);
    if (this.#next === null) return null;
    const answer = await this.#next;
    this.#next = null;
    const { length } = answer.batch;
    this.#rest = answer.isCut && length > 0 ? this.#behind(answer) : null;
    if (length === 0) return null;
    const { agent, stored } = this.far;
    this.#page = new FarPage(`far/${agent}`, this.question.shown, this.question.schema, stored, answer);
    this.onPage(this.#page);
    if (limit > length) this.#ask(limit - length);
    return this.#page;
  }

  /** Ends the use of the current page. */
  leave(): void {
    this.#page = null;
  }

  /** The range after the rows of an answer, in the direction of the stream; null where it is empty. */
  #behind({ partitions, ordinals }: FarAnswer): { from: Position; to: Position } | null {
    const { direction, from, to } = this.question;
    const isForward = direction === 'forward';
    const row = isForward ? partitions.length - 1 : 0;
    const last = { partition: partitions[row]!, ordinal: ordinals[row]! };
    if (comparePositions(last, isForward ? to : from) === 0) return null;
    if (isForward) return { from: { ...last, ordinal: last.ordinal + 1 }, to };
    return { from, to: { ...last, ordinal: last.ordinal - 1 } };
  }

  /** Asks for the next page. Pages grow, because many rows turned out not to match. */
  #ask(limit: number): void {
    if (this.#rest === null) return;
    const { from, to } = this.#rest;
    this.#rest = null;
    this.#size = Math.min(this.#pageRows, Math.max(limit, this.#size * pageGrowth));
    const question = { ...this.question, from, to, limit: this.#size };
    this.#next = this.source.ask(question, this.signal);
    // Mark the promise as handled: a failure is thrown when the page is asked for, which may never happen.
    this.#next.catch(() => undefined);
  }
}

/** Pages per window of an answer without predicates, so that one page is on its way while another is written. */
const pagesOfWindow = 4;

/** A range of runs whose rows are asked for together, and the streams that answer. */
interface Window {
  /** Covers the runs [first, end) of the plan. Runs among them that are not in the far tier are skipped. */
  readonly first: number;
  readonly end: number;
  readonly streams: ReadonlyMap<string, FarStream>;
}

/** The part of a window that one stream answers, with the positions of its first and last row. */
interface StreamPart {
  readonly far: RemoteRows;
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
class FarReader implements RemoteReader {
  readonly #selections = new WeakMap<FarPage, Selection>();
  readonly #ending = new AbortController();
  readonly #onAbort = (): void => this.#end(this.work.pace.signal?.reason);
  #windowRows: number;
  #window: Window | null = null;

  constructor(
    private readonly plan: ScanPlan,
    private readonly filter: RowGroupFilter,
    private readonly work: ScanWork,
    private readonly wish: RemoteWish,
    private readonly sourceOf: SourceOf,
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

  /** Whether the runs may have more rows than are to be found. */
  get #isFiltered(): boolean {
    const { runs, first, end } = this.plan;
    return this.wish.predicates.clauses.length > 0 || indexOfRuns(runs).hides(first, end);
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
        if (!this.#isFiltered && found !== range.rows)
          throw this.sourceOf(this.#rowsAt(index)).lacking?.() ?? lackingRows(found, range);
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
  #rowsAt(index: number): RemoteRows {
    return this.plan.runs.at(index)!.rowGroup.remote!;
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
      const stream = new FarStream(
        far,
        this.sourceOf(far),
        question,
        wanted,
        this.#ending.signal,
        ({ bytes }) => {
          this.work.stats.bytesRead += bytes;
        },
      );
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
      const { remote: far } = runs.at(i)!.rowGroup;
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

/** Reads and counts rows that are in no file of this machine, each with the source that has it. */
export class FarRows implements RemoteSource {
  constructor(private readonly sourceOf: SourceOf) {}

  reader(plan: ScanPlan, filter: RowGroupFilter, work: ScanWork, wish: RemoteWish): RemoteReader {
    return new FarReader(plan, filter, work, wish, this.sourceOf);
  }

  count(plan: ScanPlan, wish: FarCountWish, work: ScanWork): Promise<readonly RemoteCount[] | null> {
    return countFar(plan, wish, work, this.sourceOf);
  }
}
