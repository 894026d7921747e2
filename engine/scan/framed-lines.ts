import { assertNever } from '../terms/assert.js';
import type { Schema } from '../terms/schema.js';
import type { Query } from './plan/query.js';
import type { PieceIterator } from './plan/scan.js';
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

/** Turns the lines of an answer into the whole answer, with what the format puts before and after the lines. */
export function framed(lines: PieceIterator, query: Query, schema: Schema): PieceIterator {
  const frame = frameOf(query, schema);
  return frame === null ? lines : new FramedLines(lines, frame);
}

/** Lines with a start and an end around them. An answer that is known to consist of one piece stays one piece. */
class FramedLines implements PieceIterator {
  readonly #lines: PieceIterator;
  readonly #pieces: AsyncGenerator<Uint8Array, void>;
  isAtEnd = false;

  constructor(lines: PieceIterator, frame: Frame) {
    this.#lines = lines;
    this.#pieces = this.#framed(frame);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array, void>> {
    return this.#pieces.next();
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    await this.#pieces.return();
    // A generator that was never begun has not ended its lines.
    return this.#lines.return();
  }

  async *#framed({ start, end, replacedBytes }: Frame): AsyncGenerator<Uint8Array, void> {
    let isBegun = false;
    for await (const piece of this.#lines) {
      if (isBegun) {
        yield piece;
        continue;
      }
      isBegun = true;
      if (this.#lines.isAtEnd) {
        this.isAtEnd = true;
        yield Buffer.concat([start, piece.subarray(replacedBytes), end]);
        return;
      }
      yield start;
      yield piece.subarray(replacedBytes);
    }
    this.isAtEnd = true;
    const rest = isBegun ? end : Buffer.concat([start, end]);
    if (rest.length > 0) yield rest;
  }
}
