/**
 * Columns that queries have streamed: searched piece by piece, without keeping them in memory. They are known by their names in the pool.
 *
 * A column is kept when it is searched again before as many bytes as the pool holds have been streamed: had it been kept the first time,
 * it would still be in memory. A scan of more bytes than the pool holds keeps no column, however often it is repeated. Decoding them into
 * the pool would take longer, and drive out the columns of other queries.
 */
export class StreamedColumns {
  readonly #bytesMax: number;
  /** Bytes that each column would take in memory, in the order in which they were streamed. */
  readonly #streamed = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Whether a column that is about to be searched is to be streamed, and not kept. If so, remembers it. */
  isToStream(key: string, sizeBytes: number): boolean {
    if (this.#forget(key)) return false;
    this.#streamed.set(key, sizeBytes);
    this.#bytes += sizeBytes;
    for (const oldest of this.#streamed.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#forget(oldest);
    }
    return true;
  }

  /** Forgets the columns whose names begin with `prefix`. */
  evict(prefix: string): void {
    for (const key of [...this.#streamed.keys()]) if (key.startsWith(prefix)) this.#forget(key);
  }

  #forget(key: string): boolean {
    this.#bytes -= this.#streamed.get(key) ?? 0;
    return this.#streamed.delete(key);
  }
}
