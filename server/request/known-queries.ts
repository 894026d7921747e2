import type { ReadableStore, Query, Schema } from '../../engine/index.js';
import { knownQueriesMax, knownQueryCharactersMax } from '../http/http-limits.js';

/** What a target asks for, and of which store. */
export interface ParsedTarget {
  readonly agent: string;
  readonly store: ReadableStore;
  /** The fields that it was read against. */
  readonly schema: Schema;
  readonly query: Query;
}

/** The last request targets, parsed: clients that poll send the same one again and again. */
export class KnownQueries {
  /** By path and query string as they were sent, the oldest first. */
  readonly #known = new Map<string, ParsedTarget>();

  get(target: string): ParsedTarget | undefined {
    return this.#known.get(target);
  }

  keep(target: string, understood: ParsedTarget): void {
    if (target.length > knownQueryCharactersMax) return;
    this.#known.delete(target);
    this.#known.set(target, understood);
    if (this.#known.size <= knownQueriesMax) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}
