import { LinePattern } from '../patterns/line-pattern.js';
import { timeSpellings, type TimeSpelling } from './time-spellings.js';

/** Words that may stand before the time. */
const wordsBeforeMax = 6;

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

let patterns: readonly LinePattern[] | undefined;

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

function bestPlace(texts: readonly string[], words: number): TimePlace | undefined {
  patterns ??= timeSpellings.map(({ shape }) => new LinePattern(`^${shape}${behind}`));
  const votes = new Map<string, { readonly place: Omit<TimePlace, 'share'>; count: number; order: number }>();
  for (const text of texts) {
    const rest = behindWords(text, words);
    if (rest === undefined) continue;
    const open = openers.has(rest[0] ?? '') ? (rest[0] as TimePlace['open']) : '';
    // No time is as long.
    const bytes = Buffer.from(rest.slice(open.length, open.length + 64));
    patterns.forEach((pattern, order) => {
      if (pattern.match(bytes, 0, bytes.length) !== true) return;
      const key = `${open}${order}`;
      const vote = votes.get(key);
      if (vote === undefined)
        votes.set(key, { place: { words, open, spelling: timeSpellings[order]! }, count: 1, order });
      else vote.count++;
    });
  }
  const best = [...votes.values()].toSorted((a, b) => b.count - a.count || a.order - b.order)[0];
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
