/**
 * Remembers which columns queries have streamed recently, that is, searched piece by piece without keeping them in memory. Columns are
 * identified by their keys in the buffer pool.
 *
 * The second search of a column keeps it in the pool if fewer bytes than the pool holds were streamed in between: had the column been kept
 * the first time, it would still be in the pool. So a scan of more bytes than the pool holds keeps no column, however often it is repeated.
 * Decoding such columns into the pool would take longer, and evict the columns of other queries.
 */
export class StreamedColumns {
  /** Bytes that each column would take in memory, by key, oldest first. */
  readonly #streamed = new Map<string, number>();
  #bytes = 0;

  constructor(private readonly bytesMax: number) {}

  /** Whether a column that is about to be searched should be streamed instead of kept. If so, the column is remembered. */
  isToStream(key: string, sizeBytes: number): boolean {
    if (this.#forget(key)) return false;
    this.#streamed.set(key, sizeBytes);
    this.#bytes += sizeBytes;
    for (const oldest of this.#streamed.keys()) {
      if (this.#bytes <= this.bytesMax) break;
      this.#forget(oldest);
    }
    return true;
  }

  /** Forgets the columns whose keys begin with `prefix`. */
  evict(prefix: string): void {
    for (const key of [...this.#streamed.keys()]) if (key.startsWith(prefix)) this.#forget(key);
  }

  #forget(key: string): boolean {
    this.#bytes -= this.#streamed.get(key) ?? 0;
    return this.#streamed.delete(key);
  }
}
