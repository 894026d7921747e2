import { findZone, type Zone } from '../../engine/times/zone.js';
import { assert, int64Max, int64Min } from '../../engine/index.js';

const oneDayMs = 86_400_000;

/** A zone costs some 50 µs to find. A server has one, from its configuration, so this never grows. */
const zones = new Map<string, Zone>();

function zoneOf(name: string): Zone {
  let zone = zones.get(name);
  if (zone === undefined) {
    zone = findZone(name);
    zones.set(name, zone);
  }
  return zone;
}

/** Offset of a zone from UTC at an instant, in ms: positive in the east. Throws `invalid` for an unknown zone. */
export function zoneOffset(zoneName: string, instantMs: number): number {
  return zoneOf(zoneName).offsetAt(instantMs);
}

/**
 * The first instant (ms since the epoch) at which a clock in the zone shows `wallMs` or a later time; `wallMs` is the
 * wall-clock reading counted as if it were UTC. So a reading that comes twice when clocks go back is the earlier one,
 * and one that is skipped when they go forward is the moment of the change: windows that meet at it still meet, and a day
 * whose midnight is skipped begins where its clock begins.
 */
export function instantOfWallClock(zoneName: string, wallMs: number): number {
  const zone = zoneOf(zoneName);
  const instantMs = zone.instantOf(wallMs);
  if (instantMs + zone.offsetAt(instantMs) === wallMs) return instantMs;
  let below = instantMs - oneDayMs;
  let beyond = instantMs;
  while (beyond - below > 1) {
    const middle = Math.floor((below + beyond) / 2);
    if (middle + zone.offsetAt(middle) >= wallMs) beyond = middle;
    else below = middle;
  }
  return beyond;
}

/** What a time value is relative to. */
export interface TimeContext {
  /** The moment of the request, ms since the epoch. */
  readonly now: number;
  /** IANA zone of absolute times that carry no offset. */
  readonly timezone: string;
}

/** The ms since the epoch, or the sentence that says what is wrong with the text. */
export type TimeValue = { readonly ms: bigint } | { readonly problem: string };

/** Bare integers below this ask for a unit: as milliseconds they would be before March 1973, as seconds after the year 5138. */
const bareMillisecondsMin = 10n ** 11n;

const absolutePattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[ Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?)?([Zz]|[+-]\d{2}:\d{2})?$/;
const unescapedOffsetPattern = /^(\d{4}-\d{2}-\d{2}[ Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?) (\d{2}:\d{2})$/;
const relativePattern = /^(?:\d+[smhdwy])+$/i;
const integerPattern = /^-?\d+$/;

const dayMs = 86_400_000n;

/** A year has 365 days. */
const unitMs: Readonly<Record<string, bigint>> = {
  s: 1000n,
  m: 60_000n,
  h: 3_600_000n,
  d: dayMs,
  w: 7n * dayMs,
  y: 365n * dayMs,
};

const formats =
  'expected "YYYY-MM-DD HH:MM:SS" or "YYYY-MM-DD" (each also with Z or an offset like +02:00), ' +
  'a time before now like 15m or 1d12h, or epoch milliseconds';

/**
 * Reads the value of `since` and `until`, percent-decoded (so that an unescaped `+` is a blank by now).
 *
 * The result is exact for `since ≤ t < until` over whole milliseconds: a fraction finer than that is rounded up, which
 * leaves the set of matching times the same for both operators.
 */
export function parseTimeValue(text: string, context: TimeContext): TimeValue {
  if (integerPattern.test(text)) return parseBareInteger(text);
  if (relativePattern.test(text)) return parseRelative(text, context.now);
  // A form encoder turns the `+` of an offset that was not escaped into a blank; after a complete time nothing else can be meant.
  const match = absolutePattern.exec(text.replace(unescapedOffsetPattern, '$1+$2'));
  if (match === null) return { problem: describeBadShape(text) };
  return parseAbsolute(text, match, context.timezone);
}

function parseBareInteger(text: string): TimeValue {
  const value = BigInt(text);
  if (value > int64Max) return { problem: `${text} is out of the range of times (64-bit milliseconds)` };
  if (value < bareMillisecondsMin) {
    return {
      problem:
        `${text} has no unit: write ${text.replace('-', '')}s, m, h, d, w or y for a time before now, ` +
        'or the full 12 or more digits of epoch milliseconds',
    };
  }
  return { ms: value };
}

function parseRelative(text: string, now: number): TimeValue {
  let ageMs = 0n;
  for (const [, count, unit] of text.matchAll(/(\d+)([smhdwy])/giy)) {
    const scale = unitMs[unit!.toLowerCase()];
    assert(scale !== undefined, `time unit ${unit}`);
    ageMs += BigInt(count!) * scale;
  }
  const ms = BigInt(Math.floor(now)) - ageMs;
  if (ms < int64Min)
    return { problem: `${text} before now is out of the range of times (64-bit milliseconds)` };
  return { ms };
}

function parseAbsolute(text: string, match: RegExpExecArray, timezone: string): TimeValue {
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  const [y, mo, d] = [Number(year), Number(month), Number(day)];
  const [h, mi, s] = [Number(hour ?? 0), Number(minute ?? 0), Number(second ?? 0)];
  const date = new Date(0);
  // Date.UTC would take the years 0 to 99 for the 1900s.
  date.setUTCFullYear(y, mo - 1, d);
  if (date.getUTCFullYear() !== y || date.getUTCMonth() !== mo - 1 || date.getUTCDate() !== d) {
    return { problem: `${JSON.stringify(text)} is not a time: there is no day ${year}-${month}-${day}` };
  }
  if (h > 23 || mi > 59 || s > 59) {
    return {
      problem: `${JSON.stringify(text)} is not a time: there is no ${hour}:${minute}:${second} on a 24-hour clock`,
    };
  }
  const wallMs = date.getTime() + ((h * 60 + mi) * 60 + s) * 1000;
  const fractionMs = fraction === undefined ? 0 : roundUpToMilliseconds(fraction);
  if (offset === undefined) return { ms: BigInt(instantOfWallClock(timezone, wallMs + fractionMs)) };
  const offsetMs = parseOffset(offset);
  if (offsetMs === undefined) {
    return {
      problem: `${JSON.stringify(text)} is not a time: ${offset} is not an offset from UTC (at most 23:59)`,
    };
  }
  return { ms: BigInt(wallMs + fractionMs - offsetMs) };
}

/** Digits behind the decimal point, as milliseconds, rounded up: `0001` is 1. */
function roundUpToMilliseconds(fraction: string): number {
  const whole = Number(fraction.slice(0, 3).padEnd(3, '0'));
  return /[1-9]/.test(fraction.slice(3)) ? whole + 1 : whole;
}

function parseOffset(offset: string): number | undefined {
  if (offset === 'Z' || offset === 'z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(4, 6));
  if (hours > 23 || minutes > 59) return undefined;
  const ms = (hours * 60 + minutes) * 60_000;
  return offset.startsWith('-') ? -ms : ms;
}

function describeBadShape(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}[ Tt]\d{2}:\d{2}$/.test(text)) {
    return `${JSON.stringify(text)} lacks the seconds: write "${text}:00" (or %2B for the + of an offset behind a date)`;
  }
  return `${JSON.stringify(text)} is not a time: ${formats}`;
}
