import type { WorkerPool } from '../workers/worker-pool.js';
import { signalOf } from '../store/reading/pace.js';
import { framedScan } from './framed-lines.js';
import { PageLines } from './page-lines.js';
import type { Query, ScanStats } from './plan/query.js';
import { ScanLines } from './scan-lines.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import type { Scan, ScanOptions } from './plan/scan.js';

/** Nothing has been done yet. */
export function newScanStats(): ScanStats {
  return {
    runs: 0,
    rowGroups: 0,
    rowGroupsPrunedByTime: 0,
    rowGroupsPrunedByZone: 0,
    rowGroupsPrunedByValue: 0,
    rowGroupsPrunedByGram: 0,
    rowGroupsPrunedByDictionary: 0,
    rowGroupsScanned: 0,
    rowsScanned: 0,
    rowsReturned: 0,
    bytesRead: 0,
    columnsDecoded: 0,
    columnsCached: 0,
    columnsPrunedByGram: 0,
    gramPiecesRead: 0,
    valuePiecesRead: 0,
    selectMs: 0,
    writeMs: 0,
  };
}

/** How a scan is to be done, beside what its caller may choose. */
export interface ScanSettings extends ScanOptions {
  /** Threads that read and search; without them everything is done by the thread that asks. */
  readonly workers?: WorkerPool | undefined;
}

/**
 * Starts a query on a snapshot, which is the scan's from here on: it is released when the answer has ended, has failed,
 * is ended early (`return` of the iterator, also before its first `next`), or when the signal is aborted. A caller that
 * neither reads the lines nor aborts must call `return`.
 *
 * Errors come from `lines`: `invalid` for a query that does not fit the schema, `cancelled` (or the signal's own reason,
 * where that is a `LogstrataError`), and whatever reading the row groups throws. Nothing is read before the first `next`.
 */
export function executeScan(snapshot: Snapshot, query: Query, options: ScanSettings = {}): Scan {
  const { schema } = snapshot;
  return framedScan(scanLines(snapshot, query, options), query, schema);
}

/** As `executeScan`, the lines alone: without what the format of the answer has around them. */
export function scanLines(snapshot: Snapshot, query: Query, options: ScanSettings): Scan {
  const { signal, pieceBytes, bytesMax, lends, onTurn, workers } = options;
  const stats = newScanStats();
  const page = PageLines.of(snapshot, query, stats, options);
  if (page !== null) return { stats, lines: page };
  const work = { signal: signalOf(signal), pieceBytes, bytesMax, lends, onTurn, workers };
  return { stats, lines: new ScanLines(snapshot, query, work, stats) };
}
