import type { Column, RecordBatch } from '../column.js';
import { isValid } from '../column.js';
import { hourMs, partitionOfTime } from '../cursor.js';
import { placementField, type Schema } from '../schema.js';

/**
 * Where new records are placed: the rules of `semantics.md`, "Where a new record is placed". A record's
 * placement time is its time clamped to 1 … now. One whose time can't be read takes that of the record
 * before it in its source; the first of a source, and every record of an agent without a time field, takes `now`.
 */

/**
 * The placement time of each row, in milliseconds.
 *
 * @param previousMs placement time of the record before the first row in its source; null when there is none
 */
export function placementTimes(
  schema: Schema,
  batch: RecordBatch,
  nowMs: number,
  previousMs: number | null,
): Float64Array {
  const times = new Float64Array(batch.length);
  const field = placementField(schema);
  if (field < 0) return times.fill(nowMs);
  fillPlacementTimes(times, batch.columns[field]!, nowMs, previousMs ?? nowMs);
  return times;
}

function fillPlacementTimes(times: Float64Array, column: Column, nowMs: number, previousMs: number): void {
  let previous = Math.max(1, Math.min(previousMs, nowMs));
  const plain = column.kind === 'dictionary' ? column.values : column;
  if (plain.kind !== 'int64') {
    times.fill(previous);
    return;
  }
  const codes = column.kind === 'dictionary' ? column.codes : null;
  // Halves, because reading a BigInt64Array makes a heap object for each row.
  const halves = new Int32Array(plain.values.buffer, plain.values.byteOffset, plain.values.length * 2);
  for (let row = 0; row < times.length; row++) {
    if (column.validity === null || isValid(column.validity, row)) {
      const at = (codes === null ? row : codes[row]!) * 2;
      const timeMs = halves[at + 1]! * 4294967296 + (halves[at]! >>> 0);
      previous = timeMs < 1 ? 1 : timeMs > nowMs ? nowMs : timeMs;
    }
    times[row] = previous;
  }
}

/** What live placement looks at beside a record's own time. */
export interface LivePlacement {
  readonly nowMs: number;
  /** `w`: the highest partition that holds any committed record; 0 when there is none. */
  readonly highestPartition: number;
  readonly graceMs: number;
  /** The lines were read on from a checkpoint after the service was down: then none is late. */
  readonly catchingUp: boolean;
}

/**
 * The partition of a live record: the hour of its placement time, but never below `w` unless it is late, so that
 * a client that follows with `after` misses no record that arrives in time.
 */
export function livePartition(timeMs: number, placement: LivePlacement): number {
  const own = partitionOfTime(timeMs);
  const { highestPartition, nowMs, graceMs } = placement;
  if (own >= highestPartition) return own;
  const late = !placement.catchingUp && timeMs <= Math.min(nowMs, highestPartition * hourMs) - graceMs;
  return late ? own : highestPartition;
}
