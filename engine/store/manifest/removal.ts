import { formatCursor } from '../../terms/cursor.js';
import { Coverage } from './coverage.js';
import { withRuns } from './lost-loads.js';
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
 * The loads without the hours of which all records were removed, and with what was removed of others: those are not lost, and the rest of them may
 * be. Of a load that has no record left nothing is lost either where some was removed. `segments` are those that stay.
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
    const parts = kept.flatMap((run) => coveredParts(own, run));
    if (kept.length > 0) left.push(withRuns(load, kept, parts));
  }
  return { left, gone };
}

/** The parts of a run that are covered. */
function coveredParts(coverage: Coverage, { partition, firstOrdinal, rows }: OrdinalRun): OrdinalRun[] {
  const run = { partition, firstOrdinal, firstRow: 0, rows };
  const others = new Coverage();
  for (const part of coverage.missing(run)) others.add(part);
  return others.missing(run).map((part) => ({ partition, firstOrdinal: part.firstOrdinal, rows: part.rows }));
}
