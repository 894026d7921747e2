import type { ScanStats } from '../../engine/index.js';

/**
 * The value of the header `Server-Timing` (W3C Server Timing): what the query has cost up to the first byte of the answer, when the headers
 * are sent. `first` is the time to the first piece, `select` and `write` the parts of it spent finding and writing records. `rows` and
 * `groups` are the rows and row groups scanned so far, `read` the bytes read. Durations are milliseconds.
 */
export function serverTiming(stats: ScanStats, firstMs: number): string {
  return (
    `first;dur=${hundredths(firstMs)}, select;dur=${hundredths(stats.selectMs)}, ` +
    `write;dur=${hundredths(stats.writeMs)}, rows;desc="${stats.rowsScanned} scanned", ` +
    `groups;desc="${stats.rowGroupsScanned} scanned of ${stats.rowGroups}", read;desc="${stats.bytesRead} bytes"`
  );
}

/** A duration with two decimals. `toFixed` takes three times as long, which matters for short answers. */
function hundredths(ms: number): string {
  const all = Math.round(ms * 100);
  const rest = all % 100;
  return `${(all - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}
