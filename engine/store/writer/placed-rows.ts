import type { RecordBatch } from '../../columns/column.js';
import { partitionOfTime } from '../../terms/cursor.js';
import type { CommittedValues } from '../manifest/committed-values.js';
import type { SourcePart } from '../manifest/commit.js';
import type { OrdinalRun } from '../manifest/manifest.js';
import { livePartition, ordinalRuns } from '../manifest/placement.js';
import { sortPage } from '../load/sorted-page.js';
import { batchBytes } from '../../columns/column.js';

/** Rows in the order of their positions. */
export interface PlacedRows {
  readonly batch: RecordBatch;
  readonly runs: OrdinalRun[];
}

/** Assigns positions as a load does: by placement time (ms) alone. */
export function placeLoaded(values: CommittedValues, batch: RecordBatch, timesMs: Float64Array): PlacedRows {
  const sorted = sortPage({ batch, timesMs, bytes: batchBytes(batch) });
  return { batch: sorted.batch, runs: ordinalRuns(values, sorted.timesMs.map(partitionOfTime)) };
}

/** Assigns positions to rows of live sources (see `livePartition`). Within a partition rows stay in order of arrival. */
export function placeLive(
  values: CommittedValues,
  batch: RecordBatch,
  timesMs: Float64Array,
  parts: readonly SourcePart[],
  { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number },
): PlacedRows {
  const { highestPartition } = values;
  const partitions = new Float64Array(timesMs.length);
  let row = 0;
  for (const { rows, catchingUp } of parts) {
    const where = { nowMs, highestPartition, graceMs, catchingUp };
    for (const end = row + rows; row < end; row++) partitions[row] = livePartition(timesMs[row]!, where);
  }
  const sorted = sortPage({ batch, timesMs: partitions, bytes: batchBytes(batch) });
  return { batch: sorted.batch, runs: ordinalRuns(values, sorted.timesMs) };
}
