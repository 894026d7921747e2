import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import {
  readSearch,
  searchNeedles,
  searchParameters,
  type SearchTerm,
} from '../../server/viewer/state/search.js';
import { markMatches } from '../../server/viewer/state/texts.js';

const written = (search: string): string =>
  readSearch(search)
    .map((group) =>
      group
        .map(({ text, isPattern, isAbsent }) => `${isAbsent ? '¬' : ''}${isPattern ? `~${text}` : text}`)
        .join('|'),
    )
    .join(' & ');

it.each([
  ['', ''],
  ['  a   b ', 'a & b'],
  ['"a b"', 'a b'],
  ['-a', '¬a'],
  ['-"a b" c', '¬a b & c'],
  ['a or b', 'a|b'],
  ['a OR b or c', 'a|b|c'],
  ['a -b or c', 'a & ¬b|c'],
  ['a or "b c" d', 'a|b c & d'],
  ['/took \\d+ ms/', '~took \\d+ ms'],
  ['/Time/i -/out$/', '~(?i)Time & ¬~out$'],
  ['a or /b|c/', 'a|~b|c'],
  ['/a\\/b/', '~a\\/b'],
  // What is no operator is text.
  ['or', 'or'],
  ['or a', 'or & a'],
  ['a or', 'a & or'],
  ['a or or b', 'a|or & b'],
  ['a Or b', 'a & Or & b'],
  ['-', '-'],
  ['- a', '- & a'],
  ['--verbose', '--verbose'],
  ['a-b', 'a-b'],
  ['"a b', '"a & b'],
  ['""', '""'],
  ['/', '/'],
  ['//', '//'],
  ['/api/orders', '/api/orders'],
  ['GET /api/orders/7', 'GET & /api/orders/7'],
  ['/a\\/', '/a\\/'],
  ['"level":"error"', 'level":"error'],
  ['5" -7', '5" & ¬7'],
])('reads %j as %s', (search, expected) => {
  expect(written(search)).toBe(expected);
});

/** Reads a search by the description alone, and takes as long as it likes. */
function naive(search: string): SearchTerm[][] {
  const term = /^\s*(-(?=[^\s-]))?(?:"([^]+?)"(?=\s|$)|\/((?:[^\\]|\\[^])+?)\/(i?)(?=\s|$)|(\S+))/;
  const terms: { term: SearchTerm; isOr: boolean }[] = [];
  let rest = search;
  for (let found = term.exec(rest); found !== null; found = term.exec(rest)) {
    const [whole, minus, quoted, pattern, flag, word] = found;
    const text = quoted ?? (pattern === undefined ? word! : `${flag === 'i' ? '(?i)' : ''}${pattern}`);
    terms.push({
      term: { text, isPattern: pattern !== undefined, isAbsent: minus !== undefined },
      isOr: minus === undefined && (word === 'or' || word === 'OR'),
    });
    rest = rest.slice(whole.length);
  }
  const groups: SearchTerm[][] = [];
  for (let i = 0; i < terms.length; i += 1) {
    groups.push([terms[i]!.term]);
    for (; terms[i + 1]?.isOr === true && terms[i + 2] !== undefined; i += 2)
      groups.at(-1)!.push(terms[i + 2]!.term);
  }
  return groups;
}

it('reads any text as a person who has only the description would', () => {
  const piece = fc.constantFrom(
    'a',
    'b',
    'or',
    'OR',
    'i',
    '-',
    '"',
    '/',
    '\\',
    ' ',
    ' ',
    '\t',
    ' or ',
    ' -',
    '"a b"',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      expect(readSearch(pieces.join(''))).toEqual(naive(pieces.join('')));
    }),
    { numRuns: caseCount(5000) },
  );
});

it('reads a text of many marks that end no term in linear time', () => {
  for (const piece of ['"a ', '/a ', '-"', '\\/ ', '/\\', 'or '])
    expect(readSearch(piece.repeat(200_000)).length).toBeGreaterThan(0);
});

it('asks for several terms by groups of filters', () => {
  expect(searchParameters('a -b or /c/ -/d/', 'message')).toEqual([
    [['message__like', 'a']],
    [
      ['message__not_like', 'b'],
      ['message__regex', 'c'],
    ],
    [['message__not_regex', 'd']],
  ]);
});

const marked = (text: string, search: string): string =>
  markMatches(text, searchNeedles(search))
    .map(({ text: part, isMatch }) => (isMatch ? `[${part}]` : part))
    .join('');

it('marks what was searched for, and not what was excluded', () => {
  expect(marked('A bad cab', 'a -bad or "d c"')).toBe('[A] b[a][d c][a]b');
  expect(marked('took 120 ms', '/took \\d+/')).toBe('[took 120] ms');
  expect(marked('Took 120 ms', '/TOOK/i or /[0-9]/')).toBe('[Took] [1][2][0] ms');
  // A pattern that only RE2 reads, or one that could keep the browser busy, is not marked.
  for (const pattern of ['\\Qa\\E', '(a+)+b', 'a*a*b', 'a.*b.*c', '[[:alpha:]]'])
    expect(marked('aab abc', `/${pattern}/`)).toBe('aab abc');
});

it('marks a long text for a pattern with a repetition without keeping the browser busy', () => {
  expect(marked('a'.repeat(1_000_000), '/a+b/')).toBe('a'.repeat(1_000_000));
});
