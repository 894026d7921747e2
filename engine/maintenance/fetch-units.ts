import { hourMs, importedPartition, type Position } from '../core/cursor.js';
import { LogstrataError } from '../core/errors.js';
import { farAnswerBytes, rowGroupRowsMax } from '../core/limits.js';
import type { Schema } from '../core/schema.js';
import type { FarAnswer, FarCluster } from '../far/far-cluster.js';
import type { Directory } from '../store/disk/directory.js';
import { MergedSegments } from '../store/load/segment-builder.js';
import {
  ageingPartition,
  isFarOnly,
  liveRows,
  liveRuns,
  noCounters,
  runStart,
  type SegmentEntry,
} from '../store/manifest/manifest.js';
import { schemaOf } from '../store/reading/agent-state.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { FarAgent, ShipOptions } from './ship-agent.js';

/** Which units to fetch: those with records in this range of time; null for no bound. */
export interface FetchWish {
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
}

/** What has been fetched. */
export interface FetchResult {
  readonly units: number;
  readonly rows: number;
  /** Number of units whose files still existed locally, so that nothing was transferred. */
  readonly stillHere: number;
}

/** What fetching units depends on. */
export interface FetchContext extends FarAgent {
  readonly directory: Directory;
  readonly workers: WorkerPool;
  readonly cluster: FarCluster;
  readonly refresh: () => Promise<void>;
}

/**
 * Brings units back from the far tier, one at a time. Their rows become local segments again, which are only shipped on demand, and their
 * copies are dropped in the cluster once no query reads them. Positions and answers do not change. Units that were fetched before a failure
 * stay. Throws `unavailable` for a unit that is incomplete.
 */
export async function fetchUnits(
  context: FetchContext,
  wish: FetchWish,
  { signal, onProgress }: ShipOptions = {},
): Promise<FetchResult> {
  const { state, committer, refresh } = context;
  await refresh();
  const wanted = (state.manifest?.segments ?? []).filter((entry) => isWanted(entry, wish));
  const here = wanted.filter((entry) => !isFarOnly(entry)).map(({ file }) => file);
  if (here.length > 0) await committer.changeFar({ ...noChanges, home: here });
  const there = wanted.filter(isFarOnly);
  const total = there.reduce((sum, entry) => sum + liveRows(entry), 0);
  let rows = 0;
  for (const entry of there) {
    if (signal?.aborted === true) throw new LogstrataError('cancelled', 'fetching was stopped');
    await fetchUnit(context, entry, signal, (count) => onProgress?.((rows += count) / total));
    await refresh();
  }
  return { units: wanted.length, rows: total, stillHere: here.length };
}

const noChanges = { shipped: [], freed: [], dropped: [] };

function isWanted(entry: SegmentEntry, { sinceMs, untilMs }: FetchWish): boolean {
  const { far, runs, timeMinMs } = entry;
  const first = runs[0]!.partition;
  const from = first === importedPartition ? (timeMinMs ?? -Infinity) : first * hourMs;
  const until = (ageingPartition(entry, runs.at(-1)!.partition) + 1) * hourMs;
  return far !== undefined && until > (sinceMs ?? -Infinity) && from < (untilMs ?? Infinity);
}

async function fetchUnit(
  { state, committer, directory, workers, cluster }: FetchContext,
  entry: SegmentEntry,
  signal: AbortSignal | undefined,
  onRows: (rows: number) => void,
): Promise<void> {
  const { agent } = state;
  const { schemaVersion, codec, keepUntilMs, file } = entry;
  const schema = schemaOf(state.manifest!, schemaVersion);
  const id = await committer.begin();
  const target = { directory, workers, agent, id, schema, schemaVersion, codec, keepUntilMs };
  const merged = new MergedSegments({ ...target, replaces: [file] });
  try {
    let rows = 0;
    for await (const answer of pagesOf(cluster, agent, entry, schema, signal)) {
      rows += answer.batch.length;
      for (const { from, to, position } of rangesOf(answer))
        await merged.add({ batch: answer.batch, from, to }, position.partition, position.ordinal);
      onRows(answer.batch.length);
    }
    if (rows !== liveRows(entry))
      throw new LogstrataError(
        'unavailable',
        `the far tier has ${rows} of the ${liveRows(entry)} records of ${file}`,
      );
    const written = await merged.finish();
    await committer.publish(id, {
      segments: written.map((segment) => ({ ...segment, stays: true as const })),
      removes: [file],
      removesLiveFrom: [entry.liveFrom ?? null],
      checkpoints: [],
      rejected: [],
      counters: noCounters,
    });
  } finally {
    await merged.abort();
    await committer.end(id);
  }
}

/** The live rows of a unit, ascending, page by page. Rows that are not live precede them. */
async function* pagesOf(
  cluster: FarCluster,
  agent: string,
  entry: SegmentEntry,
  schema: Schema,
  signal: AbortSignal | undefined,
): AsyncGenerator<FarAnswer> {
  const copy = entry.far!;
  const runs = liveRuns(entry);
  const last = runs.at(-1)!;
  const to = { partition: last.partition, ordinal: last.firstOrdinal + last.rows - 1 };
  const pageRows = Math.floor(farAnswerBytes / Math.max(1, copy.bytes / copy.rows));
  const limit = Math.max(1, Math.min(rowGroupRowsMax, pageRows));
  let from: Position | null = runStart(runs[0]!);
  while (from !== null) {
    const question = { agent, shard: copy.shard, copies: [copy], from, to, limit, condition: null, schema };
    const answer: FarAnswer = await cluster.ask({ ...question, direction: 'forward' }, signal);
    const { length } = answer.batch;
    if (length > 0) yield answer;
    from =
      answer.isCut && length > 0
        ? { partition: answer.partitions[length - 1]!, ordinal: answer.ordinals[length - 1]! + 1 }
        : null;
  }
}

/** The ranges of rows of an answer with consecutive positions. */
function* rangesOf({
  partitions,
  ordinals,
  batch,
}: FarAnswer): Generator<{ readonly from: number; readonly to: number; readonly position: Position }> {
  for (let from = 0; from < batch.length;) {
    let to = from + 1;
    while (
      to < batch.length &&
      partitions[to] === partitions[from] &&
      ordinals[to] === ordinals[from]! + to - from
    )
      to++;
    yield { from, to, position: { partition: partitions[from]!, ordinal: ordinals[from]! } };
    from = to;
  }
}
