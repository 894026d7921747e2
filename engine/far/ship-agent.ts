import type { AgentToShip, ShipOptions, ShippedAgent, ShipResult } from '../archive/shipping.js';
import type { FarCluster } from './far-cluster.js';
import { problemOf } from './far-transport.js';
import { isOvertaken } from '../maintenance/compaction.js';
import { LogstrataError } from '../core/errors.js';
import {
  type FarAttempt,
  type FarCopy,
  type SegmentEntry,
  type FarLeftover,
  ageingPartition,
  ageReferenceMs,
  isFarOnly,
  type Manifest,
} from '../store/manifest/manifest.js';
import { rulesLeft } from '../store/manifest/retention-rules.js';
import { schemaOf } from '../store/reading/agent-state.js';
import type { Schema } from '../core/schema.js';
import { dropAttempt, newAttempt, shipSegment, type ShippedRows } from './ship-segment.js';
import { dayNumber, hourMs } from '../core/cursor.js';

/** What shipping depends on. */
export interface ShippingMeans {
  readonly cluster: FarCluster;
  readonly policy: FarPolicy;
  /** Limit on the bytes sent per second. */
  readonly bytesPerSecond: number;
  /** Longest time of a query (ms). Rows that left the manifest longer ago are not read any more. */
  readonly longestQueryMs: number;
}

const none: ReadonlySet<string> = new Set();

/** A change of the far tier's part of a manifest that changes nothing. */
export const noChanges = { shipped: [], freed: [], dropped: [] };

/** Copies all rows of a segment as the given attempt. */
export type Ship = (entry: SegmentEntry, schema: Schema, attempt: FarAttempt) => Promise<ShippedRows>;

/** Ships the next segment that is old enough, using `ship`, and publishes its copy. Returns null if there is no such segment. */
export async function shipNext(
  { state, committer }: ShippedAgent,
  { cluster, policy }: ShippingMeans,
  nowMs: number,
  ship: Ship,
  except: ReadonlySet<string> = none,
): Promise<FarCopy | null> {
  const { manifest, agent } = state;
  const entry =
    manifest === undefined
      ? undefined
      : segmentsToShip(manifest, policy, nowMs).find(({ file }) => !except.has(file));
  if (manifest === undefined || entry === undefined) return null;
  const shard = leastFilledShard(manifest, cluster.settings.shards.length);
  const { file } = entry;
  const attempt = newAttempt(agent, file, shard);
  const schema = schemaOf(manifest, entry.schemaVersion);
  await committer.changeFar({ ...noChanges, attempts: [{ ...attempt, sinceMs: nowMs, file }] });
  const rows = await ship(entry, schema, attempt);
  const copy = { ...rows, shippedMs: nowMs };
  try {
    await committer.changeFar({ ...noChanges, shipped: [{ file, copy }] });
  } catch (error) {
    // The segment was replaced meanwhile, and a concurrent drop of the attempt may have missed the last rows sent. Record it again, so that
    // it is dropped again.
    if (isOvertaken(error))
      await committer.changeFar({ ...noChanges, attempts: [{ ...attempt, sinceMs: nowMs }] });
    throw error;
  }
  return copy;
}

/**
 * Removes local files of segments that were shipped long enough ago, and drops attempts that no query reads any more. Before a file is
 * removed, every replica must have all of its rows; otherwise throws `unavailable`, because the file may be the only copy.
 */
export async function freeAndDrop(
  { state, committer }: ShippedAgent,
  { cluster, policy, longestQueryMs }: ShippingMeans,
  nowMs: number,
): Promise<Pick<ShipResult, 'freed' | 'dropped'>> {
  const { manifest, agent } = state;
  if (manifest === undefined) return { freed: 0, dropped: 0 };
  const freed = filesToFree(manifest, policy, nowMs);
  for (const entry of manifest.segments)
    if (freed.includes(entry.file)) await assertEverywhere(cluster, agent, entry);
  if (freed.length > 0) await committer.changeFar({ ...noChanges, freed });
  const leftovers = leftoversToDrop(manifest, nowMs, longestQueryMs);
  for (const leftover of leftovers) await dropAttempt(cluster, agent, leftover);
  const dropped = leftovers.map(({ attempt }) => attempt);
  if (dropped.length > 0) await committer.changeFar({ ...noChanges, dropped });
  return { freed: freed.length, dropped: dropped.length };
}

