import { columnBytes, type Column } from '../column.js';
import type { ColumnUse } from '../scan/snapshot.js';

/** A column, and whether it was in memory already. */
export interface CachedColumn {
  readonly column: Column;
  readonly cached: boolean;
}

/**
 * Decoded columns of sealed segments, up to a bound in bytes: the least recently used go first. Requests for a column
 * that is being decoded wait for that one decoding.
 */
export class ColumnCache {
  readonly #bytesMax: number;
  #bytes = 0;
  /** In the order of their last use. */
  readonly #columns = new Map<string, Column>();
  readonly #pending = new Map<string, Promise<Column>>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that the kept columns hold on to. */
  get bytes(): number {
    return this.#bytes;
  }

  has(key: string): boolean {
    return this.#columns.has(key);
  }

  /**
   * The column of `key`, from memory or else from `load`. A failure is everybody's who waits, and is not kept. A column
   * larger than the bound is handed out and not kept, nor is one that is used once.
   */
  async get(key: string, load: () => Promise<Column>, use: ColumnUse = 'again'): Promise<CachedColumn> {
    const kept = this.#columns.get(key);
    if (kept !== undefined) {
      this.#columns.delete(key);
      this.#columns.set(key, kept);
      return { column: kept, cached: true };
    }
    const waiting = this.#pending.get(key);
    if (waiting !== undefined) return { column: await waiting, cached: true };
    const loading = load();
    this.#pending.set(key, loading);
    try {
      const column = await loading;
      if (use === 'again') this.#keep(key, column);
      return { column, cached: false };
    } finally {
      this.#pending.delete(key);
    }
  }

  /** Forgets the columns whose key begins with `prefix`. */
  evict(prefix: string): void {
    for (const key of this.#columns.keys()) if (key.startsWith(prefix)) this.#forget(key);
  }

  #keep(key: string, column: Column): void {
    const bytes = columnBytes(column);
    if (bytes > this.#bytesMax) return;
    this.#forget(key);
    this.#columns.set(key, column);
    this.#bytes += bytes;
    for (const oldest of this.#columns.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const column = this.#columns.get(key);
    if (column === undefined) return;
    this.#columns.delete(key);
    this.#bytes -= columnBytes(column);
  }
}
