import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { anyPattern, patternText } from '../model/any-pattern.js';
import { foldText } from '../../engine/core/fold.js';
import { patternSearch } from '../../engine/patterns/pattern-search.js';
import { selectRun } from '../../engine/patterns/required-run.js';
import { searchPattern } from '../../engine/patterns/search-pattern.js';
import { stringsOf } from '../kernels/strings.js';
import { both } from '../kernels/lay.js';

/** Whether each text matches, and the number of steps that the search took. */
function matchesOf(pattern: string, texts: readonly string[]): { found: boolean[]; steps: number } {
  const search = patternSearch(searchPattern(pattern));
  // A row before and one after show whether positions are relative to the row.
  const rows = ['ab', ...texts, 'ba'];
  const bits = new Uint8Array((rows.length + 7) >> 3);
  texts.forEach((_, i) => (bits[(i + 1) >> 3]! |= 1 << ((i + 1) & 7)));
  let steps = 1;
  const { offsets, bytes } = stringsOf(rows.map((row) => Buffer.from(row)));
  for (const step of search.narrow({ offsets, bytes }, bits, 0, rows.length)) {
    expect(step).toBeUndefined();
    steps++;
  }
  expect([bits[0]! & 1, (bits.at(-1)! >> ((rows.length - 1) & 7)) & 1]).toEqual([0, 0]);
  return {
    found: texts.map((_, i) => ((bits[(i + 1) >> 3]! >> ((i + 1) & 7)) & 1) === 1),
    steps,
  };
}

