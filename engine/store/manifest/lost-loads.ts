import { LogstrataError } from '../../terms/errors.js';
import type { LoadedRun, LoadEntry, Manifest, OrdinalRun, SegmentEntry } from './manifest.js';
import { liveRuns } from './manifest.js';
import { Coverage } from './coverage.js';

/** Records of one load that are missing, though neither retention nor a removal has taken them. */
export interface LostLoad {
  readonly load: LoadEntry;
  /** Their positions, ascending. */
  readonly runs: readonly OrdinalRun[];
}

function liveOf(segments: readonly SegmentEntry[]): Coverage {
  const live = new Coverage();
  for (const entry of segments) for (const run of liveRuns(entry)) live.add(run);
  return live;
}

/** The loads that have lost records, oldest first. Only sealed segments are searched, because loads never write hot rows. */
export function lostLoads({ loads, segments }: Pick<Manifest, 'loads' | 'segments'>): LostLoad[] {
  if (loads.length === 0) return [];
  const live = liveOf(segments);
  return loads.flatMap((load) => {
    const gone = new Coverage();
    for (const run of load.removed ?? []) gone.add(run);
    const runs = load.runs
      .flatMap((run) => live.missing({ ...run, firstRow: 0 }))
      .flatMap((run) => gone.missing(run));
    return runs.length === 0 ? [] : [{ load, runs }];
  });
}

/** Lost records that loading their files again restores. All files have to be loaded by one command. */
export interface Restorable {
  readonly records: number;
  /** Last known paths of the files, in the order in which they were read. */
  readonly paths: readonly string[];
}

/** The lost records that can be restored, grouped by the files that they came from. */
export function restorableOf(manifest: Pick<Manifest, 'loads' | 'segments'>): Restorable[] {
  const found = new Map<string, Restorable>();
  for (const { load, runs } of lostLoads(manifest)) {
    const paths = load.parts.map(({ until }) => until.path);
    const key = paths.join('\0');
    const records = runs.reduce((sum, { rows }) => sum + rows, found.get(key)?.records ?? 0);
    found.set(key, { records, paths });
  }
  return [...found.values()];
}

/** The sum of their records. */
export function restorableRecords(restorable: readonly Restorable[]): number {
  return restorable.reduce((sum, { records }) => sum + records, 0);
}

/** Throws `conflict` unless all rows of `segments` are still lost. */
export function assertStillLost(manifest: Manifest, segments: readonly SegmentEntry[]): void {
  const lost = new Coverage();
  for (const { runs } of lostLoads(manifest)) for (const run of runs) lost.add(run);
  if (segments.every((entry) => entry.runs.every((run) => lost.missing(run).length === 0))) return;
  throw new LogstrataError(
    'conflict',
    'the lost records were restored by another process, or removed by retention, in the meantime',
  );
}

/**
 * The loads without their runs in partitions below `first` that `segments` no longer hold: retention has taken those. Returns the same list
 * if nothing changes.
 */
export function loadsLeft(
  loads: readonly LoadEntry[],
  segments: readonly SegmentEntry[],
  first: number,
): readonly LoadEntry[] {
  if (loads.every(({ runs }) => runs.every(({ partition }) => partition >= first))) return loads;
  const live = liveOf(segments);
  const left = loads.flatMap((load) => {
    const runs = load.runs.filter((run) => run.partition >= first || live.touches(run));
    if (runs.length === load.runs.length) return [load];
    return runs.length === 0 ? [] : [withRuns(load, runs, load.removed ?? [])];
  });
  return left.every((load, i) => load === loads[i]) && left.length === loads.length ? loads : left;
}

/** The load with the given runs, and the removed positions in their partitions. */
export function withRuns(
  { removed: _, ...load }: LoadEntry,
  runs: readonly LoadedRun[],
  removed: readonly OrdinalRun[],
): LoadEntry {
  const partitions = new Set(runs.map(({ partition }) => partition));
  const own = removed.filter(({ partition }) => partitions.has(partition));
  return { ...load, runs, ...(own.length === 0 ? {} : { removed: own }) };
}
