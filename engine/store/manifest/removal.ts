import { formatCursor } from '../../core/cursor.js';
import { Coverage, withRuns } from './coverage.js';
import { liveRuns, type LoadEntry, type OrdinalRun, type SegmentEntry } from './manifest.js';

/** Records that are removed on request, not for their age. */
export interface Removal {
  /** Positions of the records. They are never assigned again. */
  readonly runs: readonly OrdinalRun[];
  /** Files of rejected lines that are removed with them, relative to the agent's folder. */
  readonly rejected: readonly string[];
  /** Lowers the highest partition to this one, from which the placement of live records starts again. Absent: it stays. */
  readonly highestPartition?: number | undefined;
}

/** The id of a load: the cursor of the first record of its newest hour. No other load has the same. */
export function loadId({ runs }: LoadEntry): string {
  const { partition, firstOrdinal: ordinal } = runs.at(-1)!;
  return formatCursor({ partition, ordinal });
}

/** The loads after a removal. */
export interface LeftLoads {
  /** Loads that still have records or lost records, with their removed positions. */
  readonly left: readonly LoadEntry[];
  /** Loads that have no live record any more because of the removal. */
  readonly gone: readonly LoadEntry[];
}

/**
 * Applies a removal to the loads. An hour whose records were all removed is dropped from its load. In other hours the removed positions are
 * noted, so that they do not count as lost; the rest of the hour may still be lost and restored. Once no record of a load is live, the
 * hours that the removal touched are dropped entirely.
 *
 * @param runs the removed positions
 * @param segments the segments that stay
 */
export function loadsWithout(
  loads: readonly LoadEntry[],
  runs: readonly OrdinalRun[],
  segments: readonly SegmentEntry[],
): LeftLoads {
  const removed = new Coverage();
  for (const run of runs) removed.add(run);
  const live = new Coverage();
  for (const entry of segments) for (const run of liveRuns(entry)) live.add(run);
  const left: LoadEntry[] = [];
  const gone: LoadEntry[] = [];
  for (const load of loads) {
    if (!load.runs.some((run) => removed.touches(run))) {
      left.push(load);
      continue;
    }
    const isGone = !load.runs.some((run) => live.touches(run));
    if (isGone) gone.push(load);
    const own = new Coverage();
    for (const run of [...(load.removed ?? []), ...runs]) own.add(run);
    const kept = load.runs.filter(
      (run) => !removed.touches(run) || (!isGone && own.missing({ ...run, firstRow: 0 }).length > 0),
    );
    const parts = kept.flatMap((run) => own.covered(run));
    if (kept.length > 0) left.push(withRuns(load, kept, parts));
  }
  return { left, gone };
}
