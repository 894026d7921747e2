/** What was read, for `Server-Timing`, `--explain` and the tests that assert it. */
export interface ReadCounters {
  /** Bytes read from files: column chunks and filters, and summaries and footers where they were not cached. */
  bytesRead: number;
  /** Column chunks that were decoded, and columns that the buffer pool had. */
  columnsDecoded: number;
  columnsCached: number;
  /** Pieces read of gram filters, and of value filters. */
  gramPiecesRead: number;
  valuePiecesRead: number;
}

/** Counters that are all zero. */
export function newReadCounters(): ReadCounters {
  return { bytesRead: 0, columnsDecoded: 0, columnsCached: 0, gramPiecesRead: 0, valuePiecesRead: 0 };
}
