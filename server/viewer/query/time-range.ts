import { durationText, readDuration, shortTimeText, type Zone } from '../records/time-text.js';

/** The time range of a view. */
export type TimeRange =
  | { readonly kind: 'all' }
  /** From now back; `length` is written like `15m` or `1d 12h`. */
  | { readonly kind: 'last'; readonly length: string }
  /** Between two times, the second exclusive. At least one is set. */
  | {
      readonly kind: 'between';
      readonly sinceMs?: number | undefined;
      readonly untilMs?: number | undefined;
    };

/** A range in milliseconds since the epoch, `untilMs` exclusive; unbounded where an end is undefined. */
export interface Span {
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** A range with both ends. */
export interface Extent {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The lengths that the range menu offers. */
export const usualLengths = ['5m', '15m', '1h', '6h', '1d', '7d', '30d'] as const;

/** The span of a range at the time `nowMs`. */
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

/** The text for a range on its button. */
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
      // The day is not repeated where both are the same.
      return `${since} – ${until.slice(0, 10) === since.slice(0, 10) ? until.slice(11) : until}`;
    }
  }
}

/** The newest tenth of a range, for a query that would read too much. A range that is open at its end stays open. */
export function shortened(range: TimeRange, { sinceMs, untilMs }: Extent): TimeRange {
  const fromMs = Math.round(untilMs - Math.max(1, (untilMs - sinceMs) / 10));
  return { kind: 'between', sinceMs: fromMs, untilMs: range.kind === 'between' ? range.untilMs : undefined };
}

/** The adjacent range of the same length, before or after. */
export function shifted({ sinceMs, untilMs }: Extent, direction: -1 | 1): TimeRange {
  const byMs = (untilMs - sinceMs) * direction;
  return { kind: 'between', sinceMs: sinceMs + byMs, untilMs: untilMs + byMs };
}

/** The range extended on each side by half of its length. */
export function widened({ sinceMs, untilMs }: Extent): TimeRange {
  const byMs = Math.max(1000, (untilMs - sinceMs) / 2);
  return { kind: 'between', sinceMs: Math.round(sinceMs - byMs), untilMs: Math.round(untilMs + byMs) };
}
