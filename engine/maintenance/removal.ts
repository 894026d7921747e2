import { columnValue, isValid } from '../columns/column.js';
import { hourMs } from '../core/cursor.js';
import { LogstrataError } from '../core/errors.js';
import { heldBytesMax } from '../core/limits.js';
import { placementField } from '../core/schema.js';
import type { Directory } from '../store/disk/directory.js';
import type { Committer } from '../store/manifest/commit.js';
import { Coverage } from '../store/manifest/coverage.js';
import {
  addRun,
  livePlaces,
  liveRows,
  isFarOnly,
  ageingPartition,
  liveRuns,
  noCounters,
  type LoadEntry,
  type Manifest,
  type OrdinalRun,
  type RejectedEntry,
  type Run,
  type SegmentEntry,
} from '../store/manifest/manifest.js';
import { readRejectedLines } from '../store/manifest/rejected-file.js';
import { loadId } from '../store/manifest/removal.js';
import { type AgentState, runsOfSegment, schemaOf } from '../store/reading/agent-state.js';
import { BufferPool } from '../store/reading/buffer-pool.js';
import { newReadCounters } from '../store/reading/read-counters.js';
import { SealedSegment } from '../store/reading/sealed-segment.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { isOvertaken } from './compaction.js';
import { rewriteSegments } from './rewrite.js';

/** What to remove of an agent. */
export type RemovalRequest =
  | { readonly kind: 'all' }
  /** The records of one load. */
  | { readonly kind: 'load'; readonly id: string }
  /** Records with sinceMs ≤ time < untilMs, by the placement field; null for no bound. Records without a time are in no range. */
  | ({ readonly kind: 'times' } & TimeRange)
  /**
   * Records in hours ahead of the clock, of any time or with a time in a range. Live records are then placed by the clock again, also where
   * some of these records stay.
   */
  | ({ readonly kind: 'ahead' } & TimeRange);

/** Null for no bound. */
interface TimeRange {
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
}

/** What a removal would do. */
export interface RemovalPreview {
  readonly records: number;
  readonly rejectedLines: number;
  /** Bytes of the segments that are removed as a whole, plus a proportional share of the others. */
  readonly bytes: number;
  /** Start (inclusive) and end (exclusive) of the hours that the records age by (ms). Null if there are no records. */
  readonly fromMs: number | null;
  readonly untilMs: number | null;
  /** Number of segments that are rewritten without the records. */
  readonly rewritten: number;
  /** The files from which the records were loaded, if known. They can be loaded again. */
  readonly paths: readonly string[];
  /** Whether live records, which are placed ahead of the clock, will be placed by the clock again. */
  readonly isLowered: boolean;
}

/** A load that can be removed. */
export interface StoredLoad {
  readonly id: string;
  /** Time of the load by the clock (ms). */
  readonly nowMs: number;
  /** Number of its records that still exist. */
  readonly records: number;
  readonly paths: readonly string[];
}

export interface RemovalContext {
  readonly directory: Directory;
  readonly state: AgentState;
  readonly committer: Committer;
  readonly workers: WorkerPool;
  readonly refresh: () => Promise<void>;
  /** The partition of the clock. */
  readonly partitionNow: number;
}

export interface RemovalOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** How often a removal is planned again because compaction or retention was faster. */
const conflictsMax = 10;

/** The records to remove from one segment. */
interface SegmentChange {
  readonly entry: SegmentEntry;
  readonly removed: readonly OrdinalRun[];
  readonly rows: number;
  /** Number of these rows that rules of retention have removed before, if it was counted. */
  readonly hidden?: number;
}

interface RemovalPlan {
  readonly changes: readonly SegmentChange[];
  readonly rejected: readonly RejectedEntry[];
  readonly loads: readonly LoadEntry[];
  /** See `Removal`. */
  readonly highestPartition?: number | undefined;
}

