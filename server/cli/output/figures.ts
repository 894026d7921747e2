// Shared: making one costs more than a thousand uses, and each update of progress formats several numbers.
const countFormat = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** A whole number with separators: `1,234,567`. */
export function formatCount(count: number): string {
  return countFormat.format(count);
}

/** A count with its noun: `1 record`, `2,000 records`. */
export function formatCounted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** A size in decimal units: `999 bytes`, `1.5 kB`, `230 MB`. */
export function formatBytes(bytes: number): string {
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  if (bytes < 1000) return formatCounted(bytes, 'byte');
  let value = bytes;
  let unit = -1;
  // Values that would be rounded to 1000 are shown in the next larger unit.
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 99.95 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

/** A duration: `12 ms`, `3.4 s`, `2 min 05 s`, `1 h 02 min`. */
export function formatSpan(ms: number): string {
  if (ms < 999.5) return `${ms < 9.95 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (ms < 99_950) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/**
 * A time as `YYYY-MM-DD HH:MM:SS` in UTC, which filters accept; `-` for null. Years outside 0 to 9999 have a sign and six digits. A time
 * outside the range of `Date` is shown in milliseconds.
 */
export function formatTime(timeMs: number | null): string {
  if (timeMs === null) return '-';
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime())
    ? String(timeMs)
    : date.toISOString().slice(0, -'.000Z'.length).replace('T', ' ');
}

/** Records per second; `-` for a duration that is too short. */
export function formatRate(records: number, ms: number): string {
  return ms < 1 ? '-' : `${formatCounted(Math.round((records * 1000) / ms), 'record')}/s`;
}

const hourMs = 3_600_000;

/** A long period as days and hours: `2 d 3 h 00 min`. Shorter than a day it is a duration (`formatSpan`). */
export function formatPeriod(ms: number): string {
  const days = Math.floor(ms / (24 * hourMs));
  const rest = ms % (24 * hourMs);
  if (days === 0) return formatSpan(ms);
  return rest === 0 ? `${days} d` : `${days} d ${formatSpan(rest)}`;
}