async function assertEverywhere(
  cluster: FarCluster,
  agent: string,
  { file, far }: SegmentEntry,
): Promise<void> {
  for (const url of cluster.urlsOf(far!.shard)) {
    const why = await problemOf(() => cluster.lackOf(url, agent, far!));
    if (why === null) continue;
    throw new LogstrataError(
      'unavailable',
      `${file} stays here, because ${url} may not have all of it: ${why}`,
    );
  }
}

/** Ships all segments that are old enough, one by one. Segments that were published before a failure stay shipped. */
export async function shipAgent(
  agent: AgentToShip,
  configured: ShippingMeans,
  { signal, onProgress }: ShipOptions,
): Promise<ShipResult> {
  const { state, committer, directory, refresh, now } = agent;
  const tier = { ...configured, policy: { ...configured.policy, shipsAll: true } };
  const { cluster, bytesPerSecond } = tier;
  await refresh();
  await committer.seal();
  await refresh();
  const waiting = state.manifest === undefined ? [] : segmentsToShip(state.manifest, tier.policy, now());
  const total = Math.max(
    1,
    waiting.reduce((sum, { rows }) => sum + rows, 0),
  );
  let sent = 0;
  const onRows = (count: number): void => onProgress?.(Math.min(1, (sent += count) / total));
  let segments = 0;
  let rows = 0;
  let bytes = 0;
  for (;;) {
    const copy = await shipNext(agent, tier, now(), (entry, schema, attempt) =>
      shipSegment(
        { directory, cluster, agent: state.agent, schema, bytesPerSecond, signal, onRows },
        entry,
        attempt,
      ),
    );
    if (copy === null) break;
    await refresh();
    segments++;
    rows += copy.rows;
    bytes += copy.bytes;
  }
  const done = await freeAndDrop(agent, tier, now());
  await refresh();
  return { segments, rows, bytes, ...done };
}

/** When records are shipped, and when their local files are removed. */
export interface FarPolicy {
  /** Age of a day (ms), counted from its end, at which its segments are shipped. */
  readonly afterMs: number;
  /** How long (ms) their local files are kept after that. */
  readonly keepLocalMs: number;
  /** Whether segments that were fetched back are shipped too, which happens only on demand. */
  readonly shipsAll?: boolean | undefined;
}

/** The segments to ship, oldest first. Looks only at the manifest. */
export function segmentsToShip(
  manifest: Manifest,
  { afterMs, shipsAll = false }: FarPolicy,
  nowMs: number,
): SegmentEntry[] {
  const referenceMs = ageReferenceMs(manifest, nowMs);
  return (
    manifest.segments
      .filter((entry) => entry.far === undefined && (shipsAll || entry.stays !== true))
      // Rules of retention come first, since shipped rows are not changed. Rows that mark removed ones stay here.
      .filter((entry) => entry.removed === undefined && rulesLeft(manifest, entry).length === 0)
      .filter((entry) => referenceMs - endOfDayMs(entry) >= afterMs)
      .sort((a, b) => a.runs[0]!.partition - b.runs[0]!.partition)
  );
}

/** The end of the day that a segment ages by. Imported records age by their times. */
function endOfDayMs(entry: SegmentEntry): number {
  return (dayNumber(ageingPartition(entry, entry.runs.at(-1)!.partition)) + 1) * 24 * hourMs;
}

/** Local files of shipped segments that are no longer needed. */
export function filesToFree({ segments }: Manifest, { keepLocalMs }: FarPolicy, nowMs: number): string[] {
  return segments.flatMap((entry) => {
    const isDue = entry.far !== undefined && !isFarOnly(entry) && nowMs - entry.far.shippedMs >= keepLocalMs;
    return isDue ? [entry.file] : [];
  });
}

/** Attempts to drop: those that cannot become a copy and that ended longer ago than a query may take. */
export function leftoversToDrop(
  { farLeftovers = [] }: Manifest,
  nowMs: number,
  longestQueryMs: number,
): readonly FarLeftover[] {
  return farLeftovers.filter(({ file, sinceMs }) => file === undefined && nowMs - sinceMs >= longestQueryMs);
}

/** The shard with the fewest rows; the first one of several. */
export function leastFilledShard({ segments }: Manifest, shards: number): number {
  const rows = new Array<number>(shards).fill(0);
  for (const { far } of segments) if (far !== undefined && far.shard < shards) rows[far.shard]! += far.rows;
  return rows.indexOf(Math.min(...rows));
}
