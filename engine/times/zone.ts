import { LogstrataError } from '../core/errors.js';

/**
 * A time zone: converts local (wall) time to an instant. A wall time is given as the milliseconds since the epoch that it
 * would be in UTC.
 */
export interface Zone {
  readonly name: string;
  /** Offset from UTC at an instant, both in milliseconds; positive to the east. */
  offsetAt(instantMs: number): number;
  /**
   * The instant of a wall time. A wall time that occurs twice (clocks go back) is the earlier of the two. One that does not
   * occur (clocks go forward) is read with the offset from before the change. Temporal calls this "compatible".
   */
  instantOf(wallMs: number): number;
}

const dayMs = 86_400_000;

/**
 * Before this time, offsets are local mean time everywhere. Shortly below, `Intl` changes to the Julian calendar, used until
 * October 1582, but dates in log lines and filters are Gregorian in all years.
 */
const earliestMs = Date.UTC(1700, 0, 1);

/** Limit on the days whose offsets are cached per zone; the cache is then cleared, so that strange input can't fill the memory. */
const daysCachedMax = 16_384;

const offsetPattern = /^([+-])(\d{2})(?::?(\d{2}))?$/;

/**
 * Finds the zone that a configuration names: an IANA name, `UTC`, `Z`, `Local` (this machine's zone) or an offset such as
 * `+02:00`. Throws `invalid` for anything else.
 */
export function findZone(name: string): Zone {
  const lower = name.toLowerCase();
  if (lower === 'utc' || lower === 'z' || lower === 'gmt') return new FixedZone('UTC', 0);
  const match = offsetPattern.exec(name);
  if (match !== null) {
    const minutes = Number(match[2]) * 60 + Number(match[3] ?? 0);
    if (Number(match[2]) > 23 || Number(match[3] ?? 0) > 59) throw unknownZone(name);
    return new FixedZone(name, (match[1] === '-' ? -minutes : minutes) * 60_000);
  }
  const zoneName = lower === 'local' ? new Intl.DateTimeFormat().resolvedOptions().timeZone : name;
  let format: Intl.DateTimeFormat;
  try {
    format = wallFormat(zoneName);
  } catch (cause) {
    throw unknownZone(name, cause);
  }
  return new NamedZone(zoneName, format);
}

/** The problem with the name of a time zone, or undefined. */
export function zoneProblem(name: string): string | undefined {
  try {
    findZone(name);
    return undefined;
  } catch (error) {
    if (error instanceof LogstrataError) return error.message;
    throw error;
  }
}

function unknownZone(name: string, cause?: unknown): LogstrataError {
  return new LogstrataError(
    'invalid',
    `unknown time zone ${JSON.stringify(name)}: expected an IANA name such as Europe/Oslo, UTC, Local, or an offset such as +02:00`,
    { cause },
  );
}

function wallFormat(zoneName: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: zoneName,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}

class FixedZone implements Zone {
  constructor(
    readonly name: string,
    private readonly offsetMs: number,
  ) {}

  offsetAt(): number {
    return this.offsetMs;
  }

  instantOf(wallMs: number): number {
    return wallMs - this.offsetMs;
  }
}

/** Offsets of one UTC day: `beforeMs` until `changeMs`, `afterMs` from then on. No zone changes twice in a day. */
interface DayOffsets {
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly changeMs: number;
}

/** A zone of `Intl`. `Intl` takes microseconds per offset, so it is called once per day of log time, and the result is cached. */
class NamedZone implements Zone {
  readonly #days = new Map<number, DayOffsets>();
  #steadyDay = NaN;
  #steadyOffsetMs = 0;

  constructor(
    readonly name: string,
    private readonly format: Intl.DateTimeFormat,
  ) {}

  offsetAt(instantMs: number): number {
    const day = Math.floor(instantMs / dayMs);
    let offsets = this.#days.get(day);
    if (offsets === undefined) {
      offsets = this.#offsetsOfDay(day);
      if (this.#days.size >= daysCachedMax) this.#days.clear();
      this.#days.set(day, offsets);
    }
    return instantMs < offsets.changeMs ? offsets.beforeMs : offsets.afterMs;
  }

  instantOf(wallMs: number): number {
    const day = Math.floor(wallMs / dayMs);
    if (day === this.#steadyDay) return wallMs - this.#steadyOffsetMs;
    // An offset is less than a day, so these two times enclose the instant, with at most one change between them.
    const beforeMs = this.offsetAt((day - 1) * dayMs);
    const afterMs = this.offsetAt((day + 2) * dayMs);
    if (beforeMs === afterMs) {
      this.#steadyDay = day;
      this.#steadyOffsetMs = beforeMs;
      return wallMs - beforeMs;
    }
    if (this.offsetAt(wallMs - beforeMs) === beforeMs) return wallMs - beforeMs;
    if (this.offsetAt(wallMs - afterMs) === afterMs) return wallMs - afterMs;
    return wallMs - beforeMs;
  }

  #offsetsOfDay(day: number): DayOffsets {
    const firstMs = day * dayMs;
    const beforeMs = this.#askIntl(firstMs);
    const afterMs = this.#askIntl(firstMs + dayMs);
    if (beforeMs === afterMs) return { beforeMs, afterMs, changeMs: firstMs };
    let low = 0;
    let high = dayMs / 1000;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#askIntl(firstMs + middle * 1000) === beforeMs) low = middle;
      else high = middle;
    }
    return { beforeMs, afterMs, changeMs: firstMs + high * 1000 };
  }

  #askIntl(instantMs: number): number {
    const clampedMs = Math.max(instantMs, earliestMs);
    const wall = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
    for (const { type, value } of this.format.formatToParts(clampedMs)) {
      if (type in wall) wall[type as keyof typeof wall] = Number(value);
    }
    const date = new Date(0);
    // Date.UTC maps years below 100 to the 1900s; setUTCFullYear does not.
    date.setUTCFullYear(wall.year, wall.month - 1, wall.day);
    date.setUTCHours(wall.hour, wall.minute, wall.second, 0);
    return date.getTime() - clampedMs;
  }
}