/** The loads that still have records, newest last. */
export function storedLoads({ loads, segments }: Pick<Manifest, 'loads' | 'segments'>): StoredLoad[] {
  const live = new Coverage();
  for (const entry of segments) for (const run of liveRuns(entry)) live.add(run);
  return loads.flatMap((load) => {
    const records = load.runs.reduce((sum, run) => sum + run.rows - rowsOf(missingOf(live, run)), 0);
    if (records === 0) return [];
    return [{ id: loadId(load), nowMs: load.nowMs, records, paths: pathsOf([load]) }];
  });
}

/** What a removal would do now. Hot rows are sealed first, so that they are included; nothing else is changed. */
export async function previewRemoval(
  context: RemovalContext,
  request: RemovalRequest,
): Promise<RemovalPreview> {
  const { changes, rejected, loads } = await planRemoval(context, request);
  const partitions = changes.flatMap(({ entry, removed }) =>
    removed.map(({ partition }) => ageingPartition(entry, partition)),
  );
  const from = partitions.reduce((least, partition) => Math.min(least, partition), Infinity);
  const until = partitions.reduce((most, partition) => Math.max(most, partition), -Infinity);
  const share = ({ entry, rows }: SegmentChange): number => Math.round((entry.bytes * rows) / entry.rows);
  return {
    records: changes.reduce((sum, change) => sum + recordsOf(change), 0),
    rejectedLines: rejected.reduce((sum, { lines }) => sum + lines, 0),
    bytes: changes.reduce((sum, change) => sum + share(change), 0),
    fromMs: partitions.length === 0 ? null : from * hourMs,
    untilMs: partitions.length === 0 ? null : (until + 1) * hourMs,
    rewritten: changes.filter(({ entry, rows }) => rows < livePlaces(entry)).length,
    paths: pathsOf(loads),
    isLowered: isToBeLowered(context, request),
  };
}

function isToBeLowered({ state, partitionNow }: RemovalContext, request: RemovalRequest): boolean {
  return request.kind === 'ahead' && state.values.highestPartition > partitionNow;
}

/**
 * Removes records in one publication. Their positions are never reused. Segments that keep other records are rewritten. Running queries
 * still see the removed records.
 */
export async function removeRecords(
  context: RemovalContext,
  request: RemovalRequest,
  options: RemovalOptions = {},
): Promise<RemovalPreview> {
  await context.refresh();
  const isLowered = isToBeLowered(context, request);
  // First, so that no record arrives ahead of the clock any more.
  if (isLowered) {
    const highestPartition = context.partitionNow;
    await publishRemoval(context, { changes: [], rejected: [], loads: [], highestPartition }, options);
  }
  for (let conflicts = 1; ; conflicts++) {
    const preview = await previewRemoval(context, request);
    const plan = await planRemoval(context, request);
    if (plan.changes.length + plan.rejected.length === 0) return { ...preview, isLowered };
    try {
      await publishRemoval(context, plan, options);
      await context.refresh();
      return { ...preview, isLowered };
    } catch (error) {
      if (!isOvertaken(error) || conflicts === conflictsMax) throw error;
    }
  }
}

async function publishRemoval(
  { directory, state, committer, workers }: RemovalContext,
  { changes, rejected, highestPartition }: RemovalPlan,
  { signal, onProgress }: RemovalOptions,
): Promise<void> {
  const agent = state.agent;
  const total = changes.reduce((sum, { entry }) => sum + entry.rows, 0);
  const id = await committer.begin();
  try {
    const segments: SegmentEntry[] = [];
    let done = 0;
    for (const { entry, removed, rows } of changes) {
      if (rows < livePlaces(entry)) {
        const { schemaVersion, codec } = entry;
        const schema = schemaOf(state.manifest!, schemaVersion);
        const job = { agent, id, segments: [entry], schema, schemaVersion, codec, share: 1 };
        const place = { directory, workers, signal };
        segments.push(...(await rewriteSegments(place, { ...job, removed, firstNumber: segments.length })));
      }
      done += entry.rows;
      onProgress?.(done / total);
    }
    if (signal?.aborted === true) throw new LogstrataError('cancelled', 'the removal was stopped');
    await committer.publish(id, {
      segments,
      removes: changes.map(({ entry }) => entry.file),
      removesLiveFrom: changes.map(({ entry }) => entry.liveFrom ?? null),
      checkpoints: [],
      rejected: [],
      removal: {
        runs: changes.flatMap(({ removed }) => removed),
        rejected: rejected.map(({ file }) => file),
        highestPartition,
      },
      counters: noCounters,
    });
  } finally {
    await committer.end(id);
  }
}

