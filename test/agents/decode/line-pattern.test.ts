import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { anyPattern, patternText } from '../../model/any-pattern.js';
import { LinePattern } from '../../../agents/definition/line-pattern.js';
import { isLogstrataError } from '../../../engine/core/errors.js';

type Captures = Record<string, string | null> | null;

function capturesOf(pattern: LinePattern, text: string): Captures {
  // The bytes around the line show whether positions are relative to the line.
  const line = Buffer.from(text);
  const bytes = Buffer.concat([Buffer.from('ab'), line, Buffer.from('ba')]);
  if (!pattern.match(bytes, 2, 2 + line.length)) return null;
  const entries = pattern.groupNames.map((name, i): [string, string | null] => {
    const from = pattern.captures[2 * i]!;
    const to = pattern.captures[2 * i + 1]!;
    return [name, from < 0 ? null : bytes.toString('utf8', from, to)];
  });
  return Object.fromEntries(entries);
}

/** The result of re2js itself. */
function referenceOf(text: string, line: string): Captures {
  const pattern = RE2JS.compile(text);
  const matcher = pattern.matcher(line);
  if (!matcher.find()) return null;
  const names = Object.keys(pattern.namedGroups());
  return Object.fromEntries(names.map((name) => [name, matcher.group(name)]));
}

function expectLike(text: string, lines: readonly string[]): void {
  const pattern = new LinePattern(text);
  expect(pattern.keepsStates).toBe(true);
  for (const line of lines) {
    expect({ text, line, captures: capturesOf(pattern, line) }).toEqual({
      text,
      line,
      captures: referenceOf(text, line),
    });
  }
}

/** Letters a and b in random order. */
function randomLetters(count: number): string {
  let seed = 1;
  const letters = Array.from({ length: count }, () => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return seed & 0x10000 ? 'a' : 'b';
  });
  return letters.join('');
}

const samples = [
  '',
  'a',
  'ab',
  'aab',
  'abc',
  'Ab',
  'foo bar',
  'x=1 y=2',
  'a\nb',
  '\n',
  'é',
  'aéb',
  'K k \u212a',
  '🦊a',
  '\0',
];

