import type { ScanStats } from '../../engine/index.js';

/**
 * The value of `Server-Timing` (W3C Server Timing): what the query cost up to the first byte of the answer, which is when
 * headers leave. `first` is the time to the first piece; `select` the part of it that went into finding records; `rows` and
 * `groups` say what was looked at so far. Durations are milliseconds.
 */
export function serverTiming(stats: ScanStats, firstMs: number): string {
  return (
    `first;dur=${hundredths(firstMs)}, select;dur=${hundredths(stats.selectMs)}, ` +
    `write;dur=${hundredths(stats.writeMs)}, rows;desc="${stats.rowsScanned} scanned", ` +
    `groups;desc="${stats.rowGroupsScanned} scanned of ${stats.rowGroups}", read;desc="${stats.bytesRead} bytes"`
  );
}

/** A duration with two decimals. `toFixed` takes three times as long, which short answers notice. */
function hundredths(ms: number): string {
  const all = Math.round(ms * 100);
  const rest = all % 100;
  return `${(all - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}
