import { addedRuns, haveRecord } from '../scan/plan/added-runs.js';
import type { SnapshotRuns } from '../store/reading/snapshot.js';
import { comparePositions, type Position } from '../terms/cursor.js';
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

  /** Whether all records that the later state `now` has besides those of this state are after the last one of this state. */
  isContinuedBy(now: SeenState): boolean {
    if (now.runs === this.runs) return true;
    const added = addedRuns(this.runs, now.runs)[0];
    if (added === undefined) return true;
    const { partition, firstOrdinal: ordinal } = added;
    return comparePositions({ partition, ordinal }, this.last) > 0;
  }
}
