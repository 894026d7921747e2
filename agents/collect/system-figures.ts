import { netCounters, type Counter, type SystemReading } from './system-reading.js';

/** The values of one record of a `system` agent, by the names of `systemFields`. */
export type SystemFigures = Readonly<Record<string, number | string | null>>;

/**
 * Computes the figures of a reading. Shares are in percent, sizes in bytes, `uptime` in seconds. Counters are given as the
 * difference to `before`, the reading of the last record. A figure that is not available is null, and so is a difference
 * without an earlier reading or of a counter that was reset.
 */
export function systemFigures(
  now: SystemReading,
  before: SystemReading | null,
  timeMs: number,
): SystemFigures {
  const [la1, la5, la15] = now.loadAverages;
  const { memory } = now;
  return {
    time: timeMs,
    uptime: Math.floor(now.uptimeSeconds),
    la_1: la1 ?? null,
    la_5: la5 ?? null,
    la_15: la15 ?? null,
    cpu_usage: processorShare(now, before),
    cpu_cores: now.processors.length,
    mem_usage: memory === null ? null : percent(memory.totalBytes - memory.availableBytes, memory.totalBytes),
    mem_total: memory?.totalBytes ?? null,
    ...diskFigures(now, before),
    ...netFigures(now, before),
  };
}

/** Share of the processors' time since the reading before in which they were busy. */
function processorShare(now: SystemReading, before: SystemReading | null): number | null {
  if (before === null || before.processors.length !== now.processors.length) return null;
  const sum = (reading: SystemReading, key: 'busyMs' | 'totalMs'): number =>
    reading.processors.reduce((total, processor) => total + processor[key], 0);
  const busy = gained(sum(now, 'busyMs'), sum(before, 'busyMs'));
  const total = gained(sum(now, 'totalMs'), sum(before, 'totalMs'));
  return busy === null || total === null ? null : percent(busy, total);
}

function diskFigures({ disk }: SystemReading, before: SystemReading | null): SystemFigures {
  if (disk === null) return {};
  const last = before?.disk?.device === disk.device ? before.disk : null;
  return {
    disk_dev: disk.device,
    disk_usage: percent(disk.usedBytes, disk.usedBytes + disk.availableBytes),
    disk_total: disk.totalBytes,
    disk_read_bytes: gained(disk.readBytes, last?.readBytes),
    disk_write_bytes: gained(disk.writeBytes, last?.writeBytes),
  };
}

function netFigures({ net }: SystemReading, before: SystemReading | null): SystemFigures {
  if (net === null) return {};
  // The default route may have moved to another interface.
  const last = before?.net?.interface === net.interface ? before.net : null;
  const counted = netCounters.map((name) => [
    `net_${name}`,
    gained(net.counters[name], last?.counters[name]),
  ]);
  return { net_if: net.interface, ...Object.fromEntries(counted) };
}

function gained(now: Counter, before: Counter | undefined): number | null {
  if (now === null || before === null || before === undefined || now < before) return null;
  return now - before;
}

/** Percentage with two decimals; null where `whole` is 0. */
function percent(part: number, whole: number): number | null {
  return whole > 0 ? Math.round((part / whole) * 10_000) / 100 : null;
}
