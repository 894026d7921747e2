import type { ScanStats } from '../../engine/index.js';

/** Upper bounds of a histogram's buckets, in milliseconds (inclusive). Longer durations go into one more bucket. */
export const durationBoundsMs = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
] as const;

/** Histogram of how long the requests with one status took. */
export class Durations {
  /** Count of each bucket; not cumulative. */
  readonly counts: number[] = new Array<number>(durationBoundsMs.length + 1).fill(0);
  sumMs = 0;

  add(durationMs: number): void {
    let i = 0;
    while (i < durationBoundsMs.length && durationMs > durationBoundsMs[i]!) i++;
    this.counts[i]!++;
    this.sumMs += durationMs;
  }
}

/** Sums over all queries on one agent: what they have cost and returned. */
export class QuerySums {
  queries = 0;
  bytesReturned = 0;
  rowsScanned = 0;
  rowsReturned = 0;
  bytesRead = 0;
  rowGroupsScanned = 0;
  rowGroupsPrunedByTime = 0;
  rowGroupsPrunedByZone = 0;
  rowGroupsPrunedByValue = 0;
  rowGroupsPrunedByGram = 0;
  rowGroupsPrunedByDictionary = 0;
  columnsDecoded = 0;
  columnsCached = 0;

  add(stats: ScanStats, bytesReturned: number): void {
    this.queries++;
    this.bytesReturned += bytesReturned;
    this.rowsScanned += stats.rowsScanned;
    this.rowsReturned += stats.rowsReturned;
    this.bytesRead += stats.bytesRead;
    this.rowGroupsScanned += stats.rowGroupsScanned;
    this.rowGroupsPrunedByTime += stats.rowGroupsPrunedByTime;
    this.rowGroupsPrunedByZone += stats.rowGroupsPrunedByZone;
    this.rowGroupsPrunedByValue += stats.rowGroupsPrunedByValue;
    this.rowGroupsPrunedByGram += stats.rowGroupsPrunedByGram;
    this.rowGroupsPrunedByDictionary += stats.rowGroupsPrunedByDictionary;
    this.columnsDecoded += stats.columnsDecoded;
    this.columnsCached += stats.columnsCached;
  }
}

/** Why an answer that had begun was broken off: the client has gone, a limit on time or rate was exceeded, or the server failed. */
export type BreakReason = 'client_gone' | 'client_slow' | 'failed';

/**
 * Counts the requests of the route since it was made. The counters are plain numbers, because a short answer takes only some tens of
 * microseconds and counting must not slow it down.
 */
export class QueryTally {
  /** Requests by the status of their answer, including answers that were broken off later. */
  readonly byStatus = new Map<number, Durations>();
  /** Costs by agent, of requests for which a scan was started. */
  readonly byAgent = new Map<string, QuerySums>();
  readonly broken: Record<BreakReason, number> = { client_gone: 0, client_slow: 0, failed: 0 };

  answered(status: number, durationMs: number): void {
    let durations = this.byStatus.get(status);
    if (durations === undefined) {
      durations = new Durations();
      this.byStatus.set(status, durations);
    }
    durations.add(durationMs);
  }

  scanned(agent: string, stats: ScanStats, bytesReturned: number): void {
    let sums = this.byAgent.get(agent);
    if (sums === undefined) {
      sums = new QuerySums();
      this.byAgent.set(agent, sums);
    }
    sums.add(stats, bytesReturned);
  }
}
