import { LogstrataError } from './errors.js';
import { ordinalMax, partitionMax } from './limits.js';

/**
 * The permanent position of a record: the partition (whole hours since the epoch, 24 bits; 0 is reserved for imports) and the ordinal in it
 * (40 bits, from 1 on, in the order of commit). Both are exact JavaScript numbers.
 */
export interface Position {
  readonly partition: number;
  readonly ordinal: number;
}

/** A place among the records of several agents: the position of a record of one of them, and up to which position each agent has been passed. */
export interface JointPosition extends Position {
  /** Index of the record's agent. */
  readonly agent: number;
  /** A position of each agent; that of the record for its own agent. */
  readonly of: readonly Position[];
}

export const hourMs = 3_600_000;
const cursorPattern = /^[0-9a-f]{16}$/;

/** Formats a position as 16 lowercase hexadecimal digits: 6 for the partition, 10 for the ordinal. */
export function formatCursor(position: Position): string {
  return position.partition.toString(16).padStart(6, '0') + position.ordinal.toString(16).padStart(10, '0');
}

/** Parses a cursor, whether or not a record has this position. Returns undefined unless it is 16 lowercase hexadecimal digits. */
export function parseCursor(text: string): Position | undefined {
  if (!cursorPattern.test(text)) return undefined;
  return { partition: parseInt(text.slice(0, 6), 16), ordinal: parseInt(text.slice(6), 16) };
}

/** Negative, zero or positive, as `a` is before, at or after `b`. */
export function comparePositions(a: Position, b: Position): number {
  return a.partition - b.partition || a.ordinal - b.ordinal;
}

/** The value of the `_cursor` column: the partition in the high 24 bits, the ordinal in the low 40. */
export function positionToInt64(position: Position): bigint {
  return BigInt.asIntN(64, (BigInt(position.partition) << 40n) | BigInt(position.ordinal));
}

/** The position for a value of the `_cursor` column. */
export function positionFromInt64(value: bigint): Position {
  const bits = BigInt.asUintN(64, value);
  return { partition: Number(bits >> 40n), ordinal: Number(bits & 0xff_ffff_ffffn) };
}

/** The low 32 bits of a value of the `_cursor` column. */
export function lowHalf(ordinal: number): number {
  return ordinal >>> 0;
}

/** The high 32 bits of a value of the `_cursor` column. */
export function highHalf(partition: number, ordinal: number): number {
  return partition * 0x100 + Math.floor(ordinal / 2 ** 32);
}

/** The position for a value of the `_cursor` column, given as its halves of 32 bits. */
export function positionOfHalves(high: number, low: number): Position {
  return { partition: high >>> 8, ordinal: (high & 0xff) * 2 ** 32 + low };
}

/** The partition of a time in milliseconds, clamped to what a cursor can hold (1 … 2^24 − 1). */
export function partitionOfTime(timeMs: number): number {
  return Math.min(partitionMax, Math.max(1, Math.floor(timeMs / hourMs)));
}

/** The partition of imported records, which bring their cursors with them. Its positions are unrelated to times. */
export const importedPartition = 0;

/** The UTC day of a partition as `YYYY-MM-DD`, which names the folder `dt=…` of its segments. */
export function dayOfPartition(partition: number): string {
  return new Date(dayNumber(partition) * 24 * hourMs).toISOString().slice(0, 10);
}

/** Days since the epoch, which all partitions of a day share. Imported records have day −1, which no other records have. */
export function dayNumber(partition: number): number {
  return partition === importedPartition ? -1 : Math.floor(partition / 24);
}

/** Throws `limit` unless a partition has room for `count` more ordinals from `next` on. */
export function assertOrdinalsLeft(partition: number, next: number, count: number): void {
  if (next + count - 1 > ordinalMax) {
    throw new LogstrataError(
      'limit',
      `partition ${partition} has no room for ${count} more records (at ordinal ${next})`,
    );
  }
}
