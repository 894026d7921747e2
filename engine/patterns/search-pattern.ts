import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js';
import { LogstrataError } from '../core/errors.js';
import { readPatternProgram } from './compile-pattern.js';
import { requirePositions } from './pattern-positions.js';
import type { PatternProgram } from './pattern-program.js';
import { kept, patternSearch } from './pattern-search.js';
import { requiredRun, type RequiredRun } from './required-run.js';
import { requiredTexts } from './required-texts.js';

/** Maximum characters of a pattern that is searched for. */
const patternCharactersMax = 1000;

/** A pattern that is searched for in strings. */
export interface SearchPattern {
  readonly text: string;
  readonly program: PatternProgram;
  /** Every string that matches contains one of these texts after case folding. Empty where none is known. */
  readonly texts: readonly string[];
  /** A run of bytes that every string that matches has; null where texts are known, or no run. */
  readonly run: RequiredRun | null;
}

const known = new Map<string, SearchPattern>();

/**
 * Compiles a pattern in RE2 syntax, or takes the one that has been compiled before. Throws `invalid`, with the place of the mistake, for
 * one that is wrong or too large.
 */
export function searchPattern(text: string): SearchPattern {
  return kept(known, text, () => compile(text));
}

function compile(text: string): SearchPattern {
  const characters = Array.from(text).length;
  if (characters > patternCharactersMax)
    throw invalid(`too long: ${characters} characters, more than ${patternCharactersMax}`);
  if (/\p{Surrogate}/u.test(text)) throw invalid('not valid Unicode text');
  // Compiled, repetitions are written out, which can take a million times as much memory as the pattern.
  requirePositions(writtenOut(text));
  const program = programOf(text);
  // Throws for a program that is too large.
  patternSearch({ text, program });
  const texts = requiredTexts(program);
  return { text, program, texts, run: texts.length > 0 ? null : requiredRun(program) };
}

function programOf(text: string): PatternProgram {
  try {
    return readPatternProgram(RE2JS.compile(text));
  } catch (error) {
    if (error instanceof RE2JSSyntaxException)
      throw invalid(
        `at character ${Array.from(text.slice(0, placeOf(error, text))).length + 1}: ${error.error}`,
      );
    throw error instanceof RE2JSException ? invalid(error.message) : error;
  }
}

function invalid(problem: string): LogstrataError {
  return new LogstrataError('invalid', problem);
}

/** Where the mistake is that the parser reports. It reads on to the first one, which is therefore in the shortest beginning with it. */
function placeOf({ error, input }: RE2JSSyntaxException, text: string): number {
  if (input === null) return text.length - 1;
  if (error === 'missing closing )') return text.length;
  if (text.endsWith(input) && /^missing closing \]|^invalid named capture/.test(error))
    return text.length - input.length;
  let [right, wrong] = [0, text.length];
  while (wrong - right > 1) {
    const middle = (right + wrong) >> 1;
    const found = mistakeIn(text.slice(0, middle));
    if (found?.error === error && (found.input === input || input === text)) wrong = middle;
    else right = middle;
  }
  const place = input === text ? -1 : text.lastIndexOf(input, wrong - 1);
  return place < 0 ? wrong - 1 : place;
}

function mistakeIn(text: string): RE2JSSyntaxException | null {
  try {
    RE2JS.compile(text);
    return null;
  } catch (error) {
    return error instanceof RE2JSSyntaxException ? error : null;
  }
}

/** What a pattern consists of: quoted text, an escape, a class, the start of a group, a repetition, or a character. Takes linear time. */
const part =
  /\\Q[^]*?(?:\\E|$)|\\[xpP]\{[^}]*\}|\\[^]|\[\^?\]?(?:\[:\^?\w+:\]|\\[^]|[^\]\\])*\]?|\((?:\?(?:P?<[^>]*>|[\w-]*:?))?|\{(?<least>\d+)(?<most>,\d*)?\}|[^]/gu;

/** Parts that take no character. */
const takesNone = /^(?:[|^$*+?]|\\[bBAz])$/;

/** The number of characters and classes of a pattern whose repetitions are written out, or more. */
function writtenOut(text: string): number {
  const sizes = [0];
  let last = 0;
  for (const { 0: token, groups } of text.matchAll(part)) {
    if (token.startsWith('(')) {
      sizes.push(0);
      continue;
    }
    let added = takesNone.test(token) ? 0 : token.startsWith('\\Q') ? token.length : 1;
    if (groups?.['least'] !== undefined)
      added = last * (Math.max(Number(groups['least']), Number(groups['most']?.slice(1) ?? 0), 1) - 1);
    else if (token === ')' && sizes.length > 1) last = added = sizes.pop()!;
    else last = added;
    sizes[sizes.length - 1]! += added;
  }
  return sizes.reduce((sum, size) => sum + size, 0);
}
