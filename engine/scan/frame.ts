import { assertNever } from '../terms/assert.js';
import type { Schema } from '../terms/schema.js';
import type { Query } from './plan/query.js';
import { writtenFields } from './write/json-columns.js';

/** The bytes that a format puts before and after the lines of an answer. */
export interface Frame {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  /** Length of the beginning of the first line that `start` replaces. */
  readonly replacedBytes: number;
}

const encoder = new TextEncoder();
export const nothing = new Uint8Array(0);

/** A JSON array. Each line begins with a comma, except that the first element must have none: `[` replaces it. */
const arrayFrame: Frame = { start: encoder.encode('['), end: encoder.encode(']'), replacedBytes: 1 };

/** The frame of the answer to a query; null for JSON Lines, which has none. */
export function frameOf(query: Query, schema: Schema): Frame | null {
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

/** A piece with what the format puts before the first one and after the last one; the piece itself where that is nothing. */
export function framedPiece(
  frame: Frame | null,
  piece: Uint8Array,
  isFirst: boolean,
  isLast: boolean,
): Uint8Array {
  if (frame === null || !(isFirst || isLast)) return piece;
  const { start, end, replacedBytes } = frame;
  return Buffer.concat([
    isFirst ? start : nothing,
    isFirst ? piece.subarray(replacedBytes) : piece,
    isLast ? end : nothing,
  ]);
}
