import {
  arraysOf,
  columnBytes,
  columnValue,
  isValid,
  type Column,
  type PlainColumn,
} from '../../columns/column.js';
import { extremeRows } from '../../columns/zone-map.js';
import { copyColumn } from '../../columns/convert-column.js';
import { plainColumn } from '../../columns/take.js';
import type { ForeignPlace } from '../../objects/object-blocks.js';
import type { ForeignRead, PageTable } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/read-foreign.js';
import { readForeignBytes } from '../../foreign/foreign-source.js';
import { addStripes, stripeBytes } from '../../kernels/xxh64.js';
import { partitionOfTime } from '../../core/cursor.js';
import { heap } from '../../core/arena.js';
import { DamageError, LogstrataError } from '../../core/errors.js';
import { valueBytesMax, filePieceBytes } from '../../core/limits.js';
import { buffersOf, taskIn, type Finished } from '../../workers/task.js';
import { changeColumn, type ValueChange } from './column-source.js';
import { OpenFiles } from '../disk/open-files.js';
import { spanTimes } from './row-order.js';
import { readAllSpans } from './span-placements.js';

/** A column of a foreign file that is to be imported, and how its values are converted. */
export interface ImportJob {
  readonly read: ForeignRead;
  readonly change: ValueChange;
}

/** The wanted span, and others that were decoded with it. */
export interface ImportedSpans {
  readonly spans: readonly ImportedSpan[];
  readonly pages: PageTable | null;
  /** Number of byte sequences that were not UTF-8. */
  readonly replaced: number;
}

/** A column of a span, in memory of its own. */
export interface ImportedSpan {
  readonly span: number;
  readonly column: PlainColumn;
  readonly bytes: number;
  /** Number of values that the field's type cannot represent. They become null. */
  readonly unreadable: number;
  /** The first such value; empty if there is none. */
  readonly example: string;
}

/** A longer example is truncated. */
const exampleCharactersMax = 60;

/** Reads and decodes a column. Throws as `decodeForeign` does, and `limit` for a value that is too long to be stored. */
export async function importSpans({ read, change }: ImportJob): Promise<Finished<ImportedSpans>> {
  const { spans, pages, replaced } = await decodeForeign(read);
  const imported = spans.map(({ span, column: stored }): ImportedSpan => {
    const changed = plainColumn(changeColumn(stored, change));
    assertStorable(changed, read);
    // Spans of one reading share memory, but each is moved to other threads by itself.
    const column = spans.length > 1 ? copyColumn(changed, heap) : changed;
    return { span, column, bytes: columnBytes(column), ...lostValues(stored, column, change) };
  });
  return {
    result: { spans: imported, pages, replaced },
    transfer: buffersOf(imported.flatMap(({ column }) => arraysOf(column))),
  };
}

function assertStorable(column: PlainColumn, { path, column: { name }, rowGroup }: ForeignRead): void {
  if (column.kind !== 'bytes') return;
  const { offsets, length } = column;
  for (let row = 0; row < length; row++) {
    const bytes = offsets[row + 1]! - offsets[row]!;
    if (bytes <= valueBytesMax) continue;
    const message = `${path}: column "${name}" of row group ${rowGroup} has a value of ${bytes} bytes, more than the maximum of ${valueBytesMax}: exclude the column (fields), or query the file in place (mode: in-place)`;
    throw new LogstrataError('limit', message, { path });
  }
}

/** Counts the values that were present before the conversion and are null after it. */
function lostValues(
  before: Column,
  after: PlainColumn,
  { unit, format, conversion }: ValueChange,
): Pick<ImportedSpan, 'unreadable' | 'example'> {
  if (unit === null && format === null && conversion === 'none') return { unreadable: 0, example: '' };
  let unreadable = 0;
  let example = '';
  for (let row = 0; row < after.length; row++) {
    if (!isValid(before.validity, row) || isValid(after.validity, row)) continue;
    if (unreadable++ === 0) example = String(columnValue(before, row)).slice(0, exampleCharactersMax);
  }
  return { unreadable, example };
}

/** Bytes [from, to) of a file to hash. They are whole stripes, except at the end of the file. */
export interface HashJob extends ForeignPlace {
  readonly from: number;
  readonly to: number;
  /** State of the hash over the preceding bytes. */
  readonly lanes: Uint32Array;
}

/** The state of the hash after a job. */
export interface HashedBytes {
  readonly lanes: Uint32Array;
  /** The bytes after the last whole stripe. */
  readonly rest: Uint8Array;
}

/** Reads and hashes bytes. Throws `damaged` if the file ends before `to`, and as `readForeignBytes` does. */
export function hashBytes({ path, copy, from, to, lanes }: HashJob): Finished<HashedBytes> {
  const files = new OpenFiles(1);
  try {
    let rest = new Uint8Array(0);
    for (let at = from; at < to; at += filePieceBytes) {
      const piece = new Uint8Array(Math.min(filePieceBytes, to - at));
      const read = readForeignBytes({ path, copy }, at, piece, files);
      if (read < piece.length)
        throw new DamageError(
          `${path}, at byte ${at + read}: the file ends here: it is shorter than before`,
          {
            path,
            offset: at + read,
          },
        );
      addStripes(lanes, piece);
      rest = piece.slice(piece.length - (piece.length % stripeBytes));
    }
    return { result: { lanes, rest }, transfer: [] };
  } finally {
    files.close();
  }
}

/** Readings of the column that places rows, in successive row groups. */
export interface PlaceJob {
  readonly reads: readonly ForeignRead[];
  readonly change: ValueChange;
  readonly nowMs: number;
  /** Placement time (ms) of the row before the first one; null if there is none. */
  readonly previousMs: number | null;
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
export async function placeSpans(job: PlaceJob): Promise<Finished<PlacedSpans>> {
  const spans: SpanHours[] = [];
  const bounds = new TimeBounds();
  let { previousMs } = job;
  for (const read of job.reads) {
    for (const times of (await readAllSpans(read, job.change)).columns) {
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

/** Reads a column for an import on a thread. */
export const importTask = taskIn(import.meta.url, { importSpans }, true);

/** Hashes bytes of a file on a thread. */
export const hashTask = taskIn(import.meta.url, { hashBytes }, true);

/** Determines the hours of the rows of row groups on a thread. */
export const placeTask = taskIn(import.meta.url, { placeSpans }, true);
