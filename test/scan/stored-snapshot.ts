import { compareRuns } from '../../engine/store/manifest/run-list.js';
import type { RecordBatch } from '../../engine/columns/column.js';
import { batchFromRows } from '../model/rows.js';
import type { Snapshot, SnapshotRun } from '../../engine/store/reading/snapshot.js';
import { runsOfSegment } from '../../engine/store/reading/agent-state.js';
import type { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import { HotRows } from '../../engine/store/reading/hot-rows.js';
import type { Run } from '../../engine/store/manifest/manifest.js';
import type { SealedSegment } from '../../engine/store/reading/sealed-segment.js';
import type { Dataset, ModelRecord } from '../model/dataset.js';
import { openSegment, sealBatches } from '../parquet/segment-sample.js';

/** How records are stored. */
export interface StoredLayout {
  /** Sealed segments that stretches of `stretch` records are dealt to in turn. */
  readonly segments: number;
  readonly stretch: number;
  readonly rowGroupRows: number;
  /** The number of last records that are hot. */
  readonly hotRecords: number;
  readonly codec: 'lz4' | 'zstd';
}

/** A snapshot of real files, and how often it was released. */
export interface StoredSnapshot extends Snapshot {
  readonly segments: readonly SealedSegment[];
  readonly released: () => number;
}

/** Stores the records as files of `directory`, under `name`. Their columns are decoded into `pool`, or into one pool for each segment. */
export async function storeSnapshot(
  directory: Directory,
  name: string,
  dataset: Dataset,
  layout: StoredLayout,
  pool?: BufferPool,
): Promise<StoredSnapshot> {
  const { schema, records } = dataset;
  const sealed = records.slice(0, Math.max(0, records.length - layout.hotRecords));
  const runs: SnapshotRun[] = [];
  const segments: SealedSegment[] = [];
  for (let each = 0; each < layout.segments; each++) {
    const own = sealed.filter((_, i) => Math.floor(i / layout.stretch) % layout.segments === each);
    if (own.length === 0) continue;
    const batches: RecordBatch[] = [];
    for (let from = 0; from < own.length; from += layout.rowGroupRows)
      batches.push(batchOf(dataset, own.slice(from, from + layout.rowGroupRows)));
    const path = `${name}-${each}.parquet`;
    const entry = await sealBatches(directory, path, schema, batches, layout.codec, runsOf(own));
    const segment = await openSegment(directory, entry, schema, pool);
    segments.push(segment);
    runs.push(...runsOfSegment(entry, segment.rowGroups(schema)));
  }
  const hot = records.slice(sealed.length);
  if (hot.length > 0) {
    const rows = new HotRows(schema, 'hot');
    rows.append(batchOf(dataset, hot), runsOf(hot));
    const rowGroup = rows.rowGroup(schema, hot.length);
    runs.push(...rows.runs().map((run) => ({ ...run, rowGroup })));
  }
  let released = 0;
  return {
    schema,
    segments,
    runs: runs.sort(compareRuns),
    release: () => void released++,
    released: () => released,
  };
}

function batchOf({ schema }: Dataset, records: readonly ModelRecord[]): RecordBatch {
  return batchFromRows(
    schema,
    records.map(({ values }) => values),
  );
}

function runsOf(records: readonly ModelRecord[]): Run[] {
  const runs: Run[] = [];
  records.forEach(({ position: { partition, ordinal } }, row) => {
    const last = runs.at(-1);
    if (last?.partition === partition && last.firstOrdinal + last.rows === ordinal)
      runs[runs.length - 1] = { ...last, rows: last.rows + 1 };
    else runs.push({ partition, firstOrdinal: ordinal, firstRow: row, rows: 1 });
  });
  return runs;
}
