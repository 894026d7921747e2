import { readFraction, twoDigits, ZoneSource, type TimeParts } from './layout-reader.js';

const hyphen = 0x2d;
const colon = 0x3a;

/**
 * Reads the whole of `text` as a time of RFC 3339 into `parts`; returns false for another text. Logs spell such times in more
 * ways than the RFC has, all of which mean the same: with a blank or small letters (RFC 3339, 5.6), with a comma before the
 * fraction, with an offset of `+0100` or `+01`, without hyphens and colons, or without seconds (ISO 8601), and with the name of
 * the zone behind (RFC 9557). What has no offset is not read, because it could be anywhere, nor is what has no time of day.
 */
export function readIsoTime(text: string, parts: TimeParts): boolean {
  parts.clear();
  let at = readDate(text, parts);
  if (at < 0 || !'Tt '.includes(text.charAt(at))) return false;
  at = readClock(text, at + 1, parts);
  if (at < 0) return false;
  at = readZone(text, at, parts);
  while (text.charAt(at) === '[') at = text.indexOf(']', at) + 1;
  return at > 0 && at === text.length && (parts.second < 60 || isLeapSecond(parts));
}

/** Reads `2026-11-17` or `20261117`. Returns the position after it, or -1; so do the others. */
function readDate(text: string, parts: TimeParts): number {
  const gap = text.charCodeAt(4) === hyphen ? 1 : 0;
  const high = twoDigits(text, 0);
  const low = twoDigits(text, 2);
  parts.year = high * 100 + low;
  parts.month = twoDigits(text, 4 + gap);
  parts.day = twoDigits(text, 6 + 2 * gap);
  if (high < 0 || low < 0 || parts.month < 1 || parts.month > 12 || parts.day < 1) return -1;
  return gap === 1 && text.charCodeAt(7) !== hyphen ? -1 : 8 + 2 * gap;
}

/** Reads `10:00:00.123`, `100000,123`, `10:00` or `1000`; the hour may have one digit before a colon. */
function readClock(text: string, start: number, parts: TimeParts): number {
  const isShort = text.charCodeAt(start + 1) === colon;
  let at = isShort ? start + 1 : start + 2;
  parts.hour = isShort ? twoDigits(`0${text.charAt(start)}`, 0) : twoDigits(text, start);
  const gap = text.charCodeAt(at) === colon ? 1 : 0;
  parts.minute = twoDigits(text, at + gap);
  at += gap + 2;
  if (parts.hour < 0 || parts.hour > 23 || parts.minute < 0 || parts.minute > 59) return -1;
  const second = gap === 1 && text.charCodeAt(at) !== colon ? -1 : twoDigits(text, at + gap);
  if (second < 0) return at;
  parts.second = second;
  return second > 60 ? -1 : readFraction(text, at + gap + 2, 0, parts);
}

/** Reads `Z`, `+01:00`, `+0100`, `+01` or `+01:00:30`; the sign may be the minus of typesetting, as in ISO 8601. */
function readZone(text: string, at: number, parts: TimeParts): number {
  const sign = text.charAt(at);
  parts.zoneSource = ZoneSource.offset;
  parts.offsetSeconds = 0;
  if (sign === 'Z' || sign === 'z') return at + 1;
  if (!/[+\-\u2212]/.test(sign)) return -1;
  let end = at + 1;
  let offsetSeconds = 0;
  for (const unit of [3600, 60, 1]) {
    const gap = unit < 3600 && text.charCodeAt(end) === colon ? 1 : 0;
    const value = twoDigits(text, end + gap);
    // Nothing but the hours is required, but what has begun must be whole.
    if (value < 0 && (unit === 3600 || gap === 1)) return -1;
    if (value < 0) break;
    if (value > (unit === 3600 ? 24 : 59)) return -1;
    offsetSeconds += value * unit;
    end += gap + 2;
  }
  parts.offsetSeconds = sign === '+' ? offsetSeconds : -offsetSeconds;
  return end;
}

/** Whether a sixtieth second ends a day of UTC, as a leap second does. It is read as the second after it, as clocks count it. */
function isLeapSecond({ hour, minute, offsetSeconds }: TimeParts): boolean {
  return ((hour * 60 + minute + 1) * 60 - offsetSeconds) % 86_400 === 0;
}
