import { comparePositions, formatCursor, hourMs, type Position } from '../core/cursor.js';
import type { HotDamage } from '../store/hot/hot-segment-file.js';
import type { HotEntry, OrdinalRun, Run } from '../store/manifest/manifest.js';
import type { Coverage } from '../store/manifest/coverage.js';

/** Records that can no longer be answered, by position and time. */
export interface LostRecords {
  readonly file: string;
  readonly reason: string;
  /** Cursors of the first and the last record; null if unknown. */
  readonly first: string | null;
  readonly last: string | null;
  /** Number of records; null if unknown. */
  readonly records: number | null;
  /** Start (inclusive) and end (exclusive) of the hours of their positions, as times (ms). Both are 0 if unknown. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The records of a run of positions. */
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

/** The loss of a whole file whose records are unknown. Their day is known from the file's folder, if it is a folder of a day. */
export function lostDay(file: string, reason: string): LostRecords {
  const day = /^dt=(\d{4,}-\d\d-\d\d)\//.exec(file)?.[1];
  const fromMs = day === undefined ? 0 : Date.parse(`${day}T00:00:00Z`);
  const untilMs = day === undefined ? 0 : fromMs + 24 * hourMs;
  return { file, reason, first: null, last: null, records: null, fromMs, untilMs };
}

/** The damage of a hot file that is missing. */
export function missingHot({ committedBytes }: Pick<HotEntry, 'committedBytes'>, reason: string): HotDamage {
  return { offset: 0, bytes: committedBytes ?? Infinity, reason, after: null, before: null };
}

/** Whether the damaged range lies within the part of the file that the manifest's values include. */
export function isCounted(
  { foldedBytes }: Pick<HotEntry, 'foldedBytes'>,
  { offset, bytes }: HotDamage,
): boolean {
  return offset + bytes <= foldedBytes;
}

/**
 * The records lost by damage in a hot file, except those that are in `coverage` because another file has them. The manifest knows the
 * positions of the rows that it includes. For later batches they are derived from the positions before and after the damage.
 */
export function lostInHot(entry: HotEntry, damage: HotDamage, coverage: Coverage): LostRecords[] {
  const { file, foldedBytes, runs } = entry;
  const { offset, bytes, reason, after, before } = damage;
  const lost: LostRecords[] = [];
  const missing = (run: Run): LostRecords[] =>
    coverage.missing(run).map((each) => lostRun(file, reason, each));
  let from = after;
  if (offset < foldedBytes && runs !== undefined) {
    const first = after === null ? 0 : (rowOf(runs, after) ?? -1) + 1;
    const end = before === null ? undefined : rowOf(runs, before);
    lost.push(...clipRuns(runs, first, end ?? Infinity).flatMap(missing));
    // An invalid end after the part that the manifest includes was never committed.
    const isEnd = before === null && bytes !== Infinity;
    if (isCounted(entry, damage) || isEnd || end !== undefined) return lost;
    from = lastOf(runs) ?? after;
  }
  const rows = from?.partition === before?.partition ? (before?.ordinal ?? 0) - (from?.ordinal ?? 0) - 1 : 0;
  if (from === null || rows <= 0) return [...lost, lostBetween(file, reason, from, before)];
  const run = { partition: from.partition, firstOrdinal: from.ordinal + 1, firstRow: 0, rows };
  return [...lost, ...missing(run)];
}

/** The rows [first, end) of runs. */
export function clipRuns(runs: readonly Run[], first: number, end: number): Run[] {
  return runs.flatMap(({ partition, firstOrdinal, firstRow, rows }) => {
    const from = Math.max(firstRow, first);
    const to = Math.min(firstRow + rows, end);
    if (from >= to) return [];
    return { partition, firstOrdinal: firstOrdinal + from - firstRow, firstRow: from, rows: to - from };
  });
}

/** The row at a position; undefined if there is none. */
function rowOf(runs: readonly Run[], { partition, ordinal }: Position): number | undefined {
  for (const run of runs) {
    const row = ordinal - run.firstOrdinal;
    if (run.partition === partition && row >= 0 && row < run.rows) return run.firstRow + row;
  }
  return undefined;
}

function lastOf(runs: readonly Run[]): Position | undefined {
  const last = runs.at(-1);
  return last === undefined
    ? undefined
    : { partition: last.partition, ordinal: last.firstOrdinal + last.rows - 1 };
}

/** A loss of unknown size, between two positions: the records of a batch may belong to several partitions. */
function lostBetween(
  file: string,
  reason: string,
  after: Position | null,
  before: Position | null,
): LostRecords {
  const known = [after, before].filter((position) => position !== null).sort(comparePositions);
  const fromMs = (known[0]?.partition ?? 0) * hourMs;
  const untilMs = known.length === 0 ? 0 : (known.at(-1)!.partition + 1) * hourMs;
  return { file, reason, first: null, last: null, records: null, fromMs, untilMs };
}
