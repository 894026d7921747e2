import { assert } from '../../terms/assert.js';
import type { Column, RecordBatch } from '../../columns/column.js';
import { isValid } from '../../columns/column.js';
import { assertOrdinalsLeft, hourMs, partitionOfTime } from '../../terms/cursor.js';
import { placementField, type Schema } from '../../terms/schema.js';
import type { CommitExtras, SourcePart } from './commit.js';
import type { CommittedValues } from './committed-values.js';
import type { OrdinalRun } from './manifest.js';

/**
 * Where new records are placed: the rules of `semantics.md`, "Where a new record is placed". A record's
 * placement time is its time clamped to 1 … now. One whose time can't be read takes that of the record
 * before it in its source; the first of a source, and every record of an agent without a time field, takes `now`.
 */

/**
 * The placement time of each row, in milliseconds.
 *
 * @param parts the rows' sources, in the order of the rows, and the placement time of the record before each
 */
export function placementTimes(
  schema: Schema,
  batch: RecordBatch,
  nowMs: number,
  parts: readonly Pick<SourcePart, 'rows' | 'previousTimeMs'>[],
): Float64Array {
  const times = new Float64Array(batch.length);
  const field = placementField(schema);
  if (field < 0) return times.fill(nowMs);
  let from = 0;
  for (const { rows, previousTimeMs } of parts) {
    const previous = previousOf(previousTimeMs, nowMs);
    fillPlacementTimes(times.subarray(from, from + rows), batch.columns[field]!, from, nowMs, previous);
    from += rows;
  }
  return times;
}

/** The placement time of the record before a part. */
function previousOf(previousTimeMs: number | null, nowMs: number): number {
  return Math.max(1, Math.min(previousTimeMs ?? nowMs, nowMs));
}

/** The placement time of each part's last record; of one without rows that of the record before it. */
export function partTimes(
  timesMs: Float64Array,
  parts: readonly Pick<SourcePart, 'rows' | 'previousTimeMs'>[],
): (number | null)[] {
  let end = 0;
  return parts.map(({ rows, previousTimeMs }) => {
    end += rows;
    return rows === 0 ? previousTimeMs : timesMs[end - 1]!;
  });
}

/** As `partTimes` of `placementTimes`, which looks at every row: only at those that tell. */
export function lastPlacementTimes(
  schema: Schema,
  batch: RecordBatch,
  nowMs: number,
  parts: readonly Pick<SourcePart, 'rows' | 'previousTimeMs'>[],
): (number | null)[] {
  const field = placementField(schema);
  const last = new Float64Array(1);
  let from = 0;
  return parts.map(({ rows, previousTimeMs }) => {
    const first = from;
    from += rows;
    if (rows === 0) return previousTimeMs;
    if (field < 0) return nowMs;
    const column = batch.columns[field]!;
    // The last row with a time says it; where there is none, all have that of the record before them.
    let row = from - 1;
    while (row > first && !isValid(column.validity, row)) row--;
    fillPlacementTimes(last, column, row, nowMs, previousOf(previousTimeMs, nowMs));
    return last[0]!;
  });
}

/** Fills in the times of the rows from `from` on, as many as there are `times`. */
function fillPlacementTimes(
  times: Float64Array,
  column: Column,
  from: number,
  nowMs: number,
  previousMs: number,
): void {
  let previous = previousMs;
  const plain = column.kind === 'dictionary' ? column.values : column;
  if (plain.kind !== 'int64') {
    times.fill(previous);
    return;
  }
  const codes = column.kind === 'dictionary' ? column.codes : null;
  // Halves, because reading a BigInt64Array makes a heap object for each row.
  const halves = new Int32Array(plain.values.buffer, plain.values.byteOffset, plain.values.length * 2);
  for (let i = 0; i < times.length; i++) {
    const row = from + i;
    if (column.validity === null || isValid(column.validity, row)) {
      const at = (codes === null ? row : codes[row]!) * 2;
      const timeMs = halves[at + 1]! * 4294967296 + (halves[at]! >>> 0);
      previous = timeMs < 1 ? 1 : timeMs > nowMs ? nowMs : timeMs;
    }
    times[i] = previous;
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

/** The parts of a batch by source: all of it, where the caller names none. */
export function partsOf(batch: RecordBatch, extras: CommitExtras): readonly SourcePart[] {
  const { parts, previousTimeMs } = extras;
  if (parts === undefined)
    return [{ rows: batch.length, previousTimeMs: previousTimeMs ?? null, catchingUp: false }];
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  assert(rows === batch.length, `the parts of a commit have ${rows} rows of ${batch.length}`);
  return parts.length > 0 ? parts : [{ rows: 0, previousTimeMs: null, catchingUp: false }];
}

/** The positions that rows get which stand in the order of their partitions: the next ordinals of each. */
export function ordinalRuns(values: CommittedValues, partitions: Float64Array): OrdinalRun[] {
  const runs: OrdinalRun[] = [];
  for (let row = 0; row < partitions.length;) {
    const partition = partitions[row]!;
    let end = row + 1;
    while (end < partitions.length && partitions[end] === partition) end++;
    const firstOrdinal = values.nextOrdinal(partition);
    assertOrdinalsLeft(partition, firstOrdinal, end - row);
    runs.push({ partition, firstOrdinal, rows: end - row });
    row = end;
  }
  return runs;
}