describe('LinePattern', () => {
  it.each([
    '^(?P<a>[^ ]+) (?P<b>.*)$',
    '(?P<a>a*)(?P<b>b*)',
    '(?P<a>a|ab)(?P<b>c|bcd)(?P<c>d*)',
    '(?P<a>a|ab)*?(?P<rest>.*)',
    '(?:(?P<a>a)|(?P<b>b))*',
    '(?:(?P<a>a*)|b)*',
    '(?P<a>a*)*',
    '(?P<a>(?P<inner>a*)+)b',
    '(?P<lazy>.*?)b(?P<rest>.*?)$',
    '(?P<lazy>.+?)(?P<more>[a-c]??)',
    '(?i)(?P<a>k+)',
    '(?i:(?P<a>AB))c',
    '(?P<a>(?-i:A)b)',
    '(?s)^(?P<all>.*)$',
    '(?P<line>.+)',
    '(?m)^(?P<line>.*)$',
    '(?m)(?P<last>[^\\n]*)$\\z',
    '(?U)(?P<a>a+)(?P<rest>.*)$',
    '\\A(?P<a>\\pL+)\\z',
    '(?P<a>\\p{Greek}|\\PL)',
    '(?P<a>[[:alpha:]]+)(?P<d>[[:^alpha:]]?)',
    '(?P<a>\\bfoo\\b)(?P<rest>.*)',
    '(?P<a>\\B.)',
    '\\Qa.b\\E|(?P<a>\\x{e9})',
    '(?P<w>\\w+)\\W(?P<s>\\S*)',
    '(?P<d>\\d+)\\s(?P<y>.)',
    '(?<a>a{2,3})(?<b>b{0,1})',
    '(?P<a>^)(?P<b>$)',
    '(?P<none>z)?a',
    '(?P<empty>)b',
    '[^a](?P<a>.)',
    '(?P<a>.?)',
    '$^',
    'a$(?P<never>b)',
    '(?P<fox>🦊)',
  ])('agrees with re2js on %s', (text) => {
    expectLike(text, samples);
  });

  it('agrees with re2js on random patterns and lines', () => {
    fc.assert(
      fc.property(anyPattern(), fc.array(patternText, { minLength: 1, maxLength: 8 }), (text, lines) => {
        expectLike(text, lines);
      }),
      { numRuns: caseCount(1500, 200_000) },
    );
  });

  it('records only the requested groups', () => {
    const narrow = new LinePattern('^(?P<a>.)(?P<b>.)(?P<c>.)$', new Set(['c', 'a', 'missing']));
    expect(narrow.groupNames).toEqual(['a', 'c']);
    expect(capturesOf(narrow, 'xyz')).toEqual({ a: 'x', c: 'z' });
  });

  it.each([
    ['(a+)+$', `${'a'.repeat(50_000)}b`],
    ['^(?:(?P<x>a*)*)*b$', 'a'.repeat(50_000)],
    ['(.*)(.*)(.*)(.*)(.*)x$', 'a'.repeat(50_000)],
    ['(?i)^(?P<x>(?:a|A|aa)+)$', `${'a'.repeat(50_000)}!`],
  ])('takes linear time where backtracking does not: %s', (text, hostile) => {
    const pattern = new LinePattern(text);
    expect(pattern.match(Buffer.from(hostile), 0, hostile.length)).toBe(false);
    expect(pattern.keepsStates).toBe(true);
  });

  it('does not cache the states of a pattern with too many, and gives the same answer', () => {
    const text = '(?P<x>a.{300})(?P<y>c+)';
    const pattern = new LinePattern(text);
    const lineText = `${randomLetters(20_000)}c`;
    const captures = capturesOf(pattern, lineText);
    expect(pattern.keepsStates).toBe(false);
    expect(captures).toEqual(referenceOf(text, lineText));
    const found = `éé${'a'.repeat(310)}cc`;
    expect(capturesOf(pattern, found)).toEqual(referenceOf(text, found));
  });

  it('continues after it discarded its cached states', () => {
    const text = '(?P<x>a[ab]{11})c';
    const pattern = new LinePattern(text);
    let seed = 7;
    for (let i = 0; i < 60; i++) {
      const letters = Array.from({ length: 2000 }, () => {
        seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
        return (seed >>> 16) & 1 ? 'a' : 'b';
      });
      const lineText = `${letters.join('')}c`;
      expect(capturesOf(pattern, lineText)).toEqual(referenceOf(text, lineText));
    }
  });

  /** A program of 40,002 instructions, thousands of which are active at each character of a long line. */
  const repeated = `^${'(?:.{0,1000})'.repeat(19)}(?P<last>.{0,1000})(?P<end>x)$`;

  it('gives up a line that takes too many steps, and matches other lines as before', () => {
    const pattern = new LinePattern(repeated);
    const short = `${'ab'.repeat(40)}x`;
    const captures = capturesOf(pattern, short);
    expect(captures).toEqual(referenceOf(repeated, short));
    expect(pattern.match(Buffer.alloc(100_000, 'a'), 0, 100_000)).toBeUndefined();
    expect(capturesOf(pattern, short)).toEqual(captures);
    expect(pattern.match(Buffer.from('none'), 0, 4)).toBe(false);
  });

  it('gives up such a line whatever the lines before it were', () => {
    const text = '(?P<x>a.{300})(?P<y>c+)';
    const line = Buffer.from(randomLetters(200_000));
    const pattern = new LinePattern(text);
    expect(pattern.match(line, 0, line.length)).toBeUndefined();
    expect(pattern.match(line, 0, 20_000)).toBe(false);
    // From here on, there are too many states to cache.
    expect(pattern.keepsStates).toBe(false);
    expect(pattern.match(line, 0, line.length)).toBeUndefined();
    expect(pattern.match(Buffer.alloc(200_000, 'b'), 0, 200_000)).toBe(false);
  });

  it('gives up a line for which too many capture positions are copied', () => {
    const groups = Array.from({ length: 900 }, (_, i) => `(?P<f${i}>a*)`).join('');
    const pattern = new LinePattern(`^${groups}b`);
    expect(pattern.match(Buffer.alloc(3000, 'a'), 0, 3000)).toBeUndefined();
    expect(capturesOf(pattern, 'aab')).toMatchObject({ f0: 'aa', f1: '', f899: '' });
  });

  it('matches lines of the maximum length if a large pattern takes few steps', () => {
    const words = Array.from({ length: 3000 }, (_, i) => `w${(i * 7919) % 10_007}x`);
    const pattern = new LinePattern(`(?P<word>${words.join('|')})`);
    const line = `${'v1'.repeat(500_000)} ${words[1234]!}`;
    expect(capturesOf(pattern, line)).toEqual({ word: words[1234] });
  });

  it.each([
    ['.{0,1000}'.repeat(40), 'it has 80002 instructions, more than 65536'],
    [
      Array.from({ length: 8000 }, (_, i) => String.fromCodePoint(0x4e00 + 2 * i)).join(''),
      'too many different characters',
    ],
  ])('refuses a pattern that is too large', (text, message) => {
    expect(() => new LinePattern(text)).toThrow(message);
  });

  it('reports the mistake in a pattern', () => {
    for (const text of ['(', 'a**', '(?P<n>a)(?P<n>b)', '[z-a]', '(?<=a)b', '\\8', 'a{1001}']) {
      try {
        new LinePattern(text);
        expect.fail(`${text} was accepted`);
      } catch (error) {
        expect(isLogstrataError(error) && error.code).toBe('invalid');
      }
    }
  });
});
