import type { FarRows } from '../../store/far/far-rows.js';
import type { FarCopy } from '../../store/manifest/far-copy.js';
import type { OrdinalRun } from '../../store/manifest/manifest.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { Position } from '../../terms/cursor.js';
import { isLogstrataError, LogstrataError } from '../../terms/errors.js';
import {
  farRowsMax,
  farUnitsMax,
  farUnitsOfWriter,
  farWindowGrowth,
  farWindowRows,
} from '../../terms/far-limits.js';
import type { Schema } from '../../terms/schema.js';
import type { PreparedPredicates } from '../filter/predicate.js';
import type { RowGroupFilter, ScanWork } from '../filter/row-group-filter.js';
import { countSelected, type Matches, type Selection } from '../filter/selection.js';
import { rangeOfRun, type RowRange, type ScanPlan } from '../plan/plan.js';
import { areFiltered, farCondition, findsWholeTexts } from './far-condition.js';
import { askedFields, type FarPage } from './far-page.js';
import { FarStream } from './far-stream.js';

/** Windows of an answer without filters have a few pages, so that one is on its way while another is written. */
const pagesOfWindow = 4;

/** What a scan reads of the far tier. */
export interface FarWish {
  readonly schema: Schema;
  readonly predicates: PreparedPredicates;
  /** The fields that are read of what matches. */
  readonly fields: readonly number[];
}

/** Rows that the streams of a window are asked for. */
interface Window {
  /** Its runs are [first, end) of the plan, those that are near among them. */
  readonly first: number;
  readonly end: number;
  readonly streams: ReadonlyMap<string, FarStream>;
}

/** Units of one stream, and the ends of their rows. */
interface StreamPart {
  readonly far: FarRows;
  readonly copies: Map<string, FarCopy>;
  from: Position;
  to: Position;
  rows: number;
  /** In the direction of the plan. */
  readonly runs: OrdinalRun[];
}

/** Rows of a page that follow one another in the answer: those of its runs, in the direction of the plan. */
interface Gathered {
  readonly page: FarPage;
  readonly spans: RowSpan[];
}

interface RowSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * Reads the far runs of a plan in its direction. Runs that lie together are asked for together, as a window: each of its shards gets one question,
 * all at once. With filters a window looks at ever more rows, so that a rare match takes few questions and a frequent one little work.
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
    this.#windowRows = farWindowRows * (findsWholeTexts(wish.predicates) ? farWindowGrowth ** 2 : 1);
    const { signal } = work.pace;
    if (signal?.aborted === true) this.#onAbort();
    else signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Ends the questions that are under way. */
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

  /** The matches of the runs [first, end), which are far, in the direction of the plan: those of a page together, all that it has. */
  *matches(first: number, end: number, limit: () => number): Steps<Matches> {
    let gathered: Gathered | null = null;
    for (let k = 0; k < end - first; k++) {
      const index = this.#isForward ? first + k : end - 1 - k;
      const range = rangeOfRun(this.#plan, index);
      if (range === null) continue;
      const stream = this.#streamOf(index, limit());
      let found = 0;
      for (;;) {
        const page = yield* stream.page(limit());
        if (page === null) break;
        const { from, to, isOver } = this.#rowsOf(page, range);
        found += to - from;
        if (gathered !== null && gathered.page !== page) {
          yield* this.#give(gathered);
          gathered = null;
        }
        gathered ??= { page, spans: [] };
        if (from < to) gathered.spans.push({ from, to });
        if (isOver) break;
        stream.leave();
        yield* this.#give(gathered);
        gathered = null;
        if (limit() <= 0) return;
        if (!this.#isFiltered && found >= range.rows) break;
      }
      // An answer is never silently short.
      if (!this.#isFiltered && found !== range.rows) throw this.#rowsAt(index).lacking(found, range);
    }
    if (gathered !== null) yield* this.#give(gathered);
  }

  /** The rows of a page that lie in a range. The range is over when the page has rows beyond it: no later page has any of the range. */
  #rowsOf(page: FarPage, range: RowRange): RowSpan & { readonly isOver: boolean } {
    const { partition, firstOrdinal, rows } = range;
    const from = page.rowsBefore(partition, firstOrdinal, false);
    const to = page.rowsBefore(partition, firstOrdinal + rows - 1, true);
    const edge = this.#isForward ? page.rows : 0;
    return { from, to, isOver: this.#isForward ? to < edge : from > edge };
  }

  *#give({ page, spans }: Gathered): Steps<Matches> {
    if (spans.length === 0) return;
    let selection = this.#selections.get(page);
    if (selection === undefined) {
      const share = { firstRow: 0, endRow: page.rows, units: 1 };
      selection = yield* this.#filter.look(page, share);
      this.#selections.set(page, selection);
    }
    yield* settled(this.#work.pace.pause());
    const ascending = this.#isForward ? spans : spans.reverse();
    const ranges = ascending.flatMap(({ from, to }) => page.ranges(from, to));
    const take = countSelected(selection, ranges);
    if (take > 0) yield { unit: { rowGroup: page, ranges }, selection, skip: 0, take };
  }

  /** Where the rows of a run are. */
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

  /** Asks for the window that begins with a run. */
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
      // A row that is not live may lie between two that are.
      stream.begin(this.#isFiltered ? limit : Math.min(limit, part.rows));
      streams.set(group, stream);
    }
    return { first: Math.min(index, last), end: Math.max(index, last) + 1, streams };
  }

  /** The far runs from one on that make up a window, by their streams. */
  #partsFrom(index: number, limit: number): { parts: Map<string, StreamPart>; last: number } {
    const { runs, first, end } = this.#plan;
    const step = this.#isForward ? 1 : -1;
    const rowsMax = this.#isFiltered ? this.#windowRows : Math.min(limit, pagesOfWindow * farRowsMax);
    this.#windowRows *= farWindowGrowth;
    const parts = new Map<string, StreamPart>();
    let rows = 0;
    let units = 0;
    let last = index;
    for (let i = index; i >= first && i < end && rows < rowsMax && units < farUnitsMax; i += step) {
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
