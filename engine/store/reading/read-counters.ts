/** What was read, for `Server-Timing`, `--explain` and the tests that assert it. */
export interface ReadCounters {
  /** Bytes read from files: column chunks, filters, and summaries and footers, which are read once. */
  bytesRead: number;
  /** Column chunks decoded, and those that the cache had. */
  columnsDecoded: number;
  columnsCached: number;
  /** Pieces read of gram filters, and of filters of whole values. */
  gramPiecesRead: number;
  valuePiecesRead: number;
}

/** Nothing has been read yet. */
export function newReadCounters(): ReadCounters {
  return { bytesRead: 0, columnsDecoded: 0, columnsCached: 0, gramPiecesRead: 0, valuePiecesRead: 0 };
}
