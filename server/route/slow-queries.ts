import { shownCharactersMax } from '../../engine/index.js';
import type { ScanStats } from '../../engine/index.js';
import { slowFiltersMax, slowQueriesMax } from '../http/http-limits.js';
import { percentDecode } from '../request/percent.js';

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
