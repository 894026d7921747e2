import { extremeRows } from '../../columns/zone-map.js';
import { isValid, type Column } from '../../columns/column.js';
import { plainColumn } from '../../columns/take.js';
import type { ForeignPlace } from '../../objects/object-blocks.js';
import type { ForeignChunk, ForeignColumn, ForeignFormat, ForeignRead } from '../../foreign/foreign-file.js';
import { partitionOfTime } from '../../core/cursor.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { readAllSpans, spansOf } from './span-placements.js';
import type { ValueChange } from './column-source.js';
import { spanTimes } from './row-order.js';

/** Row groups of a file, and the column that places their rows. */
export interface PlaceJob extends ForeignPlace {
  readonly format: ForeignFormat;
  readonly columnIndex: number;
  readonly column: ForeignColumn;
  readonly change: ValueChange;
  readonly rowGroups: readonly PlacedRowGroup[];
  readonly nowMs: number;
  /** Placement time (ms) of the row before the first one; null if there is none. */
  readonly previousMs: number | null;
}

/** A row group, with its number in the file. */
export interface PlacedRowGroup {
  readonly rowGroup: number;
  readonly rows: number;
  readonly chunk: ForeignChunk;
}

/** The hours of the rows. */
export interface PlacedSpans {
  readonly spans: readonly SpanHours[];
  /** Placement time (ms) of the last row; the job's `previousMs` if there is no row. */
  readonly lastMs: number | null;
  /** Minimum and maximum of the times; null if no row has one. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
}

/** The number of rows of a span in each hour. */
export interface SpanHours {
  readonly isOrdered: boolean;
  /** As `SpanPlacement.previousMs`. */
  readonly previousMs: number | null;
  readonly rows: ReadonlyMap<number, number>;
}

/** Reads only the column that places rows. Throws `DamageError` for malformed data. */
export async function work(job: PlaceJob): Promise<Finished<PlacedSpans>> {
  const spans: SpanHours[] = [];
  const bounds = new TimeBounds();
  let { previousMs } = job;
  for (const rowGroup of job.rowGroups) {
    for (const times of await timesOfRowGroup(job, rowGroup)) {
      bounds.add(times);
      const placed = spanTimes(times, job.nowMs, previousMs);
      const { isOrdered, rows } = hoursOf(placed);
      spans.push({ isOrdered, rows, previousMs: isValid(times.validity, 0) ? null : previousMs });
      previousMs = placed.at(-1)!;
    }
  }
  const { timeMinMs, timeMaxMs } = bounds;
  return { result: { spans, lastMs: previousMs, timeMinMs, timeMaxMs }, transfer: [] };
}

/** The times of each span of a row group. */
async function timesOfRowGroup(job: PlaceJob, rowGroup: PlacedRowGroup): Promise<readonly Column[]> {
  return (await readAllSpans(readOf(job, rowGroup), job.change)).columns;
}

/** The read request for the placing column in one row group. */
export function readOf(
  { path, copy, format, columnIndex, column }: Omit<PlaceJob, 'rowGroups'>,
  { rowGroup, rows: rowGroupRows, chunk }: PlacedRowGroup,
): ForeignRead {
  const spans = spansOf(rowGroupRows);
  const place = { path, copy, format, columnIndex, column, rowGroup, rowGroupRows, chunk };
  return { ...place, spans, wanted: 0, pages: null };
}

function hoursOf(placedMs: Float64Array): { isOrdered: boolean; rows: Map<number, number> } {
  const rows = new Map<number, number>();
  let isOrdered = true;
  let last = 0;
  for (let from = 0; from < placedMs.length;) {
    const hour = partitionOfTime(placedMs[from]!);
    let end = from + 1;
    while (end < placedMs.length && partitionOfTime(placedMs[end]!) === hour) end++;
    rows.set(hour, (rows.get(hour) ?? 0) + end - from);
    isOrdered &&= hour >= last;
    last = hour;
    from = end;
  }
  return { isOrdered, rows };
}

/** Minimum and maximum of times. */
class TimeBounds {
  timeMinMs: number | null = null;
  timeMaxMs: number | null = null;

  add(times: Column): void {
    const plain = plainColumn(times);
    const extremes = plain.kind === 'bytes' ? null : extremeRows(plain);
    if (extremes === null || plain.kind === 'bytes') return;
    const least = Number(plain.values[extremes.least]!);
    const greatest = Number(plain.values[extremes.greatest]!);
    this.timeMinMs = Math.min(this.timeMinMs ?? least, least);
    this.timeMaxMs = Math.max(this.timeMaxMs ?? greatest, greatest);
  }
}

/** Determines the hours of the rows of row groups on a thread. */
export const placeTask: Task<PlaceJob, PlacedSpans> = {
  module: builtModule(import.meta.url),
  isLong: true,
  work,
};
