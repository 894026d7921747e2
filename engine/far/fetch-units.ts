import type { AgentToShip, FetchResult, FetchWish, ShipOptions } from '../archive/shipping.js';
import { hourMs, importedPartition } from '../core/cursor.js';
import { LogstrataError } from '../core/errors.js';
import type { Schema } from '../core/schema.js';
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
import { rowsOfCopy } from '../store/reading/snapshot.js';
import type { FarCluster } from './far-cluster.js';
import { FarStream } from './far-reader.js';
import { noChanges } from './ship-agent.js';

/**
 * Brings units back from the far tier, one at a time. Their rows become local segments again, which are only shipped on demand, and their
 * copies are dropped in the cluster once no query reads them. Positions and answers do not change. Units that were fetched before a failure
 * stay. Throws `unavailable` for a unit that is incomplete.
 */
export async function fetchUnits(
  context: AgentToShip,
  cluster: FarCluster,
  wish: FetchWish,
  { signal, onProgress }: ShipOptions,
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
    await fetchUnit(context, cluster, entry, signal, (count) => onProgress?.((rows += count) / total));
    await refresh();
  }
  return { units: wanted.length, rows: total, stillHere: here.length };
}

function isWanted(entry: SegmentEntry, { sinceMs, untilMs }: FetchWish): boolean {
  const { far, runs, timeMinMs } = entry;
  const first = runs[0]!.partition;
  const from = first === importedPartition ? (timeMinMs ?? -Infinity) : first * hourMs;
  const until = (ageingPartition(entry, runs.at(-1)!.partition) + 1) * hourMs;
  return far !== undefined && until > (sinceMs ?? -Infinity) && from < (untilMs ?? Infinity);
}

async function fetchUnit(
  { state, committer, directory, workers }: AgentToShip,
  cluster: FarCluster,
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
  const ending = new AbortController();
  const pages = pagesOf(
    cluster,
    agent,
    entry,
    schema,
    AbortSignal.any([ending.signal, signal ?? ending.signal]),
  );
  try {
    let rows = 0;
    for (let page = await pages.page(Infinity); page !== null; page = await pages.page(Infinity)) {
      for (const { firstRow: from, rows: count, partition, firstOrdinal } of page.ranges(0, page.rows))
        await merged.add({ batch: page.batch, from, to: from + count }, partition, firstOrdinal);
      rows += page.rows;
      onRows(page.rows);
      pages.leave();
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
    ending.abort(new Error('the fetch has ended'));
    await merged.abort();
    await committer.end(id);
  }
}

/** The live rows of a unit, ascending, page by page. Rows that are not live precede them. */
function pagesOf(
  cluster: FarCluster,
  agent: string,
  entry: SegmentEntry,
  schema: Schema,
  signal: AbortSignal,
): FarStream {
  const copy = entry.far!;
  const runs = liveRuns(entry);
  const last = runs.at(-1)!;
  const question = {
    agent,
    shard: copy.shard,
    copies: [copy],
    from: runStart(runs[0]!),
    to: { partition: last.partition, ordinal: last.firstOrdinal + last.rows - 1 },
    direction: 'forward' as const,
    condition: null,
    predicates: [],
    schema,
    shown: schema,
  };
  const rows = rowsOfCopy(agent, copy, entry.schemaVersion, schema);
  return new FarStream(rows, cluster, question, Infinity, signal, () => undefined);
}
