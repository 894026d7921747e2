import { type ScanStats, shownCharactersMax } from '../../engine/index.js';
import { slowFiltersMax, slowQueriesMax } from '../http/http-limits.js';
import { percentDecode } from '../http/parameters.js';

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

/** The figures of scans that are summed up. */
const summed = [
  'rowsScanned',
  'rowsReturned',
  'bytesRead',
  'rowGroupsScanned',
  'rowGroupsPrunedByTime',
  'rowGroupsPrunedByZone',
  'rowGroupsPrunedByValue',
  'rowGroupsPrunedByGram',
  'rowGroupsPrunedByDictionary',
  'columnsDecoded',
  'columnsCached',
] as const;

/** Sums over all queries on one agent: what they have cost and returned. */
export type QuerySums = Record<'queries' | 'bytesReturned' | (typeof summed)[number], number>;

function noSums(): QuerySums {
  const none = Object.fromEntries(summed.map((name) => [name, 0])) as QuerySums;
  return { ...none, queries: 0, bytesReturned: 0 };
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
      sums = noSums();
      this.byAgent.set(agent, sums);
    }
    sums.queries++;
    sums.bytesReturned += bytesReturned;
    for (const name of summed) sums[name] += stats[name];
  }
}

/** A slow query, as it is logged and shown to operators. */
export interface SlowQuery {
  /** `query` asked for records, `count` for their number. */
  readonly kind: 'query' | 'count';
  /** When it was asked, in milliseconds since the epoch. */
  readonly timeMs: number;
  readonly agent: string;
  /** The client that the query is counted for: an IPv4 address, or the /64 of an IPv6 address. */
  readonly client: string;
  /** The parameters of the query as `name=value`, decoded, each cut to `shownCharactersMax`. */
  readonly parameters: readonly string[];
  /** Number of parameters beyond `slowFiltersMax`, which are not shown. */
  readonly parametersLeftOut: number;
  /** Time from the request to the first byte of the answer, or to the failure. */
  readonly firstMs: number;
  /** Time from the request to the end of the answer, including the time that the client took. */
  readonly totalMs: number;
  /** Why the query failed; null if it did not. */
  readonly failure: string | null;
  /** What the scan has cost; null if none was started. */
  readonly figures: Readonly<ScanStats> | null;
  readonly bytesReturned: number;
}

/** How long a query took and what it cost. Times are those of `SlowQuery`. */
export interface SlowCost {
  readonly timeMs: number;
  readonly firstMs: number;
  readonly totalMs: number;
  readonly failure: string | null;
  readonly stats: Readonly<ScanStats> | undefined;
  /** Bytes of the answer. */
  readonly bytes: number;
}

/** Keeps the last `slowQueriesMax` slow queries, the newest first, and counts all of them. */
export class SlowQueries {
  readonly #limitMs: number;
  readonly #tell: (query: SlowQuery) => void;
  readonly #last: SlowQuery[] = [];
  /** Number of slow queries since this was made. */
  count = 0;

  /**
   * @param limitMs a query that takes this long or longer is slow; null if no query is
   * @param tell is called with each slow query
   */
  constructor(limitMs: number | null, tell: (query: SlowQuery) => void) {
    this.#limitMs = limitMs ?? Infinity;
    this.#tell = tell;
  }

  /** Whether a query is slow by the time to its first byte, or by the work of its scan. The time that the client takes does not count. */
  isSlow(firstMs: number, stats: ScanStats | undefined): boolean {
    const workMs = stats === undefined ? 0 : stats.selectMs + stats.writeMs;
    return firstMs >= this.#limitMs || workMs >= this.#limitMs;
  }

  /** Notes a query for which `isSlow` is true. */
  add(
    kind: SlowQuery['kind'],
    {
      agent,
      client,
      rawQuery,
    }: { readonly agent: string; readonly client: string; readonly rawQuery: string },
    { timeMs, firstMs, totalMs, failure, stats, bytes }: SlowCost,
  ): void {
    const query = {
      kind,
      timeMs: Math.round(timeMs),
      agent,
      client,
      ...shownParameters(rawQuery),
      firstMs: rounded(firstMs),
      totalMs: rounded(totalMs),
      failure,
      figures: stats === undefined ? null : shown(stats),
      bytesReturned: bytes,
    };
    this.count++;
    this.#last.unshift(query);
    if (this.#last.length > slowQueriesMax) this.#last.pop();
    this.#tell(query);
  }

  list(): readonly SlowQuery[] {
    return this.#last;
  }
}

function shown(stats: Readonly<ScanStats>): ScanStats {
  return { ...stats, selectMs: rounded(stats.selectMs), writeMs: rounded(stats.writeMs) };
}

/** Rounds to whole microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** The parameters of a query string, decoded, for showing. Long values and long lists are cut. */
function shownParameters(rawQuery: string): Pick<SlowQuery, 'parameters' | 'parametersLeftOut'> {
  const pieces = rawQuery.split('&').filter((piece) => piece !== '');
  return {
    parameters: pieces.slice(0, slowFiltersMax).map((piece) => cut(percentDecode(piece, true, 'it'))),
    parametersLeftOut: Math.max(0, pieces.length - slowFiltersMax),
  };
}

function cut(text: string): string {
  return text.length <= shownCharactersMax ? text : `${text.slice(0, shownCharactersMax)}…`;
}
