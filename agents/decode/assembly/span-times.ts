// Reads fields of lines as times, column by column; see line-spans.ts. A text that does not have the usual form of the
// format makes the line odd, also where it is not a time at all.
import { kindAbsent, kindNumber, kindShift, kindText, lengthMask, lineOdd, lineTaken } from './line-spans';

const dayMs: i64 = 86400000;

/** Formats of `readTimes`: RFC 3339, the common log format, and (any other number) seconds since the epoch. */
const formatRfc3339: u32 = 0;
const formatCommon: u32 = 1;

/** Result of a reader for a text that is not readable. No valid time is this early. */
const none: i64 = i64.MIN_VALUE;

function digit(at: usize): u32 {
  return <u32>load<u8>(at) - 0x30;
}

/** The number that two digits form; more than 99 where they are not digits. */
function twoDigits(at: usize): u32 {
  const high = digit(at);
  const low = digit(at + 1);
  return high > 9 || low > 9 ? 1000 : high * 10 + low;
}

function daysInMonth(year: u32, month: u32): u32 {
  if (month == 2) return (year & 3) == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/** Days from the epoch to a day of the proleptic Gregorian calendar; same calculation as in ../../times/timestamp.ts. */
function daysOf(year: i32, month: i32, day: i32): i32 {
  const marchYear = month > 2 ? year : year - 1;
  const era = marchYear / 400;
  const yearOfEra = marchYear - era * 400;
  const dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719468;
}

/** Time of the beginning of a day in milliseconds, for the years 1 to 9999; otherwise `none`. */
function dateMs(year: u32, month: u32, day: u32): i64 {
  if (year < 1 || year > 9999 || month < 1 || month > 12) return none;
  if (day < 1 || day > daysInMonth(year, month)) return none;
  return <i64>daysOf(<i32>year, <i32>month, <i32>day) * dayMs;
}

/** Cache of the last date read: neighbouring lines mostly have the same one. */
let dateText: u64 = 0;
let dateTextEnd: u32 = 0;
let dateTime: i64 = none;

/** Reads `2026-11-21`. */
function readIsoDate(at: usize): i64 {
  const text = load<u64>(at);
  const rest = <u32>load<u16>(at, 8);
  if (text == dateText && rest == dateTextEnd) return dateTime;
  if (load<u8>(at, 4) != 0x2d || load<u8>(at, 7) != 0x2d) return none;
  const time = dateMs(twoDigits(at) * 100 + twoDigits(at + 2), twoDigits(at + 5), twoDigits(at + 8));
  dateText = text;
  dateTextEnd = rest;
  dateTime = time;
  return time;
}

/** Number of a month by its English abbreviation in the usual case; 0 for another text. */
function monthOf(letters: u32): u32 {
  switch (letters) {
    case 0x6e614a:
      return 1;
    case 0x626546:
      return 2;
    case 0x72614d:
      return 3;
    case 0x727041:
      return 4;
    case 0x79614d:
      return 5;
    case 0x6e754a:
      return 6;
    case 0x6c754a:
      return 7;
    case 0x677541:
      return 8;
    case 0x706553:
      return 9;
    case 0x74634f:
      return 10;
    case 0x766f4e:
      return 11;
    case 0x636544:
      return 12;
    default:
      return 0;
  }
}

/** Reads `21/Nov/2026`. */
function readCommonDate(at: usize): i64 {
  const text = load<u64>(at);
  const rest = load<u32>(at, 7) >> 8;
  if (text == dateText && rest == dateTextEnd) return dateTime;
  if (load<u8>(at, 2) != 0x2f || load<u8>(at, 6) != 0x2f) return none;
  const month = monthOf(load<u32>(at, 3) & 0xffffff);
  const time = dateMs(twoDigits(at + 7) * 100 + twoDigits(at + 9), month, twoDigits(at));
  dateText = text;
  dateTextEnd = rest;
  dateTime = time;
  return time;
}

/** Reads `12:34:56`, in milliseconds; otherwise `none`. */
function readClock(at: usize): i64 {
  const hour = twoDigits(at);
  const minute = twoDigits(at + 3);
  const second = twoDigits(at + 6);
  if (hour > 23 || minute > 59 || second > 59) return none;
  if (load<u8>(at, 2) != 0x3a || load<u8>(at, 5) != 0x3a) return none;
  return <i64>((hour * 60 + minute) * 60 + second) * 1000;
}

/** Reads a UTC offset with a sign, in milliseconds; otherwise `none`. The minutes are at `minutesAt`; 0 for none. */
function readOffset(at: usize, minutesAt: usize): i64 {
  const sign = <u32>load<u8>(at);
  const hours = twoDigits(at + 1);
  const minutes = minutesAt == 0 ? 0 : twoDigits(minutesAt);
  if ((sign != 0x2b && sign != 0x2d) || hours > 23 || minutes > 59) return none;
  const size = <i64>(hours * 60 + minutes) * 60000;
  return sign == 0x2d ? -size : size;
}

/**
 * Reads `2026-11-21T12:34:56`, with any number of digits after a point or comma, and `Z`, `+01:00`, `+0100` or `+01`. Other
 * spellings are read line by line, by ../../times/iso-time.ts.
 */
function readRfc3339(at: usize, length: u32): i64 {
  if (length < 20) return none;
  const end = at + length;
  const date = readIsoDate(at);
  const separator = <u32>load<u8>(at, 10);
  const clock = readClock(at + 11);
  if (date == none || clock == none || (separator != 0x54 && separator != 0x20)) return none;
  let time = date + clock;
  at += 19;
  if (load<u8>(at) == 0x2e || load<u8>(at) == 0x2c) {
    let weight: u32 = 100;
    const first = ++at;
    for (; at < end && digit(at) <= 9; at++) {
      time += <i64>(digit(at) * weight);
      weight /= 10;
    }
    if (at == first || at == end) return none;
  }
  if (load<u8>(at) == 0x5a) return at + 1 == end ? time : none;
  const rest = <u32>(end - at);
  if (rest != 5 && rest != 3 && (rest != 6 || load<u8>(at, 3) != 0x3a)) return none;
  const offset = readOffset(at, rest == 3 ? 0 : end - 2);
  return offset == none ? none : time - offset;
}

/** Reads `21/Nov/2026:12:34:56 +0100`. */
function readCommon(at: usize, length: u32): i64 {
  if (length != 26 || load<u8>(at, 11) != 0x3a || load<u8>(at, 20) != 0x20) return none;
  const date = readCommonDate(at);
  const clock = readClock(at + 12);
  const offset = readOffset(at + 21, at + 24);
  return date == none || clock == none || offset == none ? none : date + clock - offset;
}

/** Reads at most ten digits of seconds, and any number of digits after a point. */
function readUnix(at: usize, length: u32): i64 {
  const end = at + length;
  const first = at;
  let seconds: i64 = 0;
  for (; at < end && digit(at) <= 9; at++) {
    if (at - first == 10) return none;
    seconds = seconds * 10 + digit(at);
  }
  if (at == first) return none;
  let time = seconds * 1000;
  if (at == end) return time;
  if (load<u8>(at++) != 0x2e) return none;
  let weight: u32 = 100;
  for (; at < end; at++) {
    if (digit(at) > 9) return none;
    time += <i64>(digit(at) * weight);
    weight /= 10;
  }
  return time;
}

/**
 * Reads a field of the taken lines as milliseconds since the epoch to `values`. Sets `presence` of each row to 1, or 0 for
 * null. Returns the number of nulls.
 */
export function readTimes(
  text: usize,
  spans: usize,
  stride: u32,
  count: u32,
  states: usize,
  format: u32,
  values: usize,
  presence: usize,
): u32 {
  let nulls: u32 = 0;
  dateTime = none;
  dateText = 0;
  for (let row: u32 = 0; row < count; row++, spans += <usize>stride, values += 8) {
    store<u64>(values, 0);
    if (load<u8>(states + row) != lineTaken) continue;
    const word = load<u32>(spans, 4);
    const kind = word >> kindShift;
    let time = none;
    if (kind == kindText || kind == kindNumber) {
      const at = text + load<u32>(spans);
      const length = word & lengthMask;
      if (format == formatRfc3339) time = readRfc3339(at, length);
      else if (format == formatCommon) time = readCommon(at, length);
      else time = readUnix(at, length);
    }
    if (time != none) {
      store<i64>(values, time);
      store<u8>(presence + row, 1);
      continue;
    }
    nulls++;
    store<u8>(presence + row, 0);
    if (kind != kindAbsent) store<u8>(states + row, lineOdd);
  }
  return nulls;
}
