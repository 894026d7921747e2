import type { Parameter } from './filter.js';
import { type Needle, textNeedle } from './texts.js';

/** A term of a search. */
export interface SearchTerm {
  /** The text, or the pattern in RE2 syntax. */
  readonly text: string;
  readonly isPattern: boolean;
  /** Whether the text must not occur. */
  readonly isAbsent: boolean;
}

/** Reads the terms of a search one after another, in linear time. */
class TermReader {
  private at = 0;
  /** For each mark, the first place behind the reader at which it may end a term. */
  private readonly ends = new Map<string, number>();

  constructor(private readonly search: string) {}

  /** The next term, and whether it is the bare word `or`; undefined at the end. */
  next(): { readonly term: SearchTerm; readonly isOr: boolean } | undefined {
    while (this.at < this.search.length && this.isBlank(this.at)) this.at += 1;
    if (this.at === this.search.length) return undefined;
    const begin = this.at;
    const isAbsent = this.search[begin] === '-' && !this.isBlank(begin + 1) && this.search[begin + 1] !== '-';
    const from = isAbsent ? begin + 1 : begin;
    const mark = this.search[from]!;
    const end = mark === '"' || mark === '/' ? this.endOf(mark, from) : undefined;
    if (end !== undefined) {
      const inside = this.search.slice(from + 1, end);
      const ignoresCase = mark === '/' && this.search[end + 1] === 'i';
      this.at = end + (ignoresCase ? 2 : 1);
      const text = ignoresCase ? `(?i)${inside}` : inside;
      return { term: { text, isPattern: mark === '/', isAbsent }, isOr: false };
    }
    while (!this.isBlank(this.at)) this.at += 1;
    const text = this.search.slice(from, this.at);
    return {
      term: { text, isPattern: false, isAbsent },
      isOr: !isAbsent && (text === 'or' || text === 'OR'),
    };
  }

  private isBlank(at: number): boolean {
    return at >= this.search.length || this.search[at]!.trim() === '';
  }

  /** The place of the mark that ends the term whose first mark is at `from`; undefined where the term has no end, or nothing in it. */
  private endOf(mark: string, from: number): number | undefined {
    let at = Math.max(this.ends.get(mark) ?? 0, from + 2);
    while (at < this.search.length && !this.isEnd(mark, at)) at += 1;
    this.ends.set(mark, at);
    return at < this.search.length ? at : undefined;
  }

  /** Whether a mark ends a term: only before a blank, so that paths and JSON can be searched for as they are. */
  private isEnd(mark: string, at: number): boolean {
    if (this.search[at] !== mark) return false;
    if (mark === '"') return this.isBlank(at + 1);
    let escapes = 0;
    while (this.search[at - 1 - escapes] === '\\') escapes += 1;
    return escapes % 2 === 0 && this.isBlank(this.search[at + 1] === 'i' ? at + 2 : at + 1);
  }
}

/**
 * Parses a search: `a b` for both, `"a b"` for one text, `-a` for records without it, `a or b` for one of both (stronger than a blank), and
 * `/re/` or `/re/i` for a pattern. A record must match a term of each group. Whatever has no such meaning is text.
 */
export function readSearch(search: string): readonly (readonly SearchTerm[])[] {
  const reader = new TermReader(search);
  const groups: SearchTerm[][] = [];
  let isJoined = false;
  for (let read = reader.next(), following = reader.next(); read !== undefined; following = reader.next()) {
    const isJoint: boolean = read.isOr && !isJoined && groups.length > 0 && following !== undefined;
    if (isJoined) groups.at(-1)!.push(read.term);
    else if (!isJoint) groups.push([read.term]);
    isJoined = isJoint;
    read = following;
  }
  return groups;
}

/** The groups of a search as parameters of the query route for a field, which may be `anyField`. */
export function searchParameters(search: string, field: string): readonly (readonly Parameter[])[] {
  return readSearch(search).map((terms) =>
    terms.map(({ text, isPattern, isAbsent }) => [
      `${field}__${isAbsent ? 'not_' : ''}${isPattern ? 'regex' : 'like'}`,
      text,
    ]),
  );
}

/** Patterns are marked only in the first characters of a text, as that may take a time that grows with the square of the length. */
const patternCharsMax = 500;

/**
 * What marks a pattern: JavaScript's expression, if it has no bracket and at most one repetition, as others can take a time that is exponential
 * in the length of a text. Nothing for others, and for patterns that only RE2 understands.
 */
function patternNeedles(pattern: string): readonly Needle[] {
  const ignoresCase = pattern.startsWith('(?i)');
  const source = ignoresCase ? pattern.slice(4) : pattern;
  if (source.includes('(') || source.split(/[*+?{]/).length > 2) return [];
  try {
    return [{ expression: new RegExp(source, ignoresCase ? 'giu' : 'gu'), charsMax: patternCharsMax }];
  } catch {
    return [];
  }
}

/** What is marked in the records that a search has found. */
export function searchNeedles(search: string): readonly Needle[] {
  return readSearch(search)
    .flat()
    .filter(({ isAbsent }) => !isAbsent)
    .flatMap(({ text, isPattern }) => (isPattern ? patternNeedles(text) : textNeedle(text)));
}
