import { groupBy } from '../core/arrays.js';
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { checksumExpressions, checksumOf, FarChecksum } from './far-checksum.js';
import { ofTable, partitionText, type FarCluster } from './far-cluster.js';
import { columnOfField, numberOf, quotedName, tableName, tableStatements } from './far-sql.js';
import { FarFailure } from './far-transport.js';
import { cursorsOf, constantColumn, fieldColumn, nativeBlock, unsignedColumn } from './native-format.js';
import type { Directory } from '../store/disk/directory.js';
import type { FarAttempt, FarCopy, OrdinalRun, SegmentEntry } from '../store/manifest/manifest.js';
import { runsOfSegment } from '../store/reading/agent-state.js';
import { BufferPool } from '../store/reading/buffer-pool.js';
import { allColumns } from '../maintenance/all-columns.js';
import { newReadCounters } from '../store/reading/read-counters.js';
import { SealedSegment } from '../store/reading/sealed-segment.js';
import type { RowGroup } from '../store/reading/snapshot.js';
import { LogstrataError } from '../core/errors.js';
import { farAskMsMax, heldBytesMax, pollMs } from '../core/limits.js';
import type { Schema } from '../core/schema.js';

/** How often to check whether a column has been replicated to a replica. */
const columnLooksMax = 40;

/** What shipping a segment depends on. */
export interface ShipContext {
  readonly directory: Directory;
  readonly cluster: FarCluster;
  readonly agent: string;
  readonly schema: Schema;
  /** Limit on the bytes sent per second, on average. */
  readonly bytesPerSecond: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of rows of each block that was sent. */
  readonly onRows?: ((rows: number) => void) | undefined;
}

/** A copy, without the time at which it was counted. */
export type ShippedRows = Omit<FarCopy, 'shippedMs'>;

/** Bytes and checksum of all rows of a segment, live or not. */
interface Sent {
  readonly bytes: number;
  readonly checksum: string;
}

/**
 * Copies all rows of a segment as an attempt that the manifest names already. Returns the copy once each replica has all rows with the same
 * checksum. The rows of a failed attempt are never read, and are dropped later. Throws `unavailable` with the server and its message,
 * `damaged`, `cancelled`.
 */
export async function shipSegment(
  context: ShipContext,
  entry: SegmentEntry,
  attempt: FarAttempt,
): Promise<ShippedRows> {
  const { cluster } = context;
  const { shard } = attempt;
  try {
    await makeTables(context, shard);
    const { bytes, checksum } = await sendRows(context, entry, attempt);
    const copy = { ...attempt, rows: entry.rows, bytes, checksum, isOnly: false };
    for (const url of cluster.urlsOf(shard)) await countOn(context, url, copy);
    return copy;
  } catch (error) {
    if (!(error instanceof FarFailure)) throw error;
    throw new LogstrataError('unavailable', `${entry.file} was not shipped: ${error.url}: ${error.message}`, {
      cause: error,
    });
  }
}

/** A new attempt to ship a segment. The unit id is derived from the file, and so is the same for each attempt. */
export function newAttempt(agent: string, file: string, shard: number): FarAttempt {
  const unit = createHash('sha256').update(`${agent}/${file}`).digest('hex').slice(0, 16);
  return { unit, attempt: randomBytes(8).toString('hex'), shard };
}

/** Creates the agent's table on each replica, with a column for each field. */
async function makeTables({ cluster, agent, schema }: ShipContext, shard: number): Promise<void> {
  const { settings } = cluster;
  for (const [replica, url] of cluster.urlsOf(shard).entries()) {
    const known = await columnsThere(cluster, url, agent);
    const isMissing = ({ name }: { readonly name: string }): boolean => !known.has(name);
    if (!schema.fields.map((field) => ({ name: columnOfField(field) })).some(isMissing)) continue;
    const [[text = '0'] = []] = await cluster.lines(url, 'SELECT version()');
    const version = Number.parseInt(text, 10);
    const { make, columns } = tableStatements({ settings, agent, schema, shard, replica, version });
    for (const sql of known.size === 0 ? make : []) await cluster.command(url, sql);
    // The new table of a replica gets the columns of the existing replicas, which may differ from these fields.
    const isNewAlone = known.size === 0 && cluster.urlsOf(shard).length === 1;
    for (const { name, add } of isNewAlone ? [] : columns.filter(isMissing)) {
      if (await getsColumn(cluster, url, agent, name, replica === 0 ? 1 : columnLooksMax)) continue;
      for (const sql of add) await cluster.command(url, sql);
    }
  }
}

async function columnsThere(cluster: FarCluster, url: string, agent: string): Promise<Set<string>> {
  const sql = `SELECT name FROM system.columns WHERE ${ofTable(cluster.settings, agent)}`;
  return new Set((await cluster.lines(url, sql)).map(([name = '']) => name));
}

/** Whether a replica has a column, or gets it soon through replication. */
async function getsColumn(
  cluster: FarCluster,
  url: string,
  agent: string,
  name: string,
  looks: number,
): Promise<boolean> {
  for (let look = 1; ; look++) {
    if ((await columnsThere(cluster, url, agent)).has(name)) return true;
    if (look === looks) return false;
    await delay(pollMs);
  }
}

