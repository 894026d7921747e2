/** A cursor as a number: its high 24 bits are the hour since the epoch, its low 40 the place in it. */
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

/** Before every record. */
export const firstCursor = '0000000000000000';

/** Whether a text has the form of a cursor. */
export function isCursor(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}

/** The next position; records between are none. `before` it is "up to and including the cursor". */
export function cursorBehind(cursor: string): string {
  return cursorOf(positionOf(cursor) + 1n);
}

/** The position before; `after` it is "from the cursor on". */
export function cursorBefore(cursor: string): string {
  return cursorOf(positionOf(cursor) - 1n);
}

/** When the hour began that a cursor stands in, in milliseconds: where a record without a readable time has its place. */
export function hourOfCursor(cursor: string): number {
  return Number(positionOf(cursor) >> ordinalBits) * hourMs;
}

/** The position at which the hour of a moment begins. */
export function cursorOfHour(timeMs: number): string {
  const hour = BigInt(Math.max(0, Math.floor(timeMs / hourMs)));
  return cursorOf(hour << ordinalBits);
}
