/** What was read, for `Server-Timing`, `--explain` and the tests that assert it. */
export interface ReadCounters {
  /** Bytes read from files: column chunks, pieces of gram filters, and footers, which are read once. */
  bytesRead: number;
  /** Column chunks decoded, and those that the cache had. */
  columnsDecoded: number;
  columnsCached: number;
  /** Pieces of gram filters read. */
  gramPiecesRead: number;
}