/** Determines the records of each segment that are to be removed. Hot rows are sealed first. */
async function planRemoval(context: RemovalContext, request: RemovalRequest): Promise<RemovalPlan> {
  const { state, committer, refresh } = context;
  await refresh();
  if (state.damage !== undefined) throw state.damage;
  if (request.kind === 'all' || request.kind === 'times') requireOwnRecords(state);
  if (request.kind !== 'load' && (state.hotRowCount > 0 || state.hotRejected().length > 0)) {
    await committer.seal();
    await refresh();
  }
  const { manifest } = state;
  if (manifest === undefined) return { changes: [], rejected: [], loads: [] };
  const { segments, loads } = manifest;
  switch (request.kind) {
    case 'all':
      return { changes: segments.map(wholeSegment), rejected: state.settledRejected(), loads };
    case 'load': {
      const load = loads.find((each) => loadId(each) === request.id);
      if (load === undefined) throw unknownLoad(state.agent, request.id);
      const wanted = new Coverage();
      for (const run of load.runs) wanted.add(run);
      const changes = segments.flatMap((entry) => changeOf(entry, (run) => wanted.covered(run)));
      if (changes.some(({ entry, rows }) => isFarOnly(entry) && rows < livePlaces(entry)))
        throw notNear(state.agent);
      return { changes, rejected: await rejectedOf(context, load), loads: [load] };
    }
    case 'ahead':
    case 'times': {
      const from = request.kind === 'ahead' ? context.partitionNow + 1 : 0;
      const isAnyTime = request.kind === 'ahead' && request.sinceMs === null && request.untilMs === null;
      const changes: SegmentChange[] = [];
      for (const entry of segments)
        changes.push(
          ...(isAnyTime
            ? changeOf(entry, (run) => (run.partition < from ? [] : [run]))
            : await changeByTimes(context, entry, request, from)),
        );
      if (changes.some(({ entry, rows }) => isFarOnly(entry) && rows < livePlaces(entry)))
        throw notNear(state.agent);
      return { changes, rejected: [], loads: loadsWithin(loads, changes) };
    }
  }
}

function unknownLoad(agent: string, id: string): LogstrataError {
  const message = `agent "${agent}" has no load ${JSON.stringify(id)}, or retention removed it; "logstrata stats ${agent}" lists the loads`;
  return new LogstrataError('not_found', message);
}

/** Throws `invalid` if the agent has attached files, because their records belong to other programs and cannot be removed. */
function requireOwnRecords({ agent, attached }: AgentState): void {
  const files = attached.files().length;
  if (files === 0) return;
  const message = `agent "${agent}" has ${files} files in place, whose records can't be removed here: remove the files or exclude them from archive.path; loaded records can be removed by load`;
  throw new LogstrataError('invalid', message);
}

/** The error for a segment that is only in the far tier. It cannot be rewritten, only removed as a whole. */
function notNear(agent: string): LogstrataError {
  const message = `agent "${agent}" may have some of these records in the far tier, where single records can't be removed: bring them back first ("logstrata far fetch ${agent}")`;
  return new LogstrataError('invalid', message);
}

function wholeSegment(entry: SegmentEntry): SegmentChange {
  return { entry, removed: liveRuns(entry), rows: livePlaces(entry) };
}

/** The change of a segment. `removedOf` returns the parts of a run to remove. Empty if nothing is removed. */
function changeOf(entry: SegmentEntry, removedOf: (run: Run) => readonly OrdinalRun[]): SegmentChange[] {
  const removed = liveRuns(entry).flatMap(removedOf);
  return removed.length === 0 ? [] : [{ entry, removed, rows: rowsOf(removed) }];
}

