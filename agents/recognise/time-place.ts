import { LinePattern } from '../patterns/line-pattern.js';
import { isDayless, timeSpellings, type TimeSpelling } from './time-spellings.js';

/** Limit on the words before the time. */
const wordsBeforeMax = 6;

/** Minimum number of lines that begin with a time, for the other lines to count as continuations. */
const rareLinesMin = 3;

/** Limit on the lines that are searched for times: each is matched with every spelling. */
const linesSearchedMax = 120;

/** Position and spelling of the time in lines. */
export interface TimePlace {
  /** Number of words before it. */
  readonly words: number;
  /** The bracket before it, or nothing. */
  readonly open: '' | '[' | '(' | '<' | '"';
  readonly spelling: TimeSpelling;
  /** Share of the searched lines that have such a time. */
  readonly share: number;
}

const openers = new Set(['[', '(', '<', '"']);

/** What may follow a time: not a letter or digit, which would be part of it. */
const behind = '(?:[^0-9A-Za-z].*)?$';

/** Spellings with the same beginning, which is matched only once per text. */
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

/** A date next to a time of day, which a spelling of the time of day alone would ignore. Does not match IP addresses and versions. */
const dayShape =
  /\d{1,4}([-/])\w{1,3}\1\d{1,4}|(?<![\d.])\d{1,2}\.\d{1,2}\.\d{2,4}(?![.\d])|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b/i;

/** What may continue a time that a spelling leaves out: AM or PM, or a zone. */
const unreadShape = String.raw`(?: ?[AaPp]\.?[Mm]\b| [+-]\d{2}(?::?\d{2})?\b| [A-Z][a-z]+/[A-Z])`;

/** Number of characters around a time in which its other parts are searched. */
const aroundMax = 48;

/** Whether a spelling would read only a part of the texts' time, and so a wrong one. Then it is better to recognise none. */
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
 * Finds the time in texts: the position nearest to the beginning at which at least `shareMin` of them have one. Undefined
 * where there is none. Only the beginnings of the first words are searched.
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

/**
 * Finds the time at the beginning of the first lines of records, even if these are few of the texts; undefined where hardly
 * any text has one.
 */
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
    // No time is longer.
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

/** The text after `words` words and the blanks after each. */
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
