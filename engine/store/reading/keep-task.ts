import { columnLayout } from '../../columns/column-layout.js';
import { foreignMemory, type MemoryRange } from '../../memory/shared-memory.js';
import { RangeSpace } from '../../parquet/column-space.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { keepFilters, type KeptKind } from '../sealed/kept-filters.js';
import { noFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { summaryAt, type SummaryPlace } from '../sealed/summary-cache.js';
import type { PooledChunk } from './pooled-chunk-task.js';

/** The filters of one field and kind, to be read into the buffer pool. */
export interface KeepJob {
  readonly summary: SummaryPlace;
  readonly kind: KeptKind;
  /** Index of the field in the segment's schema. */
  readonly field: number;
}

/** A `KeepJob` with the range of the pool's memory to read into. */
export interface PooledKeepJob extends KeepJob {
  readonly range: MemoryRange;
}

/** Reads and checks filters: the work of `keepTask`. Throws what reading a file throws. */
export function work({ summary, kind, field, range }: PooledKeepJob): Finished<PooledChunk> {
  const space = new RangeSpace(foreignMemory(range), range.address, range.sizeBytes);
  const readFrom = (path: string, offset: number, bytes: number): Uint8Array => {
    const target = new Uint8Array(bytes);
    return target.subarray(0, openFiles.read(path, offset, target));
  };
  const read = (offset: number, bytes: number): Uint8Array => readFrom(summary.path, offset, bytes);
  const filters = summaryAt(summary, readFrom) ?? new SegmentFilters(noFilters, summary.rowGroups);
  const kept = keepFilters(kind, filters, field, space.kept, read);
  return { result: { layout: columnLayout(kept), columnBytes: space.columnBytes }, transfer: [] };
}

/** Reads the filters of a field into the pool's memory on a thread. */
export const keepTask: Task<PooledKeepJob, PooledChunk> = { module: builtModule(import.meta.url), work };
