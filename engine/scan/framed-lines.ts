import { assertNever } from '../terms/assert.js';
import type { Schema } from '../terms/schema.js';
import type { Query } from './plan/query.js';
import type { ReadyIterable, Scan } from './plan/scan.js';
import { writtenFields } from './write/written-fields.js';

/** The bytes that a format puts before and after the lines of an answer. */
interface Frame {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  /** Length of the beginning of the first line that `start` replaces. */
  readonly replacedBytes: number;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array(0);

/** A JSON array. Each line begins with a comma, except that the first element must have none: `[` replaces it. */
const arrayFrame: Frame = { start: encoder.encode('['), end: encoder.encode(']'), replacedBytes: 1 };

/** The frame of the answer to a query; null for JSON Lines, which has none. */
function frameOf(query: Query, schema: Schema): Frame | null {
  const format = query.form?.format ?? 'jsonl';
  switch (format) {
    case 'jsonl':
      return null;
    case 'json':
      return arrayFrame;
    case 'csv': {
      const names = writtenFields(schema, query).fields.map((field) => schema.fields[field]!.name);
      // Field names contain no character that would need quotes in CSV.
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

/** Turns a scan of lines into the whole answer, with what the format puts before and after the lines. */
export function framedScan(scan: Scan, query: Query, schema: Schema): Scan {
  const frame = frameOf(query, schema);
  return frame === null ? scan : { stats: scan.stats, lines: new FramedLines(scan.lines, frame) };
}

/** Whole answers, by the only piece of their lines: readers that share a piece share the answer too. */
const wholeAnswers = new WeakMap<Uint8Array, Uint8Array>();

/** Lines with a start and an end around them. An answer that is known to consist of one piece stays one piece. */
class FramedLines implements ReadyIterable<Uint8Array> {
  readonly #lines: AsyncIterator<Uint8Array>;
  /** The same iterator, where it supports `now`. */
  readonly #ready: ReadyIterable<Uint8Array> | undefined;
  readonly #frame: Frame;
  #isBegun = false;
  #isEnded = false;
  /** The first piece of lines, while only the start before it has been given. */
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

  /** The whole answer whose only piece of lines is `piece`. Copies the piece, because other readers may share it. */
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
