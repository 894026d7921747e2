import { formatCursor, hourMs } from '../cursor.js';
import type { OrdinalRun } from '../storage/committed-values.js';

/** Records that can't be answered any more, by position and time. */
export interface LostRecords {
  readonly file: string;
  readonly reason: string;
  /** Cursors of the first and the last; null where nothing tells which they were. */
  readonly first: string | null;
  readonly last: string | null;
  /** How many; null where nothing tells. */
  readonly records: number | null;
  /** The hours that they lay in, as times (ms): from, up to but not with. 0 and 0 where nothing tells. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** What is lost with a run of positions. */
export function lostRun(file: string, reason: string, run: OrdinalRun): LostRecords {
  const { partition, firstOrdinal, rows } = run;
  return {
    file,
    reason,
    first: formatCursor({ partition, ordinal: firstOrdinal }),
    last: formatCursor({ partition, ordinal: firstOrdinal + rows - 1 }),
    records: rows,
    fromMs: partition * hourMs,
    untilMs: (partition + 1) * hourMs,
  };
}

/** What is lost with a file of which only its folder tells the day, if that. */
export function lostDay(file: string, reason: string): LostRecords {
  const day = /^dt=(\d{4,}-\d\d-\d\d)\//.exec(file)?.[1];
  const fromMs = day === undefined ? 0 : Date.parse(`${day}T00:00:00Z`);
  const untilMs = day === undefined ? 0 : fromMs + 24 * hourMs;
  return { file, reason, first: null, last: null, records: null, fromMs, untilMs };
}
