import type { Position } from '../terms/cursor.js';
import { isLogstrataError } from '../terms/errors.js';
import { scanLines, type ScanSettings } from './execute.js';
import { framedScan } from './framed-lines.js';
import type { Query, ScanStats } from './plan/query.js';
import { lastPosition, restOfQuery } from './plan/rest.js';
import { sharedRuns } from './plan/added-runs.js';
import type { Snapshot, SnapshotRuns } from '../store/reading/snapshot.js';
import type { Scan } from './plan/scan.js';

const attemptsMax = 10;

/**
 * Whether a failed scan may continue in the newest state: a file that its snapshot names was gone, and there have been fewer than 10
 * attempts.
 */
export function canResume(error: unknown, attempt: number): boolean {
  return isLogstrataError(error) && error.code === 'not_found' && attempt < attemptsMax;
}

/**
 * Starts a scan in a process that is not the writer. The writer may replace and remove a segment while it is read. The scan then continues
 * in the newest state after the last record that it gave. The position of a record never changes, so the answer is the same.
 */
export async function resumeScan(
  takeSnapshot: () => Promise<Snapshot>,
  query: Query,
  options: ScanSettings,
): Promise<Scan> {
  const snapshot = await takeSnapshot();
  const { schema, runs } = snapshot;
  const first = scanLines(snapshot, query, options);
  const takeRest = async (): Promise<Snapshot> => withinRuns(await takeSnapshot(), runs);
  const lines = resumingLines(first, takeRest, query, options);
  return framedScan({ stats: first.stats, lines }, query, schema);
}

/** Restricts a newer state to the records of the first one: records that were added later are not part of the answer. */
export function withinRuns({ schema, runs, release }: Snapshot, known: SnapshotRuns): Snapshot {
  return { schema, runs: sharedRuns(known, runs), release };
}

/** @param takeRest takes a snapshot of the newest state, restricted to the records of the first one */
async function* resumingLines(
  first: Scan,
  takeRest: () => Promise<Snapshot>,
  query: Query,
  options: ScanSettings,
): AsyncGenerator<Uint8Array> {
  let scan = first;
  let given = 0;
  let last: Position | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      for await (const piece of scan.lines) {
        // Read before the piece is yielded: the memory of a lent piece is reused when the next one is asked for.
        given = first.stats.rowsReturned;
        last = lastPosition(piece, query);
        yield piece;
      }
      return;
    } catch (error) {
      if (!canResume(error, attempt)) throw error;
      const rest = last === undefined ? query : restOfQuery(query, given, last);
      // `bytesMax` refuses queries before they begin, so it does not apply to the rest of one.
      scan = scanLines(await takeRest(), rest, { ...options, bytesMax: undefined });
      addStats(first.stats, scan.stats);
    }
  }
}

/** Makes each counter of `total`, which the caller already has, the sum of its value now and the counter of `next`, which still grows. */
function addStats(total: ScanStats, next: ScanStats): void {
  for (const key of Object.keys(total) as (keyof ScanStats)[]) {
    const before = total[key];
    Object.defineProperty(total, key, {
      enumerable: true,
      configurable: true,
      get: () => before + next[key],
    });
  }
}
