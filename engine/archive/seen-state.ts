import { haveRecord } from '../scan/plan/added-runs.js';
import type { SnapshotRuns } from '../store/reading/snapshot.js';
import type { Position } from '../terms/cursor.js';
import type { Schema } from '../terms/schema.js';

/** The records of a state that somebody has seen, to tell from later ones what has become visible since. It pins no files. */
export class SeenState {
  constructor(
    readonly schema: Schema,
    readonly runs: SnapshotRuns,
  ) {}

  /** The position of the last record; that before every record where there is none. */
  get last(): Position {
    const run = this.runs.at(-1);
    if (run === undefined) return { partition: 0, ordinal: 0 };
    return { partition: run.partition, ordinal: run.firstOrdinal + run.rows - 1 };
  }

  /** Whether a record stood at the position. */
  has({ partition, ordinal }: Position): boolean {
    return haveRecord(this.runs, partition, ordinal);
  }
}
