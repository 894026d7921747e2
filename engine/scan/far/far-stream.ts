import type { FarAnswer } from '../../store/far/far-cluster.js';
import type { FarRows, SourceQuestion } from '../../store/far/far-rows.js';
import type { FarCopy } from '../../store/manifest/far-copy.js';
import type { OrdinalRun } from '../../store/manifest/manifest.js';
import { comparePositions, type Position } from '../../terms/cursor.js';
import { farAnswerBytes } from '../../terms/far-limits.js';
import { rowGroupRowsMax } from '../../terms/limits.js';
import type { Predicate } from '../../terms/predicate.js';
import type { Schema } from '../../terms/schema.js';
import { FarPage } from './far-page.js';

/** Factor by which each further page of a stream may be longer. */
const pageGrowth = 4;

/** What one stream asks for. */
export interface StreamQuestion {
  readonly far: FarRows;
  readonly copies: readonly FarCopy[];
  /** Both ends are inclusive. */
  readonly from: Position;
  readonly to: Position;
  readonly direction: 'forward' | 'backward';
  readonly condition: string | null;
  readonly predicates: readonly Predicate[];
  readonly asked: Schema;
  readonly schema: Schema;
  /** All rows of the answer, ascending; undefined where predicates select among them. */
  readonly expected: readonly OrdinalRun[] | undefined;
}

/**
 * The rows of one shard between two positions, page by page in one direction. The next page is asked for as soon as the one before has
 * arrived, so that it is on its way while that one is written.
 */
export class FarStream {
  readonly #question: StreamQuestion;
  readonly #signal: AbortSignal;
  readonly #onPage: (page: FarPage) => void;
  /** The number of rows that take about `farAnswerBytes`. */
  readonly #pageRows: number;
  /** Number of rows of the page that was asked for last. */
  #size = 0;
  #next: Promise<FarAnswer> | null = null;
  /** The range that has not been asked for yet; null where nothing is left. */
  #rest: { readonly from: Position; readonly to: Position } | null;
  #page: FarPage | null = null;

  constructor(question: StreamQuestion, signal: AbortSignal, onPage: (page: FarPage) => void) {
    this.#question = question;
    this.#signal = signal;
    this.#onPage = onPage;
    this.#rest = { from: question.from, to: question.to };
    let rows = 0;
    let bytes = 0;
    for (const copy of question.copies) {
      rows += copy.rows;
      bytes += copy.bytes;
    }
    const rowBytes = Math.max(1, bytes / Math.max(1, rows));
    this.#pageRows = Math.max(1, Math.min(rowGroupRowsMax, Math.floor(farAnswerBytes / rowBytes)));
  }

  /** Asks for the first page, with at most `limit` rows. */
  begin(limit: number): void {
    this.#size = Math.min(limit, this.#pageRows);
    this.#ask();
  }

  /** The current page, or the next one where there is none; null at the end. `limit` is the number of rows wanted from here on. */
  async page(limit: number): Promise<FarPage | null> {
    if (this.#page !== null) return this.#page;
    if (this.#next === null) this.#askMore(limit);
    if (this.#next === null) return null;
    const answer = await this.#next;
    this.#next = null;
    const { length } = answer.batch;
    this.#rest = answer.isCut && length > 0 ? this.#behind(answer) : null;
    if (length === 0) return null;
    const { far, schema, asked } = this.#question;
    this.#page = new FarPage(`far/${far.agent}`, schema, asked, far.stored, answer);
    this.#onPage(this.#page);
    if (limit > length) this.#askMore(limit - length);
    return this.#page;
  }

  /** Ends the use of the current page. */
  leave(): void {
    this.#page = null;
  }

  /** Asks for the next page. Pages grow, because many rows turned out not to match. */
  #askMore(limit: number): void {
    if (this.#rest === null) return;
    this.#size = Math.min(this.#pageRows, Math.max(limit, this.#size * pageGrowth));
    this.#ask();
  }

  /** The range after the rows of an answer, in the direction of the stream; null where it is empty. */
  #behind({ partitions, ordinals }: FarAnswer): { from: Position; to: Position } | null {
    const { direction, from, to } = this.#question;
    const isForward = direction === 'forward';
    const row = isForward ? partitions.length - 1 : 0;
    const last = { partition: partitions[row]!, ordinal: ordinals[row]! };
    if (comparePositions(last, isForward ? to : from) === 0) return null;
    if (isForward) return { from: { ...last, ordinal: last.ordinal + 1 }, to };
    return { from, to: { ...last, ordinal: last.ordinal - 1 } };
  }

  #ask(): void {
    const { far, copies, direction, condition, predicates, asked, schema, expected } = this.#question;
    const question: SourceQuestion = {
      agent: far.agent,
      shard: far.copy?.shard ?? 0,
      copies,
      ...this.#rest!,
      direction,
      limit: this.#size,
      condition,
      predicates,
      schema: asked,
      shown: schema,
      expected,
    };
    this.#rest = null;
    this.#next = far.source().ask(question, this.#signal);
    // Mark the promise as handled: a failure is thrown when the page is asked for, which may never happen.
    this.#next.catch(() => undefined);
  }
}
