import { setImmediate } from 'node:timers/promises';
import { gatherBatch, sliceBatch, takeRows, wholeBatches } from '../../columns/take.js';
import { type RecordBatch, batchBytes } from '../../columns/column.js';
import { dayNumber } from '../../core/cursor.js';
import { leaseMemory } from '../../core/memory-lease.js';
import { rowGroupBytesMax, rowGroupRowsMax, workerRowsMin } from '../../core/limits.js';
import { packedBytes, packSteps, unpackBatch } from '../../columns/packed-batch.js';
import type { Schema } from '../../core/schema.js';
import { finishInOrder, type Pending } from '../../workers/in-order.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import type { HotFile } from '../reading/agent-state.js';
import { compareRuns, buildingPath, moveIntoPlace, segmentFile } from '../manifest/commit.js';
import type { Directory } from '../disk/directory.js';
import { encodeInTurn, encodeOnPool, type LentRowGroup } from '../sealed/encode-task.js';
import { addRun, type HotEntry, type OrdinalRun, type Run, type SegmentEntry } from '../manifest/manifest.js';
import { SegmentWriter } from '../sealed/sealed-segment-writer.js';
import type { Codec } from '../../parquet/compression.js';

/**
 * The hot entries of the next manifest. The manifest's values include everything in these files, and only `open` may still grow. A file
 * that failed before its first append is left out.
 */
export function hotEntriesForManifest(files: readonly HotFile[], open: HotFile | undefined): HotEntry[] {
  return files
    .filter((hot) => hot === open || hot.endBytes > 0)
    .map((hot) => ({
      ...hot.entry,
      foldedBytes: hot.endBytes,
      runs: hot.rows.runs(),
      committedBytes: hot === open ? null : hot.endBytes,
    }));
}

export interface SealContext {
  readonly directory: Directory;
  readonly agent: string;
  /** The unit of work that builds the segments. */
  readonly id: string;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

/**
 * Writes the rows of hot files as sealed segments, sorted by position, one segment for each day and schema version, and moves them into
 * place. Row groups are encoded on the threads of the pool, so that queries can run meanwhile.
 */
export async function sealHotFiles(
  { directory, agent, id, codec, workers }: SealContext,
  files: readonly HotFile[],
): Promise<SegmentEntry[]> {
  const entries: SegmentEntry[] = [];
  for (const version of new Set(files.map((hot) => hot.entry.schemaVersion))) {
    const same = files.filter((hot) => hot.entry.schemaVersion === version);
    const { schema } = same[0]!;
    const { batch, order, runs } = rowsInOrder(schema, same);
    const groupRows = rowsOfRowGroup(batch);
    for (const day of daysOf(runs)) {
      const path = buildingPath(agent, id, entries.length);
      const isSingleGroup = day.toRow - day.fromRow <= groupRows;
      const singleGroupRuns = isSingleGroup ? day.runs.length : null;
      const writer = await SegmentWriter.create(directory, path, schema, { codec, singleGroupRuns });
      try {
        const encoding: Pending[] = [];
        for (let from = day.fromRow; from < day.toRow; from += groupRows) {
          const rows = order.subarray(from, Math.min(day.toRow, from + groupRows));
          await encodeInTurn(
            encoding,
            workers.depth,
            () => encodeRows({ codec, workers }, schema, batch, rows),
            (encoded) => writer.writeRowGroup(encoded),
          );
        }
        await finishInOrder(encoding);
        const written = await writer.finish(day.runs, version);
        const file = segmentFile(id, entries.length, day.runs[0]!.partition);
        await moveIntoPlace(directory, agent, path, file);
        entries.push({
          ...written,
          file,
          schemaVersion: version,
          replaces: same.map((hot) => hot.entry.file),
        });
      } finally {
        await writer.abort();
      }
    }
  }
  return entries;
}

/** Number of rows per row group so that both of its limits are kept. After restarts there may be several hot files to seal together. */
function rowsOfRowGroup(batch: RecordBatch): number {
  const rowBytes = Math.max(1, batchBytes(batch) / Math.max(1, batch.length));
  return Math.max(1, Math.min(rowGroupRowsMax, Math.floor(rowGroupBytesMax / rowBytes)));
}

/** Encodes a copy of the rows at `order`. Rows that are already in order are copied as one range. */
async function encodeRows(
  { codec, workers }: Pick<SealContext, 'codec' | 'workers'>,
  schema: Schema,
  batch: RecordBatch,
  order: Uint32Array,
): Promise<LentRowGroup> {
  const encode = (rows: RecordBatch) => encodeOnPool(workers, schema, codec, wholeBatches([rows]));
  const first = order[0]!;
  for (let i = 1; i < order.length; i++) if (order[i] !== first + i) return encode(takeRows(batch, order));
  const rows = sliceBatch(batch, first, first + order.length);
  // Rows that are moved to a thread would be new memory each time, which is freed only when the thread's garbage collector runs. Leased
  // memory avoids that.
  const isSent = workers.threads > 0 && rows.length >= workerRowsMin;
  const lease = isSent ? leaseMemory(packedBytes(rows)) : null;
  if (lease === null) return encode(gatherBatch(wholeBatches([rows]), schema));
  try {
    // Yield between steps of the copy, so that queries can run.
    for (const steps = packSteps(rows, lease.bytes, 0); steps.next().done !== true;) await setImmediate();
    const copy = wholeBatches([unpackBatch(lease.bytes, 0)]);
    return await encodeOnPool(workers, schema, codec, copy, [lease.range]);
  } finally {
    lease.free();
  }
}

/** All rows of hot files, their order by position, and their runs in that order. */
function rowsInOrder(
  schema: Schema,
  files: readonly HotFile[],
): { batch: RecordBatch; order: Uint32Array; runs: OrdinalRun[] } {
  const batches: RecordBatch[] = [];
  const placed: { run: OrdinalRun; row: number }[] = [];
  let base = 0;
  for (const { rows } of files) {
    batches.push(rows.batch());
    for (const run of rows.runs()) placed.push({ run, row: base + run.firstRow });
    base += rows.rowCount;
  }
  placed.sort((a, b) => compareRuns(a.run, b.run));
  const order = new Uint32Array(base);
  let at = 0;
  for (const { run, row } of placed) for (let i = 0; i < run.rows; i++) order[at++] = row + i;
  const batch = batches.length === 1 ? batches[0]! : gatherBatch(wholeBatches(batches), schema);
  return { batch, order, runs: placed.map(({ run }) => run) };
}

function daysOf(runs: readonly OrdinalRun[]): { fromRow: number; toRow: number; runs: Run[] }[] {
  const days: { day: number; fromRow: number; toRow: number; runs: Run[] }[] = [];
  let row = 0;
  for (const run of runs) {
    const day = dayNumber(run.partition);
    let last = days.at(-1);
    if (last === undefined || last.day !== day) {
      last = { day, fromRow: row, toRow: row, runs: [] };
      days.push(last);
    }
    addRun(last.runs, { ...run, firstRow: row - last.fromRow });
    row += run.rows;
    last.toRow = row;
  }
  return days;
}
