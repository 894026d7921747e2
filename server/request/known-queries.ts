import type { ReadableStore, Query, Schema } from '../../engine/index.js';
import { knownQueriesMax } from '../http/http-limits.js';

/** A request target that was parsed, and the store that it asks. */
export interface ParsedTarget {
  readonly agent: string;
  readonly store: ReadableStore;
  /** The fields that the query was parsed against. */
  readonly schema: Schema;
  readonly query: Query;
}

/** A cache of the targets that were parsed last, because clients that poll send the same target again and again. */
export class KnownQueries {
  /** By path and query string as they were sent, the one that was parsed first coming first. */
  readonly #known = new Map<string, ParsedTarget>();

  get(target: string): ParsedTarget | undefined {
    return this.#known.get(target);
  }

  keep(target: string, understood: ParsedTarget): void {
    this.#known.delete(target);
    this.#known.set(target, understood);
    if (this.#known.size <= knownQueriesMax) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}
