import type { FarAnswer, FarRows, SourceQuestion } from '../far/far-cluster.js';
import { comparePositions, type Position } from '../core/cursor.js';
import { farAnswerBytes, rowGroupRowsMax } from '../core/limits.js';
import { FarPage } from './far-page.js';

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
    private readonly far: FarRows,
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
    this.#next = this.far.source().ask(question, this.signal);
    // Mark the promise as handled: a failure is thrown when the page is asked for, which may never happen.
    this.#next.catch(() => undefined);
  }
}
