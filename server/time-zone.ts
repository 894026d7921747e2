const dayMs = 86_400_000;

/** Before this no zone has a rule other than its local mean time, and `Intl` begins to count eras not far below. */
const rulesBeginMs = Date.UTC(1800, 0, 1);

/** Building a format costs some 50 µs; a server has one zone, so the map stays as small as the list of zones. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formats.set(zone, format);
  }
  return format;
}

/** Whether `zone` is a name of the IANA database that this Node knows. */
export function isTimeZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** Offset of `zone` from UTC at an instant, in ms: positive in the east. `zone` must be one that `isTimeZone` accepts. */
export function zoneOffset(zone: string, instantMs: number): number {
  const instant = Math.max(instantMs, rulesBeginMs);
  const whole = Math.floor(instant / 1000) * 1000;
  const part = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
  for (const { type, value } of formatOf(zone).formatToParts(whole)) {
    if (type in part) part[type as keyof typeof part] = Number(value);
  }
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - whole;
}

/**
 * The first instant (ms since the epoch) at which a clock in `zone` shows `wallMs` or a later time; `wallMs` is the
 * wall-clock reading counted as if it were UTC. So a reading that comes twice when clocks go back is the earlier one,
 * and one that is skipped when they go forward is the moment of the change: windows that meet at it still meet.
 */
export function instantOfWallClock(zone: string, wallMs: number): number {
  if (zone === 'UTC') return wallMs;
  const before = zoneOffset(zone, wallMs - dayMs);
  const after = zoneOffset(zone, wallMs + dayMs);
  const early = wallMs - Math.max(before, after);
  const late = wallMs - Math.min(before, after);
  if (early + zoneOffset(zone, early) === wallMs) return early;
  if (late + zoneOffset(zone, late) === wallMs) return late;
  return changeBetween(zone, early, late, wallMs);
}

/** First instant after `low` and up to `high` at which the wall clock is beyond `wallMs`; it jumps over it between the two. */
function changeBetween(zone: string, low: number, high: number, wallMs: number): number {
  let below = low;
  let beyond = high;
  while (beyond - below > 1) {
    const middle = Math.floor((below + beyond) / 2);
    if (middle + zoneOffset(zone, middle) >= wallMs) beyond = middle;
    else below = middle;
  }
  return beyond;
}
