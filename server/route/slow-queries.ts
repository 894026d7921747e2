import type { ScanStats } from '../../engine/index.js';
import { slowFiltersMax, slowQueriesMax, slowValueCharactersMax } from '../http/http-limits.js';
import { percentDecode } from '../request/percent.js';

/** A query that took long. */
export interface SlowQuery {
  /** For records, or for how many there are. */
  readonly kind: 'query' | 'count';
  /** When it was asked, in milliseconds since the epoch. */
  readonly timeMs: number;
  readonly agent: string;
  /** Whom it is counted for: an address, of IPv6 its /64. */
  readonly client: string;
  /** What it asked, as `name=value`, each cut to a bound. */
  readonly parameters: readonly string[];
  /** Those that are left out because there are too many. */
  readonly parametersLeftOut: number;
  /** From the request to the first byte of the answer, or to the failure. */
  readonly firstMs: number;
  /** From the request to the end of the answer, with the time that the client took. */
  readonly totalMs: number;
  /** Why it failed; null where it did not. */
  readonly failure: string | null;
  /** What it cost; null where it came to no scan. */
  readonly figures: Readonly<ScanStats> | null;
  readonly bytesReturned: number;
}

/** What a query took and cost; times as in `SlowQuery`. */
export interface SlowCost {
  readonly timeMs: number;
  readonly firstMs: number;
  readonly totalMs: number;
  readonly failure: string | null;
  readonly stats: Readonly<ScanStats> | undefined;
  /** Of the answer. */
  readonly bytes: number;
}

/** The last slow queries, the newest first. */
export class SlowQueries {
  readonly #limitMs: number;
  readonly #tell: (query: SlowQuery) => void;
  readonly #last: SlowQuery[] = [];
  /** All of them since the process began. */
  count = 0;

  /**
   * @param limitMs from how long on a query is slow; null for none
   * @param tell is told each of them
   */
  constructor(limitMs: number | null, tell: (query: SlowQuery) => void) {
    this.#limitMs = limitMs ?? Infinity;
    this.#tell = tell;
  }

  /** Whether so long is slow. The time that a client takes is not the query's. */
  isSlow(firstMs: number, stats: ScanStats | undefined): boolean {
    const workMs = stats === undefined ? 0 : stats.selectMs + stats.writeMs;
    return firstMs >= this.#limitMs || workMs >= this.#limitMs;
  }

  /** Notes a query of which `isSlow` says that it is. */
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

/** To microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** What a query string asks, to be shown: a value that is long is cut, and so is a list of many. */
function shownParameters(rawQuery: string): Pick<SlowQuery, 'parameters' | 'parametersLeftOut'> {
  const pieces = rawQuery.split('&').filter((piece) => piece !== '');
  return {
    parameters: pieces.slice(0, slowFiltersMax).map((piece) => cut(percentDecode(piece, true, 'it'))),
    parametersLeftOut: Math.max(0, pieces.length - slowFiltersMax),
  };
}

function cut(text: string): string {
  return text.length <= slowValueCharactersMax ? text : `${text.slice(0, slowValueCharactersMax)}…`;
}
