import { assertNever } from '../terms/assert.js';
import type { Schema } from '../terms/schema.js';
import type { Query } from './plan/query.js';
import type { ReadyIterable, Scan } from './plan/scan.js';
import { writtenFields } from './write/written-fields.js';

/** What stands around the lines of an answer. */
interface Frame {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  /** Bytes at the beginning of the first line that the start stands in the place of. */
  readonly replacedBytes: number;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array(0);

/** The first element of an array has no comma before it. */
const arrayFrame: Frame = { start: encoder.encode('['), end: encoder.encode(']'), replacedBytes: 1 };

/** What stands around the lines of the answer to a query; null for JSON Lines, which stand by themselves. */
function frameOf(query: Query, schema: Schema): Frame | null {
  const format = query.form?.format ?? 'jsonl';
  switch (format) {
    case 'jsonl':
      return null;
    case 'json':
      return arrayFrame;
    case 'csv': {
      const names = writtenFields(schema, query).fields.map((field) => schema.fields[field]!.name);
      // No name of a field needs quotes.
      return {
        start: encoder.encode(`${['_cursor', ...names].join(',')}\r\n`),
        end: nothing,
        replacedBytes: 0,
      };
    }
    default:
      return assertNever(format);
  }
}

/** A scan whose lines become the whole answer to a query, with what its format has around them. */
export function framedScan(scan: Scan, query: Query, schema: Schema): Scan {
  const frame = frameOf(query, schema);
  return frame === null ? scan : { stats: scan.stats, lines: new FramedLines(scan.lines, frame) };
}

/** Whole answers of one piece, by that piece: those who are given the same piece are given the same answer. */
const wholeAnswers = new WeakMap<Uint8Array, Uint8Array>();

/** Lines with a beginning before and an end behind them. An answer that is one piece and known to be all stays one piece. */
class FramedLines implements ReadyIterable<Uint8Array> {
  readonly #lines: AsyncIterator<Uint8Array>;
  /** The same, where it can be asked without waiting. */
  readonly #ready: ReadyIterable<Uint8Array> | undefined;
  readonly #frame: Frame;
  #isBegun = false;
  #isEnded = false;
  /** What follows the beginning that was given. */
  #held: Uint8Array | null = null;

  constructor(lines: Scan['lines'], frame: Frame) {
    if ('now' in lines) this.#ready = lines;
    this.#lines = lines[Symbol.asyncIterator]();
    this.#frame = frame;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get isAtEnd(): boolean {
    return this.#isEnded && this.#held === null;
  }

  now(): IteratorResult<Uint8Array, void> | null {
    if (this.#held !== null) return this.#giveHeld(this.#held);
    const result = this.#ready?.now() ?? null;
    return result === null ? null : this.#framed(result);
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    if (this.#held !== null) return this.#giveHeld(this.#held);
    return this.#framed(await this.#lines.next());
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#held = null;
    this.#isEnded = true;
    await this.#lines.return?.();
    return { done: true, value: undefined };
  }

  #giveHeld(held: Uint8Array): IteratorResult<Uint8Array, void> {
    this.#held = null;
    return { done: false, value: held };
  }

  #framed(result: IteratorResult<Uint8Array, void>): IteratorResult<Uint8Array, void> {
    if (result.done === true) return this.#atEnd();
    if (this.#isBegun) return result;
    this.#isBegun = true;
    const { start, replacedBytes } = this.#frame;
    if (this.#ready?.isAtEnd === true) return { done: false, value: this.#whole(result.value) };
    this.#held = result.value.subarray(replacedBytes);
    return { done: false, value: start };
  }

  #atEnd(): IteratorResult<Uint8Array, void> {
    const { start, end } = this.#frame;
    const rest = this.#isBegun ? end : Buffer.concat([start, end]);
    const isOver = this.#isEnded || rest.length === 0;
    this.#isBegun = true;
    this.#isEnded = true;
    return isOver ? { done: true, value: undefined } : { done: false, value: rest };
  }

  /** An answer whose lines are this piece. The piece itself may be another reader's too, and is not changed. */
  #whole(piece: Uint8Array): Uint8Array {
    this.#isEnded = true;
    let answer = wholeAnswers.get(piece);
    if (answer === undefined) {
      const { start, end, replacedBytes } = this.#frame;
      answer = Buffer.concat([start, piece.subarray(replacedBytes), end]);
      wholeAnswers.set(piece, answer);
    }
    return answer;
  }
}