function expectLike(pattern: string, texts: readonly string[]): void {
  const own = RE2JS.compile(pattern);
  const wanted = texts.map((text) => own.matcher(text).find());
  expect({ pattern, texts, found: matchesOf(pattern, texts).found }).toEqual({
    pattern,
    texts,
    found: wanted,
  });
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

/** The same pattern, with an alternative that never matches the texts, but has too many states to keep once it has read random letters. */
function withoutStates(pattern: string): string {
  const text = `(?:${pattern})|[b].{40}\\x{10fffe}`;
  matchesOf(text, [randomLetters(20_000)]);
  return text;
}

const strangeAtoms = fc.constantFrom(
  ...[
    'k',
    'K',
    '\u212a',
    's',
    'ſ',
    'ß',
    'ẞ',
    'σ',
    'ς',
    'Σ',
    '[k-s]',
    '[^k]',
    '\\x{212a}',
    '中',
    '\\p{Greek}',
    '.',
  ],
);
const strangeText = fc.string({
  unit: fc.constantFrom(...'kK\u212asſßẞσςΣ中a\n😀'),
  maxLength: 8,
});

describe('the search for a pattern', () => {
  it('agrees with re2js on random patterns and texts', () => {
    fc.assert(fc.property(anyPattern(), fc.array(patternText, { minLength: 1, maxLength: 12 }), expectLike), {
      numRuns: caseCount(1500, 200_000),
    });
  });

  it('agrees with re2js on random patterns and texts with other letters', () => {
    fc.assert(
      fc.property(
        anyPattern(strangeAtoms),
        fc.array(strangeText, { minLength: 1, maxLength: 12 }),
        expectLike,
      ),
      { numRuns: caseCount(500, 50_000) },
    );
  });

  it('agrees with re2js on random patterns that have too many states', () => {
    fc.assert(
      fc.property(anyPattern(), fc.array(patternText, { minLength: 1, maxLength: 12 }), (pattern, texts) => {
        const text = withoutStates(pattern);
        // Where the pattern matches the random letters early, no states are computed.
        if (!RE2JS.compile(pattern).matcher(randomLetters(3000)).find())
          expect(patternSearch(searchPattern(text)).isExhausted).toBe(true);
        expectLike(text, texts);
      }),
      { numRuns: caseCount(100, 5000) },
    );
  });

  it('agrees with re2js where many parts can be left out, with states and without them', () => {
    const part = fc.constantFrom('a?', 'b?', '[ab]?', 'x?', 'é?', '(?:ab)?', 'b*', '\\b', 'a', '\n?', '1?');
    const pattern = fc.array(part, { minLength: 8, maxLength: 200 });
    const texts = fc.array(patternText, { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(
        pattern,
        fc.constantFrom('', '^', '1'),
        fc.constantFrom('$', 'x', 'b$'),
        texts,
        (parts, from, to, all) => {
          const text = from + parts.join('') + to;
          expectLike(text, all);
          expectLike(withoutStates(text), all);
        },
      ),
      { numRuns: caseCount(60, 5000) },
    );
  });

  it('goes on within a long text, character by character', () => {
    const text = `${'é'.repeat(1_500_000)}x1y${'🦊'.repeat(10)}`;
    for (const pattern of ['x[0-9]y🦊{10}$', '^é+x', 'z[0-9]', '[0-9]y(?:..){5}$', 'é{30}X'])
      expectLike(pattern, [text, 'x1y', text]);
    expect(matchesOf('x[0-9]z', [text]).steps).toBeGreaterThan(2);
    const hostile = withoutStates('x[0-9]y🦊{10}$');
    expect(matchesOf(hostile, [text])).toMatchObject({ found: [true] });
    expect(matchesOf(hostile, [text]).steps).toBeGreaterThan(40);
  });

  it('finds the same in the memory of the kernels as outside of it', () => {
    const search = patternSearch(searchPattern('[0-9]+m?s$|^é'));
    const texts = ['12ms', 'é', '12', '', '7s', 'aé', '12msx'];
    const column = stringsOf(
      texts.map((text) => Buffer.from(text)),
      5,
      9,
    );
    both((lay) => {
      const bits = Uint8Array.of(0x7f);
      const steps = search.narrow(
        { offsets: lay(column.offsets), bytes: lay(column.bytes) },
        bits,
        0,
        texts.length,
      );
      expect(steps.next().done).toBe(true);
      expect(bits[0]).toBe(0b0010011);
    });
  });

  it.each([
    '(a*)*b',
    '(x+x+)+y',
    '(a|aa)+$',
    '.{0,500}x',
    'a.{500}x',
    '[ab]?a.{0,900}x',
    '(?:a?){40}a{40}x',
    '(?i)\\pL{300}x',
    '[^\\pL\\pN]{300}',
    `${'('.repeat(200)}a${')'.repeat(200)}x`,
    '((a{1,4}){1,4}){1,4}x',
  ])('takes a bounded number of steps for a hostile pattern: %s', (pattern) => {
    const text = randomLetters(200_000);
    const { found, steps } = matchesOf(pattern, [text, 'aax', text]);
    expect(found).toEqual(
      [text, 'aax', text].map((each) => RE2JS.compile(pattern).matcher(each.slice(0, 2000)).find()),
    );
    // A step reads at least 64 KiB or computes a thousand transitions, of which there are few before states are no longer kept.
    expect(steps).toBeLessThan(40);
  });
});

describe('the texts that a pattern requires', () => {
  it('are in every text that matches', () => {
    const words = fc.constantFrom('foo', 'bar', 'ba', 'k', 'É', '[rz]', 'x', '.', '\\d', ' ');
    const text = fc
      .array(fc.constantFrom('foo', 'bar', 'ba', 'FOO', 'k', '\u212a', 'é', 'É', 'r', 'z', 'x', '1', ' '), {
        maxLength: 9,
      })
      .map((parts) => parts.join(''));
    let known = 0;
    fc.assert(
      fc.property(anyPattern(words), fc.array(text, { minLength: 20, maxLength: 40 }), (pattern, texts) => {
        const required = searchPattern(pattern).texts;
        if (required.length > 0) known++;
        for (const each of texts) {
          if (!RE2JS.compile(pattern).matcher(each).find() || required.length === 0) continue;
          expect(
            required.some((part) => foldText(each).includes(part)),
            `${pattern} in ${each}`,
          ).toBe(true);
        }
      }),
      { numRuns: caseCount(1000, 100_000) },
    );
    expect(known).toBeGreaterThan(10);
  });

  it.each<[pattern: string, texts: string[]]>([
    ['timeout', ['timeout']],
    ['^Error: [0-9]+$', ['error: ']],
    ['(?i)TimeOut after', ['timeout after']],
    ['user=[0-9]+ failed', [' failed']],
    ['(foo|barn)[0-9]', ['foo', 'bar']],
    ['x+foo', ['foo']],
    ['[a-z]+ /api/v[12]/', [' /api/v1/', ' /api/v2/']],
    ['a[rz]e', ['are', 'aze']],
    ['(?i)straSSe', ['strasse']],
    ['größe|GRÖẞE', ['größe']],
    ['(a.*b)?', []],
    ['[0-9]+', []],
    ['', []],
    ['(foo)?bar\\b', ['bar']],
    ['(ab)+', ['ab']],
  ])('of %s', (pattern, texts) => {
    expect([...searchPattern(pattern).texts].sort()).toEqual([...texts].sort());
  });
});

describe('the run that a pattern requires', () => {
  it('is in every text that matches, also at the end of a row and of all rows', () => {
    const part = fc.constantFrom(
      '[a-f]',
      '[0-9]',
      '[a-f]{2}',
      '[0-9]+',
      '(?:[a-c]|[x-z][0-9])',
      '[0-9a-f]',
      '\\b',
      'é?',
      '.',
    );
    const text = fc
      .array(fc.constantFrom('a', 'c', 'f', '0', '9', 'x7', 'é', ' '), {
        maxLength: 30,
      })
      .map((parts) => parts.join(''));
    let known = 0;
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 5, maxLength: 9 }).map((parts) => parts.join('')),
        fc.array(text, { minLength: 1, maxLength: 40 }),
        (pattern, texts) => {
          const { run } = searchPattern(pattern);
          if (run === null) return;
          known++;
          const { offsets, bytes } = stringsOf(texts.map((each) => Buffer.from(each)));
          const bits = new Uint8Array((texts.length + 7) >> 3).fill(0xff);
          selectRun({ offsets, bytes }, run, 0, texts.length, bits);
          texts.forEach((each, row) => {
            const isSelected = ((bits[row >> 3]! >> (row & 7)) & 1) === 1;
            if (RE2JS.compile(pattern).matcher(each).find())
              expect({ pattern, texts, row, isSelected }).toEqual({
                pattern,
                texts,
                row,
                isSelected: true,
              });
          });
        },
      ),
      { numRuns: caseCount(1000, 100_000) },
    );
    expect(known).toBeGreaterThan(caseCount(100));
  });

  it('rules out what has no such bytes', () => {
    const texts = Array.from({ length: 64 }, (_, row) =>
      row === 40 ? 'id abcdefabc1234567 ends' : 'id abcdef1234567890 ends',
    );
    const { offsets, bytes } = stringsOf(texts.map((each) => Buffer.from(each)));
    const bits = new Uint8Array(8);
    selectRun({ offsets, bytes }, searchPattern('[a-f]{7}[0-9]{7}').run!, 0, 64, bits);
    // The last row is too near the end to be looked at.
    expect([...bits]).toEqual([0, 0, 0, 0, 0, 1, 0, 0x80]);
    expect(searchPattern('[0-9]+').run).toBeNull();
    expect(searchPattern('timeout [0-9]{9}').run).toBeNull();
  });
});