/** Drops an attempt. Idempotent. */
export async function dropAttempt(cluster: FarCluster, agent: string, leftover: FarAttempt): Promise<void> {
  const sql = `ALTER TABLE ${tableName(cluster.settings, agent)} DROP PARTITION ${partitionText(leftover)}`;
  await cluster.anyReplica(leftover.shard, undefined, (url) => cluster.command(url, sql));
}

/** What is inserted besides the rows' values: the ids, and the checksum to add to. */
interface BlockWish extends Pick<FarAttempt, 'unit' | 'attempt'> {
  readonly schema: Schema;
  readonly checksum: FarChecksum;
}

async function sendRows(
  context: ShipContext,
  entry: SegmentEntry,
  { unit, attempt, shard }: FarAttempt,
): Promise<Sent> {
  const { directory, cluster, agent, schema, signal, onRows, bytesPerSecond } = context;
  const pool = new BufferPool(heldBytesMax);
  const segment = new SealedSegment(directory, `${agent}/${entry.file}`, entry, schema, pool);
  const checksum = new FarChecksum(schema);
  const names = ['_cursor', '_unit', '_attempt', ...schema.fields.map(columnOfField)].map(quotedName);
  const sql = `INSERT INTO ${tableName(cluster.settings, agent)} (${names.join(', ')}) FORMAT Native`;
  // All rows of an attempt are sent to one replica. The others fetch them from it.
  const url = await firstReachable(cluster, shard, signal);
  const startMs = performance.now();
  let bytes = 0;
  // While one block is inserted, the next one is encoded.
  let inserting = Promise.resolve();
  try {
    const { liveFrom: _, ...whole } = entry;
    const all = runsOfSegment(whole, segment.rowGroups(schema));
    for (const [rowGroup, runs] of groupBy(all, (run) => run.rowGroup)) {
      if (signal?.aborted === true) throw new LogstrataError('cancelled', 'shipping was stopped');
      const body = await blockOf(rowGroup, runs, { schema, unit, attempt, checksum });
      pool.evict('');
      bytes += body.length;
      await inserting;
      inserting = cluster
        .command(url, sql, { body, timeoutMs: farAskMsMax, signal })
        .then(() => onRows?.(rowGroup.rows));
      // The error is thrown where the promise is awaited.
      inserting.catch(() => undefined);
      const dueMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - startMs);
      if (dueMs > 0) await delay(dueMs, undefined, { signal }).catch(() => undefined);
    }
    await inserting;
    return { bytes, checksum: checksum.value() };
  } finally {
    // Wait, because the attempt may be dropped after a failure, and none of its rows may arrive later.
    await inserting.catch(() => undefined);
    segment.close();
    pool.close();
  }
}

/** Encodes the rows of a row group for insertion, and adds them to the checksum. */
async function blockOf(
  rowGroup: RowGroup,
  runs: readonly OrdinalRun[],
  { schema, unit, attempt, checksum }: BlockWish,
): Promise<Uint8Array> {
  const { rows } = rowGroup;
  const held = await allColumns(rowGroup, schema.fields.length, newReadCounters());
  const { columns } = held;
  try {
    checksum.add({ length: rows, columns }, runs);
    const own = [
      unsignedColumn('_cursor', cursorsOf(runs, rows)),
      constantColumn('_unit', numberOf(unit), rows),
      constantColumn('_attempt', numberOf(attempt), rows),
    ];
    const fields = schema.fields.map((field, i) =>
      fieldColumn(columnOfField(field), field.type, columns[i]!, 0, rows),
    );
    return nativeBlock([...own, ...fields], rows);
  } finally {
    held.release();
  }
}

function firstReachable(
  cluster: FarCluster,
  shard: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  return cluster.anyReplica(shard, signal, async (url) => {
    await cluster.lines(url, 'SELECT 1', { signal });
    return url;
  });
}

/** Waits until a replica has all rows of a copy, and compares the checksum. Throws `FarFailure` if it does not match in time. */
async function countOn(
  { cluster, agent, schema, signal }: ShipContext,
  url: string,
  copy: ShippedRows,
): Promise<void> {
  const deadlineMs = performance.now() + farAskMsMax;
  for (;;) {
    if (signal?.aborted === true) throw new LogstrataError('cancelled', 'shipping was stopped');
    const rows = (await cluster.partRows(url, agent, [copy], signal)).get(copy.attempt) ?? 0;
    if (rows === copy.rows) break;
    if (rows > copy.rows || performance.now() > deadlineMs)
      throw new FarFailure('refused', url, `it has ${rows} of ${copy.rows} rows of attempt ${copy.attempt}`);
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
  const checksum = await checksumThere(cluster, url, agent, schema, copy);
  if (checksum !== copy.checksum)
    throw new FarFailure('refused', url, `attempt ${copy.attempt} has other values than were sent`);
}

/** The checksum of a copy, as computed by one server. */
export async function checksumThere(
  cluster: FarCluster,
  url: string,
  agent: string,
  schema: Schema,
  { unit, attempt }: Pick<FarCopy, 'unit' | 'attempt'>,
): Promise<string | undefined> {
  const [line = []] = await cluster.lines(
    url,
    `SELECT ${checksumExpressions(schema).join(', ')} FROM ${tableName(cluster.settings, agent)} ` +
      `WHERE _unit = ${numberOf(unit)} AND _attempt = ${numberOf(attempt)}`,
  );
  return checksumOf(line);
}