function recordsOf({ entry, rows, hidden = 0 }: SegmentChange): number {
  return rows === livePlaces(entry) ? liveRows(entry) : rows - hidden;
}

function missingOf(live: Coverage, run: OrdinalRun): readonly OrdinalRun[] {
  return live.missing({ ...run, firstRow: 0 });
}

function rowsOf(runs: readonly OrdinalRun[]): number {
  return runs.reduce((sum, { rows }) => sum + rows, 0);
}

/** The loads whose records are all removed. */
function loadsWithin(loads: readonly LoadEntry[], changes: readonly SegmentChange[]): LoadEntry[] {
  const removed = new Coverage();
  for (const change of changes) for (const run of change.removed) removed.add(run);
  return loads.filter(({ runs }) => runs.every((run) => missingOf(removed, run).length === 0));
}

function pathsOf(loads: readonly LoadEntry[]): string[] {
  return [...new Set(loads.flatMap(({ parts }) => parts.map(({ until }) => until.path)))];
}

/** Finds the records of a segment in a range of times, in the partitions from `from` on. Reads only the time column. */
async function changeByTimes(
  { directory, state }: RemovalContext,
  entry: SegmentEntry,
  { sinceMs, untilMs }: TimeRange,
  from: number,
): Promise<SegmentChange[]> {
  const { timeMinMs, timeMaxMs } = entry;
  const schema = schemaOf(state.manifest!, entry.schemaVersion);
  const field = placementField(schema);
  if (field < 0 || timeMinMs === null || timeMaxMs === null) return [];
  const [since, until] = [sinceMs ?? -Infinity, untilMs ?? Infinity];
  if (timeMaxMs < since || timeMinMs >= until || entry.runs.at(-1)!.partition < from) return [];
  if (isFarOnly(entry)) throw notNear(state.agent);
  const pool = new BufferPool(heldBytesMax);
  const segment = new SealedSegment(directory, `${state.agent}/${entry.file}`, entry, schema, pool);
  const counters = newReadCounters();
  try {
    const removed: Run[] = [];
    let hidden = 0;
    for (const { rowGroup, firstRow, rows, partition, firstOrdinal } of runsOfSegment(
      entry,
      segment.rowGroups(schema),
    )) {
      if (partition < from) continue;
      const options = { use: 'once', neverWaits: true } as const;
      const open = await rowGroup.open();
      const gone = rowGroup.hides === true ? await open.hidden!(counters, options) : null;
      const { columns, release } = await open.columns([field], counters, options);
      try {
        const [column] = columns;
        for (let row = 0; row < rows; row++) {
          const value = columnValue(column!, firstRow + row);
          if (value === null || Number(value) < since || Number(value) >= until) continue;
          // Consecutive rows form one run. The ordinal also serves as the row, because row numbers do not matter here.
          if (gone !== null && isValid(gone, firstRow + row)) hidden++;
          const ordinal = firstOrdinal + row;
          addRun(removed, { partition, firstOrdinal: ordinal, firstRow: ordinal, rows: 1 });
        }
      } finally {
        release();
      }
    }
    return removed.length === 0 ? [] : [{ entry, removed, rows: rowsOf(removed), hidden }];
  } finally {
    segment.close();
    pool.close();
  }
}

/** The files of rejected lines whose lines all come from the part of a source that the load has read. */
async function rejectedOf(
  { directory, state }: RemovalContext,
  { parts }: LoadEntry,
): Promise<RejectedEntry[]> {
  const isOf = (file: string, offset: number): boolean =>
    parts.some(({ from, until }) => {
      const isSame = until.path === file || until.path.endsWith(`/${file.replace(/^(?:\.\/)+/, '')}`);
      return isSame && offset >= (from?.offset ?? 0) && offset < until.offset;
    });
  const found: RejectedEntry[] = [];
  for (const entry of state.settledRejected()) {
    let isAll = true;
    for await (const lines of readRejectedLines(directory, `${state.agent}/${entry.file}`, entry)) {
      isAll = lines.every(({ file, offset }) => isOf(file, offset));
      if (!isAll) break;
    }
    if (isAll) found.push(entry);
  }
  return found;
}
