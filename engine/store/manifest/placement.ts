import { assert } from '../../core/errors.js';
import { type Column, type RecordBatch, isValid } from '../../columns/column.js';
import { assertOrdinalsLeft, hourMs, partitionOfTime } from '../../core/cursor.js';
import { placementField, type Schema } from '../../core/schema.js';
import type { CommitExtras, SourcePart, CommittedValues } from './commit.js';
import type { OrdinalRun } from './manifest.js';

/**
 * The placement time of each row, in milliseconds. Its hour is the partition that a loaded row gets; for live rows see `livePartition`. It
 * is the row's own time, clamped to 1 … now. A row without a readable time takes the placement time of the row before it in its source. The
 * first row of a source takes `nowMs`, and so does every row of an agent without a time field.
 *
 * @param parts the rows' sources, in the order of the rows, each with the placement time of the record before its first row
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

/**
 * Gives the named rows their placement time as their time, where they have none of their own.
 *
 * @param parts as those of `placementTimes`
 */
export function fillTimes(
  schema: Schema,
  batch: RecordBatch,
  rows: readonly number[],
  nowMs: number,
  parts: readonly Pick<SourcePart, 'rows' | 'previousTimeMs'>[],
): void {
  const column = rows.length === 0 ? undefined : batch.columns[placementField(schema)];
  if (column?.kind !== 'int64' || column.validity === null) return;
  const timesMs = placementTimes(schema, batch, nowMs, parts);
  for (const row of rows) {
    if (isValid(column.validity, row)) continue;
    column.values[row] = BigInt(timesMs[row]!);
    column.validity[row >> 3]! |= 1 << (row & 7);
  }
}

/** The placement time of the record before a part. */
function previousOf(previousTimeMs: number | null, nowMs: number): number {
  return Math.max(1, Math.min(previousTimeMs ?? nowMs, nowMs));
}

/** The placement time of each part's last row. A part without rows gets that of the record before it. */
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

/** Same result as `partTimes(placementTimes(…))`, but reads only the rows that decide it. */
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
    // The last row that has a time decides. Without one, all rows take the time of the record before them.
    let row = from - 1;
    while (row > first && !isValid(column.validity, row)) row--;
    fillPlacementTimes(last, column, row, nowMs, previousOf(previousTimeMs, nowMs));
    return last[0]!;
  });
}

/** Fills in the placement times of the rows from `from` on, as many as `times` has room for. */
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
  // Read as two 32-bit halves, because reading a BigInt64Array allocates a heap object for each row.
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

/** What the placement of live records depends on beside their own times. */
export interface LivePlacement {
  readonly nowMs: number;
  /** `w`: the highest partition that holds any committed record; 0 when there is none. */
  readonly highestPartition: number;
  readonly graceMs: number;
  /** Whether the lines were read on from a checkpoint after the service was down. Then none is late. */
  readonly catchingUp: boolean;
}

/**
 * The partition of a live record: the hour of its placement time, but at least `w` unless the record is late. So a client that follows with
 * `after` misses no record that arrives in time. A record is late if its time is at least `graceMs` before both now and the start of
 * partition `w`.
 */
export function livePartition(timeMs: number, placement: LivePlacement): number {
  const own = partitionOfTime(timeMs);
  const { highestPartition, nowMs, graceMs } = placement;
  if (own >= highestPartition) return own;
  const late = !placement.catchingUp && timeMs <= Math.min(nowMs, highestPartition * hourMs) - graceMs;
  return late ? own : highestPartition;
}

/** Whether the newest hour lies ahead of the clock by more than an hour, as after a clock that was once wrong. */
export function isAhead(highestPartition: number, nowMs: number): boolean {
  return highestPartition > partitionOfTime(nowMs) + 1;
}

/** Says what follows from a newest hour that is ahead of the clock, and what ends it. */
export function aheadWarning(agent: string, highestPartition: number): string {
  const hour = new Date(highestPartition * hourMs).toISOString().slice(0, 'yyyy-mm-ddThh:mm'.length);
  return (
    `agent ${agent}: its newest hour is ${hour.replace('T', ' ')} UTC, ahead of the clock, which was once wrong or is now. Every new record is ` +
    `placed in that hour. If the clock is right now, "logstrata remove ${agent} --ahead" removes the records of the hours ahead`
  );
}

/** The parts of a batch by source. If the caller gives none, the whole batch is one part. */
export function partsOf(batch: RecordBatch, extras: CommitExtras): readonly SourcePart[] {
  const { parts, previousTimeMs } = extras;
  if (parts === undefined)
    return [{ rows: batch.length, previousTimeMs: previousTimeMs ?? null, catchingUp: false }];
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  assert(rows === batch.length, `the parts of a commit have ${rows} rows of ${batch.length}`);
  return parts.length > 0 ? parts : [{ rows: 0, previousTimeMs: null, catchingUp: false }];
}

/**
 * The positions that rows get: the next ordinals of each partition. `partitions` must ascend: two runs of one partition would get the same
 * ordinals.
 */
export function ordinalRuns(values: CommittedValues, partitions: Float64Array): OrdinalRun[] {
  const runs: OrdinalRun[] = [];
  for (let row = 0; row < partitions.length;) {
    const partition = partitions[row]!;
    assert(row === 0 || partition > partitions[row - 1]!, 'rows are placed in the order of their partitions');
    let end = row + 1;
    while (end < partitions.length && partitions[end] === partition) end++;
    const firstOrdinal = values.nextOrdinal(partition);
    assertOrdinalsLeft(partition, firstOrdinal, end - row);
    runs.push({ partition, firstOrdinal, rows: end - row });
    row = end;
  }
  return runs;
}
