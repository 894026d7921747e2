import { stableOrder } from '../../core/arrays.js';
import type { Column } from '../../columns/column.js';
import type { ForeignChunk, ForeignColumn, ForeignRead } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/read-foreign.js';
import { assert } from '../../core/errors.js';
import { partitionOfTime } from '../../core/cursor.js';
import { placementTimes } from '../manifest/placement.js';
import { changeColumn, type ValueChange } from './column-source.js';

/** The column whose times place the rows of a row group. */
export interface PlacedBy {
  readonly columnIndex: number;
  readonly column: ForeignColumn;
  readonly chunk: ForeignChunk;
  readonly change: ValueChange;
  /** The clock (ms) by which rows without a readable time, and rows with times in the future, are placed. */
  readonly nowMs: number;
}

const timeOnly = { fields: [{ name: 'time', type: 'time' }] } as const;

/** The placement times (ms) of a span's rows. `previousMs` is the placement time of the row before them. */
export function spanTimes(times: Column, nowMs: number, previousMs: number | null): Float64Array {
  const rows = times.length;
  const batch = { length: rows, columns: [times] };
  return placementTimes(timeOnly, batch, nowMs, [{ rows, previousTimeMs: previousMs }]);
}

/**
 * The rows of a span in the order of their positions: by hour, and in file order within an hour.
 *
 * @param read the read request for another column of the same row group, with the same spans
 * @param times the column's values by span, as far as they have been read before; those that are read are added
 */
export async function hourOrder(
  placedBy: PlacedBy,
  read: ForeignRead,
  span: number,
  previousMs: number | null,
  times: Map<number, Column>,
): Promise<{ order: Uint32Array; bytesRead: number }> {
  const { columnIndex, column, chunk, change, nowMs } = placedBy;
  let bytesRead = 0;
  if (!times.has(span)) {
    const decoded = await decodeForeign({ ...read, columnIndex, column, chunk, wanted: span, pages: null });
    for (const found of decoded.spans) times.set(found.span, found.column);
    bytesRead = decoded.bytesRead;
  }
  const own = times.get(span);
  assert(own !== undefined, 'a reading gives the wanted span');
  const hours = spanTimes(changeColumn(own, change), nowMs, previousMs).map(partitionOfTime);
  return { order: stableOrder(hours), bytesRead };
}
