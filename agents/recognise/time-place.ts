import { LinePattern } from '../patterns/line-pattern.js';
import { isDayless, timeSpellings, type TimeSpelling } from './time-spellings.js';

/** Words that may stand before the time. */
const wordsBeforeMax = 6;

/** Lines that must begin with a time before it is believed that the others go on theirs. */
const rareLinesMin = 3;

/** Lines that are searched for times: every one of them with every spelling. */
const linesSearchedMax = 120;

/** Where in its line a time stands, and how it is written. */
export interface TimePlace {
  /** Words before it. */
  readonly words: number;
  /** The bracket before it, or nothing. */
  readonly open: '' | '[' | '(' | '<' | '"';
  readonly spelling: TimeSpelling;
  /** Lines with such a time, of those that were searched. */
  readonly share: number;
}

const openers = new Set(['[', '(', '<', '"']);

/** What may not stand right behind a time: it would be a part of it. */
const behind = '(?:[^0-9A-Za-z].*)?$';

/** What begins in the same way, so that its beginning is looked at once a text. */
interface Family {
  readonly date: LinePattern;
  readonly members: readonly { readonly pattern: LinePattern; readonly order: number }[];
}

let families: readonly Family[] | undefined;

function familiesOf(): readonly Family[] {
  const byDate = new Map<string, { readonly pattern: LinePattern; readonly order: number }[]>();
  timeSpellings.forEach(({ date, shape }, order) => {
    const members = byDate.get(date ?? shape) ?? [];
    byDate.set(date ?? shape, members);
    members.push({ order, pattern: new LinePattern(`^${shape}${behind}`) });
  });
  return [...byDate].map(([date, members]) => ({ date: new LinePattern(`^${date}`), members }));
}

/** A day beside a clock, which a reading of the clock alone would leave out; an address or a version is none. */
const dayShape =
  /\d{1,4}([-/])\w{1,3}\1\d{1,4}|(?<![\d.])\d{1,2}\.\d{1,2}\.\d{2,4}(?![.\d])|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b/i;

/** What a time goes on with, where its spelling leaves it out: another half of the day, or a zone. */
const unreadShape = String.raw`(?: ?[AaPp]\.?[Mm]\b| [+-]\d{2}(?::?\d{2})?\b| [A-Z][a-z]+/[A-Z])`;

/** How far around a time it is looked for what belongs to it. */
const aroundMax = 48;

/**
 * Whether a spelling would read a part of what the texts say, and so another time than they do. Then it is better to know none.
 */
function leavesOut({ spelling, words, open }: Omit<TimePlace, 'share'>, texts: readonly string[]): boolean {
  const pattern = new LinePattern(`^(?P<time>${spelling.shape})${behind}`);
  const unread = new RegExp(`^${unreadShape}`);
  let read = 0;
  let left = 0;
  for (const text of texts) {
    const rest = behindWords(text, words)?.slice(open.length);
    if (rest === undefined) continue;
    const bytes = Buffer.from(rest);
    if (pattern.match(bytes, 0, bytes.length) !== true) continue;
    read++;
    const after = bytes.subarray(pattern.captures[1]!).toString().slice(0, aroundMax);
    const before = text.slice(0, text.indexOf(rest)).slice(-aroundMax);
    if (unread.test(after)) left++;
    else if (
      isDayless(spelling) &&
      (dayShape.test(before) || /^[\s,;|\]]*\d{1,4}[-/.]\w{1,3}[-/.]\d/.test(after))
    )
      left++;
  }
  return left > read / 2;
}

/**
 * Where most of the texts have a time: as near to the beginning as it is in `shareMin` of them. Undefined where they have none. Each is looked at
 * at the beginnings of its first words alone.
 */
export function findTime(texts: readonly string[], shareMin: number): TimePlace | undefined {
  const step = Math.max(1, Math.ceil(texts.length / linesSearchedMax));
  const searched = texts.filter((_text, i) => i % step === 0);
  for (let words = 0; words <= wordsBeforeMax; words++) {
    const found = bestPlace(searched, words);
    if (found !== undefined && found.share >= shareMin) return found;
  }
  return undefined;
}

/** Where the first lines of records have their time, at the beginning, however few of the texts those are; undefined where hardly any does. */
export function findRareTime(texts: readonly string[]): TimePlace | undefined {
  const begin = texts.filter((text) => /^[[(<"]?(?:\d|[A-Z][a-z]{2}[ ,/])/.test(text));
  if (begin.length < rareLinesMin) return undefined;
  const found = bestPlace(begin.slice(0, linesSearchedMax), 0);
  return found === undefined || isDayless(found.spelling) || found.share < 0.5 ? undefined : found;
}

function bestPlace(texts: readonly string[], words: number): TimePlace | undefined {
  families ??= familiesOf();
  const votes = new Map<string, { readonly place: Omit<TimePlace, 'share'>; count: number; order: number }>();
  for (const text of texts) {
    const rest = behindWords(text, words);
    if (rest === undefined) continue;
    const open = openers.has(rest[0] ?? '') ? (rest[0] as TimePlace['open']) : '';
    // No time is as long.
    const bytes = Buffer.from(rest.slice(open.length, open.length + 64));
    for (const { date, members } of families) {
      if (date.match(bytes, 0, bytes.length) !== true) continue;
      for (const { pattern, order } of members) {
        if (pattern.match(bytes, 0, bytes.length) !== true) continue;
        const key = `${open}${order}`;
        const vote = votes.get(key);
        if (vote === undefined)
          votes.set(key, { place: { words, open, spelling: timeSpellings[order]! }, count: 1, order });
        else vote.count++;
      }
    }
  }
  const best = [...votes.values()]
    .toSorted((a, b) => b.count - a.count || a.order - b.order)
    .find(({ place }) => !leavesOut(place, texts));
  return best === undefined ? undefined : { ...best.place, share: best.count / texts.length };
}

/** The text behind so many words and the blanks that follow them. */
function behindWords(text: string, words: number): string | undefined {
  let at = 0;
  for (let word = 0; word < words; word++) {
    const start = at;
    while (at < text.length && !isBlank(text, at)) at++;
    if (at === start || at === text.length) return undefined;
    while (at < text.length && isBlank(text, at)) at++;
  }
  return text.slice(at, at + 80);
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 32 || code === 9;
}
