import { durationText, readDuration, shortTimeText, type Zone } from '../records/time-text.js';

/** Which times are looked at. */
export type TimeRange =
  | { readonly kind: 'all' }
  /** Up to now; `length` as it is written: `15m`, `1d 12h`. */
  | { readonly kind: 'last'; readonly length: string }
  /** From a moment on, and up to another, which is left out. At least one of them. */
  | {
      readonly kind: 'between';
      readonly sinceMs?: number | undefined;
      readonly untilMs?: number | undefined;
    };

/** A range in milliseconds, open where it has no end. */
export interface Span {
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** Both ends are known. */
export interface Extent {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** What is offered for one click. */
export const usualLengths = ['5m', '15m', '1h', '6h', '1d', '7d', '30d'] as const;

/** The moments that a range means now. */
export function spanOf(range: TimeRange, nowMs: number): Span {
  switch (range.kind) {
    case 'all':
      return {};
    case 'last':
      return { sinceMs: nowMs - (readDuration(range.length) ?? 0) };
    case 'between':
      return { sinceMs: range.sinceMs, untilMs: range.untilMs };
  }
}

/** The range as it is named on its button. */
export function rangeText(range: TimeRange, zone: Zone): string {
  switch (range.kind) {
    case 'all':
      return 'All time';
    case 'last':
      return `Last ${durationText(readDuration(range.length) ?? 0)}`;
    case 'between': {
      const { sinceMs, untilMs } = range;
      if (sinceMs === undefined) return `Before ${shortTimeText(untilMs ?? 0, zone)}`;
      if (untilMs === undefined) return `From ${shortTimeText(sinceMs, zone)}`;
      const until = shortTimeText(untilMs, zone);
      const since = shortTimeText(sinceMs, zone);
      // The day is said once where it is the same.
      return `${since} – ${until.slice(0, 10) === since.slice(0, 10) ? until.slice(11) : until}`;
    }
  }
}

/** The newest tenth of the range: for a query that is too much for the whole of it. It stays open where the range is. */
export function shortened(range: TimeRange, { sinceMs, untilMs }: Extent): TimeRange {
  const fromMs = Math.round(untilMs - Math.max(1, (untilMs - sinceMs) / 10));
  return { kind: 'between', sinceMs: fromMs, untilMs: range.kind === 'between' ? range.untilMs : undefined };
}

/** The range of the same length before it, or behind it. */
export function shifted({ sinceMs, untilMs }: Extent, direction: -1 | 1): TimeRange {
  const byMs = (untilMs - sinceMs) * direction;
  return { kind: 'between', sinceMs: sinceMs + byMs, untilMs: untilMs + byMs };
}

/** The range with half of its length added on either side. */
export function widened({ sinceMs, untilMs }: Extent): TimeRange {
  const byMs = Math.max(1000, (untilMs - sinceMs) / 2);
  return { kind: 'between', sinceMs: Math.round(sinceMs - byMs), untilMs: Math.round(untilMs + byMs) };
}
