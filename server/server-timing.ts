import type { ScanStats } from '../engine/scan/query.js';

/**
 * The value of `Server-Timing` (W3C Server Timing): what the query cost up to the first byte of the answer, which is when
 * headers leave. `first` is the time to the first piece; `select` the part of it that went into finding records; `rows` and
 * `groups` say what was looked at so far. Durations are milliseconds.
 */
export function serverTiming(stats: ScanStats, firstMs: number): string {
  return [
    `first;dur=${firstMs.toFixed(2)}`,
    `select;dur=${stats.selectMs.toFixed(2)}`,
    `write;dur=${stats.writeMs.toFixed(2)}`,
    `rows;desc="${stats.rowsScanned} scanned"`,
    `groups;desc="${stats.rowGroupsScanned} scanned of ${stats.rowGroups}"`,
    `read;desc="${stats.bytesRead} bytes"`,
  ].join(', ');
}
