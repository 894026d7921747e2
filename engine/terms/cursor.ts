import { LogstrataError } from './errors.js';
import { ordinalMax, partitionMax } from './limits.js';

/**
 * A record's place for ever: the partition (whole hours since the epoch, 24 bits, 0 is kept for imports)
 * and the ordinal in it (40 bits, from 1 on, in the order of commit). Both are exact JavaScript numbers.
 */
export interface Position {
  readonly partition: number;
  readonly ordinal: number;
}

export const hourMs = 3_600_000;
const cursorPattern = /^[0-9a-f]{16}$/;

/** The 16 lowercase hexadecimal digits of a position: 6 of the partition, 10 of the ordinal. */
export function formatCursor(position: Position): string {
  return position.partition.toString(16).padStart(6, '0') + position.ordinal.toString(16).padStart(10, '0');
}

/** The position that `text` names, whether or not a record stands there; undefined unless it is 16 lowercase hexadecimal digits. */
export function parseCursor(text: string): Position | undefined {
  if (!cursorPattern.test(text)) return undefined;
  return { partition: parseInt(text.slice(0, 6), 16), ordinal: parseInt(text.slice(6), 16) };
}

/** Negative, zero or positive, as `a` stands before, at or after `b`. */
export function comparePositions(a: Position, b: Position): number {
  return a.partition - b.partition || a.ordinal - b.ordinal;
}

/** The value of the `_cursor` column: partition in the high 24 bits, ordinal in the low 40. */
export function positionToInt64(position: Position): bigint {
  return BigInt.asIntN(64, (BigInt(position.partition) << 40n) | BigInt(position.ordinal));
}

/** The position that a value of the `_cursor` column stands for. */
export function positionFromInt64(value: bigint): Position {
  const bits = BigInt.asUintN(64, value);
  return { partition: Number(bits >> 40n), ordinal: Number(bits & 0xff_ffff_ffffn) };
}

/** The partition of a time in milliseconds, clamped to what a cursor can hold (1 … 2^24 − 1). */
export function partitionOfTime(timeMs: number): number {
  return Math.min(partitionMax, Math.max(1, Math.floor(timeMs / hourMs)));
}

/** The partition of records that brought their cursors with them. Its positions say nothing of their times. */
export const importedPartition = 0;

/** The UTC day of a partition as `YYYY-MM-DD`: the folder `dt=…` that its segments lie in. */
export function dayOfPartition(partition: number): string {
  return new Date(dayNumber(partition) * 24 * hourMs).toISOString().slice(0, 10);
}

/** Whole days since the epoch; partitions of one day share it. That of imported records is the one before the first, which no others have. */
export function dayNumber(partition: number): number {
  return partition === importedPartition ? -1 : Math.floor(partition / 24);
}

/** `count` ordinals from `next` on still fit a partition; throws `limit` otherwise. */
export function assertOrdinalsLeft(partition: number, next: number, count: number): void {
  if (next + count - 1 > ordinalMax) {
    throw new LogstrataError(
      'limit',
      `partition ${partition} has no room for ${count} more records (at ordinal ${next})`,
    );
  }
}
