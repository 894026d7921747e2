import type { RecordBatch } from '../../engine/column.js';
import type { Schema } from '../../engine/schema.js';
import { ColumnCache } from '../../engine/storage/column-cache.js';
import type { Directory } from '../../engine/storage/directory.js';
import type { Codec, Run, SegmentEntry } from '../../engine/storage/manifest.js';
import { SealedSegment } from '../../engine/storage/sealed-segment.js';
import { SegmentWriter } from '../../engine/storage/sealed-segment-writer.js';
import type { ReadCounters } from '../../engine/scan/snapshot.js';

/** Hour of 2026-01-01T00:00Z. */
export const samplePartition = 490896;

/** Runs that cover `rows` rows, a few in each partition, with gaps between the ordinals. */
export function sampleRuns(rows: number, runRows = 1000): Run[] {
  const runs: Run[] = [];
  for (let firstRow = 0; firstRow < rows; firstRow += runRows) {
    const partition = samplePartition + Math.floor(runs.length / 3);
    const firstOrdinal = 1 + (runs.length % 3) * (runRows + 7);
    runs.push({ partition, firstOrdinal, firstRow, rows: Math.min(runRows, rows - firstRow) });
  }
  return runs;
}

/** Seals batches, one row group each, as the file `path`. */
export async function sealBatches(
  directory: Directory,
  path: string,
  schema: Schema,
  batches: readonly RecordBatch[],
  codec: Codec,
): Promise<SegmentEntry> {
  const writer = await SegmentWriter.create(directory, path, schema, { codec });
  let rows = 0;
  for (const batch of batches) {
    await writer.appendRowGroup(batch.columns, batch.length);
    rows += batch.length;
  }
  const written = await writer.finish(sampleRuns(rows), 1);
  return { ...written, file: path, schemaVersion: 1, replaces: [] };
}

export function openSegment(
  directory: Directory,
  entry: SegmentEntry,
  schema: Schema,
  cache = new ColumnCache(1 << 28),
): Promise<SealedSegment> {
  return SealedSegment.open(directory, entry.file, entry, schema, cache);
}

export function noReads(): ReadCounters {
  return { bytesRead: 0, columnsDecoded: 0, columnsCached: 0, gramPiecesRead: 0 };
}
