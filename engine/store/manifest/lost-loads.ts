import { LogstrataError } from '../../terms/errors.js';
import type { LoadedRun, LoadEntry, Manifest, OrdinalRun, SegmentEntry } from './manifest.js';
import { liveRuns } from './manifest.js';
import { Coverage } from './coverage.js';

/** Records that one load gave and that are not there any more, though retention has not taken them. */
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

/** The loads of which records are lost, the oldest first. What loads give lies in sealed segments from the beginning. */
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

/** Records that are lost, and come back when the files that they came from are loaded again, all of them by one command. */
export interface Restorable {
  readonly records: number;
  /** Last known paths of these files, in the order in which they were read. */
  readonly paths: readonly string[];
}

/** What loading files again brings back, by files. */
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

/** How many records these are. */
export function restorableRecords(restorable: readonly Restorable[]): number {
  return restorable.reduce((sum, { records }) => sum + records, 0);
}

/** Throws `conflict` unless all rows of `segments` are lost ones. */
export function assertStillLost(manifest: Manifest, segments: readonly SegmentEntry[]): void {
  const lost = new Coverage();
  for (const { runs } of lostLoads(manifest)) for (const run of runs) lost.add(run);
  if (segments.every((entry) => entry.runs.every((run) => lost.missing(run).length === 0))) return;
  throw new LogstrataError(
    'conflict',
    'what was lost has been restored by another process meanwhile, or taken by retention',
  );
}

/**
 * The loads without what they gave to partitions below `first` and is not in `segments`: it is over, however it has gone. The same list
 * where there is no such thing.
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

/** The load with these of its runs, and what is removed of them. */
export function withRuns(
  { removed: _, ...load }: LoadEntry,
  runs: readonly LoadedRun[],
  removed: readonly OrdinalRun[],
): LoadEntry {
  const partitions = new Set(runs.map(({ partition }) => partition));
  const own = removed.filter(({ partition }) => partitions.has(partition));
  return { ...load, runs, ...(own.length === 0 ? {} : { removed: own }) };
}
