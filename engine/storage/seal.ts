import { concatBatches, sliceBatch, takeRows } from '../batch.js';
import type { RecordBatch } from '../column.js';
import { dayNumber } from '../cursor.js';
import { rowGroupBytesMax, rowGroupRowsMax } from '../limits.js';
import type { Schema } from '../schema.js';
import type { HotFile } from './agent-state.js';
import { compareRuns, type OrdinalRun } from './committed-values.js';
import type { Directory } from './directory.js';
import type { Codec, HotEntry, Run, SegmentEntry } from './manifest.js';
import { batchBytes } from './spill.js';
import { SegmentWriter } from './sealed-segment-writer.js';
import { buildingPath, moveIntoPlace, segmentFile } from './segment-place.js';

/** How a manifest names the hot files: what they hold is counted in it, and only `open` may still grow. */
export function hotEntriesForManifest(files: readonly HotFile[], open: HotFile | undefined): HotEntry[] {
  return files.map((hot) => ({
    ...hot.entry,
    foldedBytes: hot.endBytes,
    committedBytes: hot === open ? null : hot.endBytes,
  }));
}

/** Writes the rows of hot files as sealed segments, sorted by position, one a day and schema version, in their final place. */
export async function sealHotFiles(
  directory: Directory,
  agent: string,
  id: string,
  files: readonly HotFile[],
  codec: Codec,
): Promise<SegmentEntry[]> {
  const entries: SegmentEntry[] = [];
  for (const version of new Set(files.map((hot) => hot.entry.schemaVersion))) {
    const same = files.filter((hot) => hot.entry.schemaVersion === version);
    const { schema } = same[0]!;
    const { batch, runs } = sortedRows(schema, same);
    const groupRows = rowsOfRowGroup(batch);
    for (const day of daysOf(runs)) {
      const path = buildingPath(agent, id, entries.length);
      const writer = await SegmentWriter.create(directory, path, schema, { codec });
      try {
        for (let from = day.fromRow; from < day.toRow; from += groupRows) {
          const rows = sliceBatch(batch, from, Math.min(day.toRow, from + groupRows));
          await writer.appendRowGroup(rows.columns, rows.length);
        }
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

/** Rows of a row group so that it stays within both of its bounds: what restarts have left can be more than one file. */
function rowsOfRowGroup(batch: RecordBatch): number {
  const rowBytes = Math.max(1, batchBytes(batch) / Math.max(1, batch.length));
  return Math.max(1, Math.min(rowGroupRowsMax, Math.floor(rowGroupBytesMax / rowBytes)));
}

/** All rows of hot files in the order of their positions, with their runs. */
function sortedRows(schema: Schema, files: readonly HotFile[]): { batch: RecordBatch; runs: OrdinalRun[] } {
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
  const all = batches.length === 1 ? batches[0]! : concatBatches(schema, batches);
  return { batch: takeRows(all, order), runs: placed.map(({ run }) => run) };
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

/** Adds a run, joining it to the last one where both rows and ordinals go on. */
export function addRun(runs: Run[], { partition, firstOrdinal, firstRow, rows }: Run): void {
  const last = runs.at(-1);
  if (
    last !== undefined &&
    last.partition === partition &&
    last.firstOrdinal + last.rows === firstOrdinal &&
    last.firstRow + last.rows === firstRow
  ) {
    runs[runs.length - 1] = { ...last, rows: last.rows + rows };
  } else {
    runs.push({ partition, firstOrdinal, firstRow, rows });
  }
}
