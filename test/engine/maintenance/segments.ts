import {
  type Manifest,
  type Run,
  type SegmentEntry,
  noCounters,
  nothingRetired,
} from '../../../engine/store/manifest/manifest.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { rowGroupRowsMax } from '../../../engine/core/limits.js';
import type { Rewrite } from '../../../engine/maintenance/compaction.js';

/** Bytes of a record in a simulated segment. */
export const rowBytes = 60;

let count = 0;

/** The manifest entry of a segment with `rows` records in one partition of `day`. */
export function segmentOf(
  day: number,
  rows: number,
  more: Partial<SegmentEntry> = {},
  hour = 0,
  firstOrdinal = 1,
): SegmentEntry {
  const rowGroupRows: number[] = [];
  for (let left = rows; left > 0; left -= rowGroupRowsMax) rowGroupRows.push(Math.min(left, rowGroupRowsMax));
  const runs: Run[] = [{ partition: day * 24 + hour, firstOrdinal, firstRow: 0, rows }];
  const codec = more.codec ?? 'lz4';
  return {
    file: `dt=${day}/${String(count++).padStart(12, '0')}-00000.parquet`,
    bytes: rows * (codec === 'zstd' ? rowBytes * 0.7 : rowBytes),
    rows,
    rowGroupRows,
    runs,
    timeMinMs: null,
    timeMaxMs: null,
    footerOffset: 0,
    footerBytes: 0,
    footerChecksum: 0,
    schemaVersion: 1,
    codec,
    gramFilterBytes: 0,
    valueFilterBytes: 0,
    summaryBytes: 16,
    headerBytes: 2044,
    replaces: [],
    ...more,
  };
}

/** A manifest of these segments. */
export function manifestOf(
  segments: readonly SegmentEntry[],
  highestPartition = Math.max(0, ...segments.map((segment) => segment.runs.at(-1)!.partition)),
): Manifest {
  return {
    number: 1,
    agent: 'web',
    schemas: [{ version: 1, schema: makeSchema([{ name: 'time', type: 'time' }]) }],
    segments,
    hot: [],
    attached: [],
    nextOrdinals: [],
    highestPartition,
    checkpoints: [],
    rejected: [],
    counters: noCounters,
    ordinalsFrom: 1,
    loads: [],
    retired: nothingRetired,
  };
}

/** The result of a rewrite: one segment with all the rows. Its runs are not used here. */
export function rewritten({ segments, codec }: Rewrite): SegmentEntry {
  const { partition } = segments[0]!.runs[0]!;
  const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
  return segmentOf(Math.floor(partition / 24), rows, { codec }, partition % 24);
}
