import { formatCursor } from '../../terms/cursor.js';
import { Coverage } from './coverage.js';
import { liveRuns, type LoadEntry, type OrdinalRun, type SegmentEntry } from './manifest.js';

/** Records that somebody wants removed, and not for their age. */
export interface Removal {
  /** Their positions, which no other records get. */
  readonly runs: readonly OrdinalRun[];
  /** Files of rejected lines that go with them, under the agent's folder. */
  readonly rejected: readonly string[];
}

/** What a load is named by: the cursor of the first record of its newest hour, which no other load has. */
export function loadId({ runs }: LoadEntry): string {
  const { partition, firstOrdinal: ordinal } = runs.at(-1)!;
  return formatCursor({ partition, ordinal });
}

/** The loads that a removal leaves, and those of which nothing is left. */
export interface LeftLoads {
  readonly left: readonly LoadEntry[];
  readonly gone: readonly LoadEntry[];
}

/**
 * The loads without the hours in which records of theirs were removed: those are not lost, and what else is lost of such an hour can't be
 * told from them any more. `segments` are those that stay.
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
    const untouched = load.runs.filter((run) => !removed.touches(run));
    if (untouched.length === load.runs.length) {
      left.push(load);
      continue;
    }
    if (!load.runs.some((run) => live.touches(run))) gone.push(load);
    if (untouched.length > 0) left.push({ ...load, runs: untouched });
  }
  return { left, gone };
}
