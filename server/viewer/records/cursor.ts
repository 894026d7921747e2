/** A cursor as a number. Its high 24 bits are the hours since the epoch, its low 40 bits the position within that hour. */
function positionOf(cursor: string): bigint {
  return BigInt(`0x${cursor}`);
}

const positionMax = 0xffff_ffff_ffff_ffffn;
const ordinalBits = 40n;
const hourMs = 3_600_000;

function cursorOf(position: bigint): string {
  const inside = position < 0n ? 0n : position > positionMax ? positionMax : position;
  return inside.toString(16).padStart(16, '0');
}

/** The cursor before all records. */
export const firstCursor = '0000000000000000';

/** Whether a text has the form of a cursor. */
export function isCursor(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}

/** The next cursor. `before` this cursor means up to and including the given one. */
export function cursorBehind(cursor: string): string {
  return cursorOf(positionOf(cursor) + 1n);
}

/** The previous cursor. `after` this cursor means from the given one on. */
export function cursorBefore(cursor: string): string {
  return cursorOf(positionOf(cursor) - 1n);
}

/** The start of a cursor's hour in milliseconds since the epoch. Records without a readable time are placed by the hour. */
export function hourOfCursor(cursor: string): number {
  return Number(positionOf(cursor) >> ordinalBits) * hourMs;
}

/** The first cursor of the hour that contains a time. */
export function cursorOfHour(timeMs: number): string {
  const hour = BigInt(Math.max(0, Math.floor(timeMs / hourMs)));
  return cursorOf(hour << ordinalBits);
}