describe('a pattern that is wrong', () => {
  it.each([
    ['a(b', 'at character 4: missing closing )'],
    ['(a)(b', 'at character 6: missing closing )'],
    ['(a)b)c', 'at character 5: unexpected )'],
    ['é*a**', 'at character 4: invalid nested repetition operator'],
    ['a\\*|*b', 'at character 5: missing argument to repetition operator'],
    ['🦊[a]x[b', 'at character 6: missing closing ]'],
    ['[a-z][z-a]', 'at character 7: invalid character class range'],
    ['(?i)x(?z)', 'at character 6: invalid or unsupported Perl syntax'],
    ['x(?<=a)b', 'at character 2: invalid named capture'],
    ['a{2}b{1001}', 'at character 6: invalid repeat count'],
    ['\\d\\8', 'at character 3: invalid escape sequence'],
    ['\\d\\', 'at character 3: trailing backslash at end of expression'],
    ['(?P<n>a)(?P<n>b)', 'at character 13: duplicate capture group name'],
    ['[[:alpha:]][[:foo:]]', 'at character 13: invalid character class range'],
    ['\\pL\\pX', 'at character 4: invalid character class range'],
    ['a'.repeat(1001), 'too long: 1001 characters, more than 1000'],
    [`(?:${'a'.repeat(900)}){1000}`, 'too large: with its repetitions written out it has 900000 characters'],
    ['.{0,1000}'.repeat(100), 'too large: with its repetitions written out it has 100000 characters'],
    ['(?:(?:ab)?(?:cd)?){100}', 'too large: it has too many parts'],
  ])('is refused with the place of the mistake: %s', (pattern, message) => {
    expect(() => searchPattern(pattern)).toThrow(message);
  });

  it('is never refused as too large without repetitions', () => {
    const pattern = Array.from({ length: 200 }, (_, i) => `w${i}x?`)
      .join('|')
      .slice(0, 999);
    expect(patternSearch(searchPattern(pattern)).isExhausted).toBe(false);
    expect(searchPattern(`(?P<username>[a-z]+){100}`).texts).toEqual([]);
  });

  it('of any characters is compiled or refused', () => {
    const text = fc.string({
      unit: fc.constantFrom(...'ab()[]{}|*+?^$\\.,:-!=<>PQEdpLx019 \n\u212a'),
      maxLength: 30,
    });
    fc.assert(
      fc.property(text, (pattern) => {
        try {
          searchPattern(pattern);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid' });
        }
      }),
      { numRuns: caseCount(2000, 200_000) },
    );
  });
});
