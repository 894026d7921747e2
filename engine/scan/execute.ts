import type { WorkerPool } from '../workers/worker-pool.js';
import { signalOf } from '../store/reading/pace.js';
import { framedScan } from './framed-lines.js';
import { PageLines } from './page-lines.js';
import type { Query, ScanStats } from './plan/query.js';
import { ScanLines } from './scan-lines.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import type { Scan, ScanOptions } from './plan/scan.js';

/** Statistics with all counters at zero. */
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

/** The options of a scan, and the resources that the engine adds to them. */
export interface ScanSettings extends ScanOptions {
  /** Threads that read, search and write. Without them the calling thread does everything. */
  readonly workers?: WorkerPool | undefined;
}

/**
 * Starts a query on a snapshot and takes over the snapshot. The snapshot is released when the answer has ended or failed, when the
 * iteration is ended early (`return`, also before the first `next`), or when the signal is aborted. A caller that neither reads the lines
 * nor aborts must call `return`.
 *
 * Errors are thrown by `lines`: `invalid` for a query that does not fit the schema; `cancelled`, or the signal's own reason where that is a
 * `LogstrataError`; and whatever reading the row groups throws. Nothing is read before the first `next`, except for a page whose rows are
 * all in memory: that is written at once.
 */
export function executeScan(snapshot: Snapshot, query: Query, options: ScanSettings = {}): Scan {
  const { schema } = snapshot;
  return framedScan(scanLines(snapshot, query, options), query, schema);
}

/** Like `executeScan`, but returns only the lines, without what the format puts before and after them. */
export function scanLines(snapshot: Snapshot, query: Query, options: ScanSettings): Scan {
  const { signal, pieceBytes, bytesMax, lends, onTurn, workers } = options;
  const stats = newScanStats();
  const page = PageLines.of(snapshot, query, stats, options);
  if (page !== null) return { stats, lines: page };
  const work = { signal: signalOf(signal), pieceBytes, bytesMax, lends, onTurn, workers };
  return { stats, lines: new ScanLines(snapshot, query, work, stats) };
}
