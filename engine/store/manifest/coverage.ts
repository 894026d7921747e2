import { firstIndex } from '../../core/arrays.js';
import {
  type OrdinalRun,
  type Run,
  type LoadedRun,
  type LoadEntry,
  type Manifest,
  type SegmentEntry,
  liveRuns,
} from './manifest.js';
import { LogstrataError } from '../../core/errors.js';

interface Range {
  readonly first: number;
  readonly end: number;
}

/** The ranges of one partition: `joined` ascend and do not touch; `added` are not merged into them yet. */
interface Ranges {
  joined: readonly Range[];
  added: Range[];
}

/** A set of positions, as ranges of ordinals [first, end) of each partition. */
export class Coverage {
  private readonly partitions = new Map<number, Ranges>();

  /** Adds the positions of a run. */
  add({ partition, firstOrdinal, rows }: OrdinalRun): void {
    const range = { first: firstOrdinal, end: firstOrdinal + rows };
    const known = this.partitions.get(partition);
    if (known === undefined) this.partitions.set(partition, { joined: [], added: [range] });
    else known.added.push(range);
  }

  /** The parts of a run whose positions are not in the set, in order. */
  missing(run: Run): Run[] {
    const parts: Run[] = [];
    const end = run.firstOrdinal + run.rows;
    let next = run.firstOrdinal;
    const take = (to: number): void => {
      if (to <= next) return;
      const firstRow = run.firstRow + next - run.firstOrdinal;
      parts.push({ partition: run.partition, firstOrdinal: next, firstRow, rows: to - next });
    };
    const ranges = this.rangesOf(run.partition);
    for (let i = firstEndingBehind(ranges, next); i < ranges.length && ranges[i]!.first < end; i++) {
      take(ranges[i]!.first);
      next = ranges[i]!.end;
    }
    take(end);
    return parts;
  }

  /** The parts of a run whose positions are in the set, in order. */
  covered(run: OrdinalRun): OrdinalRun[] {
    const { partition } = run;
    const first = run.firstOrdinal;
    const end = first + run.rows;
    const ranges = this.rangesOf(partition);
    const parts: OrdinalRun[] = [];
    for (let i = firstEndingBehind(ranges, first); i < ranges.length && ranges[i]!.first < end; i++) {
      const from = Math.max(first, ranges[i]!.first);
      parts.push({ partition, firstOrdinal: from, rows: Math.min(end, ranges[i]!.end) - from });
    }
    return parts;
  }

  /** Whether any position of the run is in the set. */
  touches({ partition, firstOrdinal, rows }: OrdinalRun): boolean {
    const ranges = this.rangesOf(partition);
    const range = ranges[firstEndingBehind(ranges, firstOrdinal)];
    return range !== undefined && range.first < firstOrdinal + rows;
  }

  /** The ranges of a partition, after merging the added ones. */
  private rangesOf(partition: number): readonly Range[] {
    const ranges = this.partitions.get(partition);
    if (ranges === undefined) return [];
    if (ranges.added.length > 0) {
      ranges.joined = joined([...ranges.joined, ...ranges.added]);
      ranges.added = [];
    }
    return ranges.joined;
  }
}

function joined(ranges: Range[]): Range[] {
  const result: Range[] = [];
  for (const range of ranges.sort((a, b) => a.first - b.first)) {
    const last = result.at(-1);
    if (last === undefined || range.first > last.end) result.push(range);
    else if (range.end > last.end) result[result.length - 1] = { first: last.first, end: range.end };
  }
  return result;
}

/** Index of the first range that ends after an ordinal. */
function firstEndingBehind(ranges: readonly Range[], ordinal: number): number {
  return firstIndex(ranges.length, (i) => ranges[i]!.end > ordinal);
}

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
