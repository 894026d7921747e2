import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { Value } from '../../model/rows.js';
import { agent, decodeLines } from './decode-lines.js';

const names = ['a', 'b', 'a.b', 'é'];
const texts = agent(
  names.map((source, i) => ({ name: `f${i}`, source })),
  { format: 'logfmt' },
);

/** The values of a line that are not null, by name. */
function read(text: string): Record<string, Value> {
  const { rows, rejected } = decodeLines(texts, `${text}\n`);
  expect(rejected).toEqual([]);
  expect(rows.length).toBe(1);
  const values = rows[0]!.map((value, i) => [names[i]!, value] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== null));
}

describe('pairs', () => {
  it('are keys and values separated by blanks, in any order', () => {
    expect(read('b=2 a=1')).toEqual({ a: '1', b: '2' });
    expect(read(' \ta=1 \t  é=x\u00a0y\t')).toEqual({ a: '1', é: 'x\u00a0y' });
    expect(read('a="one two" b=""')).toEqual({ a: 'one two', b: '' });
    expect(read('A=no ab=no a.b=1 x=a')).toEqual({ 'a.b': '1' });
  });

  it('have values up to the next blank, with any other characters', () => {
    expect(read('a=/x?y=1&z=2 b==')).toEqual({ a: '/x?y=1&z=2', b: '=' });
    expect(read(`a=5" b='x`)).toEqual({ a: '5"', b: "'x" });
    expect(read('a=C:\\new\\x b=\\')).toEqual({ a: 'C:\\new\\x', b: '\\' });
    expect(read('a=\0 b=1')).toEqual({ a: '\0', b: '1' });
  });

  it('may have an empty value, or only a key, which means true', () => {
    expect(read('a= b=')).toEqual({ a: '', b: '' });
    expect(read('a b=1')).toEqual({ a: 'true', b: '1' });
    expect(read('b=1 a')).toEqual({ a: 'true', b: '1' });
  });

  it('give the last value of a repeated key', () => {
    expect(read('a=1 a=2')).toEqual({ a: '2' });
    expect(read('a="x\\ny" a=')).toEqual({ a: '' });
    expect(read('a=1 a')).toEqual({ a: 'true' });
  });

  it('have no paths: a key with dots is a plain key', () => {
    const definition = agent([{ name: 'v', source: 'a.b' }], { format: 'logfmt' });
    expect(decodeLines(definition, 'a={"b":1}\na.b=2\n').rows).toEqual([[null], ['2']]);
  });
});

describe('quoted text', () => {
  it('may contain the escapes of Go and JSON', () => {
    expect(read('a="\\"\\\\\\/\\\'\\a\\b\\f\\n\\r\\t\\v"').a).toBe('"\\/\'\x07\b\f\n\r\t\v');
    expect(read('a="\\x1b[0m\\u00e9\\u20AC\\ud83e\\udd8a\\U0001f98a"').a).toBe('\x1b[0mé€🦊🦊');
    expect(read('a="\\xe2\\x82\\xac"').a).toBe('€');
  });

  it('keeps a backslash before any other character', () => {
    for (const text of ['\\d\\ ', '\\x1', '\\xg0', '\\u12g4', '\\U0001', '\\0', '\\é'])
      expect(read(`a="${text}"`).a).toBe(text);
  });

  it('has U+FFFD for escapes of invalid characters, which are counted', () => {
    const line = 'a="x\\ud83ey\\udd8a" b="\\ud83e\\ud83e\\udd8a" a.b="\\xff" é="\\U00110000\\Ud83e0000"';
    const { rows, replacedBytes } = decodeLines(texts, line);
    expect(rows).toEqual([['x\ufffdy\ufffd', '\ufffd🦊', '\ufffd', '\ufffd\ufffd']]);
    expect(replacedBytes).toBe(6);
  });

  it('is kept apart from other texts of the same line', () => {
    const value = '\\n\\u00e9'.repeat(3000);
    const expected = '\né'.repeat(3000);
    expect(read(`a="${value}1" x="${value}" b="${value}2" a="${value}3"`)).toEqual({
      a: `${expected}3`,
      b: `${expected}2`,
    });
  });
});

describe('values', () => {
  it('of keys without a value are true', () => {
    const definition = agent([{ name: 'cached', type: 'bool' }], { format: 'logfmt' });
    const { rows } = decodeLines(definition, 'a=1 cached\na=1\ncached=no');
    expect(rows).toEqual([[1n], [null], [0n]]);
  });

  it('are read as the types of their fields', () => {
    const definition = agent(
      [
        { name: 'time', type: 'time', timestamp: { format: 'rfc3339' } },
        { name: 'n', type: 'int' },
        { name: 'took', type: 'float' },
        { name: 'text', template: '{{.n}} of {{.who}}' },
        { name: 'host' },
      ],
      { format: 'logfmt' },
    );
    const line = 'time=2026-11-21T12:00:00Z n=9007199254740993 took=0.5 who="a b" host=no';
    const captures = new Map([['host', 'web1']]);
    const { rows, unreadableValues } = decodeLines(definition, `${line}\nn took=x\nn=\n${line}`, {
      captures,
    });
    const row = [
      BigInt(Date.UTC(2026, 10, 21, 12)),
      9007199254740993n,
      0.5,
      '9007199254740993 of a b',
      'web1',
    ];
    expect(rows).toEqual([
      row,
      [null, null, null, 'true of ', 'web1'],
      [null, null, null, ' of ', 'web1'],
      row,
    ]);
    expect(unreadableValues).toBe(3);
  });

  it('with invalid UTF-8 have U+FFFD, counted where they are stored; keys are compared as bytes', () => {
    const line = Buffer.from('a=x\xff b="\xe2\x82\\n" \xff=1 c=\xff\n', 'latin1');
    const { rows, replacedBytes, rejected } = decodeLines(texts, line);
    expect(rejected).toEqual([]);
    expect(rows).toEqual([['x\ufffd', '\ufffd\n', null, null]]);
    expect(replacedBytes).toBe(2);
  });
});

describe('lines', () => {
  it('of whitespace are blank', () => {
    const { rows, rejected } = decodeLines(texts, '\n \t\r\n\r\na=1\r\n\t\nb=2');
    expect(rejected).toEqual([]);
    expect(rows.map((row) => row.slice(0, 2))).toEqual([
      ['1', null],
      [null, '2'],
    ]);
  });

  it.each([
    ['server started', 'it has no key=value pair'],
    ['x\0\0', 'it has no key=value pair'],
    ['=1', 'at column 1 expected a key before "="'],
    ['é=1 = 2', 'at column 5 expected a key before "="'],
    ['a="x', 'at column 5, its end, expected a quotation mark that ends the value'],
    ['a="x\\"', 'at column 7, its end, expected a quotation mark that ends the value'],
    ['a="x\\', 'at column 6, its end, expected a quotation mark that ends the value'],
    ['a="', 'at column 4, its end, expected a quotation mark that ends the value'],
    ['a="x"b=1', 'at column 6 expected a blank after the quotation mark'],
    ['msg="said "no" to it"', 'at column 12 expected a blank after the quotation mark'],
    ['"a"=1', 'at column 1 expected no quotation mark in a key'],
    ['a=1 b"c', 'at column 6 expected no quotation mark in a key'],
  ])('%j is rejected with the reason', (text, reason) => {
    const { rows, rejected } = decodeLines(texts, `a=1\n${text}\nb=2\n`);
    expect(rows.length).toBe(2);
    expect(rejected).toMatchObject([{ reason: `is not logfmt: ${reason}`, start: 4 }]);
  });

  it('carry no value over into the next line, rejected or not', () => {
    expect(decodeLines(texts, 'a="\\ud800" b=1 =\nb=2\na\\n=1\na.b=3\n').rows).toEqual([
      [null, '2', null, null],
      [null, null, null, null],
      [null, null, '3', null],
    ]);
  });

  it('may be joined to records of several lines', () => {
    const multiline = { start: '^a=', timeoutMs: 1000, linesMax: 2000, bytesMax: 1 << 20 };
    const definition = { ...texts, file: { ...texts.file!, multiline } };
    const { rows, rejected } = decodeLines(definition, 'a=1\n  b=2\na="x\ny" b=\n\na=3\n');
    expect(rejected).toEqual([]);
    expect(rows.map((row) => row.slice(0, 2))).toEqual([
      ['1', '2'],
      ['x\ny', ''],
      ['3', null],
    ]);
  });

  it('of one repeated character are read to their end', () => {
    const count = 1_000_000;
    const one = (text: string): unknown => {
      const { rows, rejected } = decodeLines(texts, text);
      return rows.length === 1 ? String(rows[0]![0]).length : rejected[0]?.reason;
    };
    expect(one(`a=${'='.repeat(count)}`)).toBe(count);
    expect(one(`a=${'"'.repeat(count)}`)).toContain('expected a blank after');
    expect(one(`a=x${'"'.repeat(count)}`)).toBe(count + 1);
    expect(one(`a="${'\\'.repeat(count)}"`)).toBe(count / 2);
    expect(one(`a="${'\\'.repeat(count + 1)}"`)).toContain('a quotation mark that ends the value');
    expect(one(`a="${'\\u'.repeat(count / 2)}"`)).toBe(count);
    expect(one(`a=${' '.repeat(count)}b`)).toBe(0);
    expect(one('a '.repeat(count / 2))).toBe('is not logfmt: it has no key=value pair');
    expect(one('a='.repeat(count / 2))).toBe(count - 2);
    expect(one('a= '.repeat(count / 4))).toBe(0);
    expect(one('x'.repeat(count))).toBe('is not logfmt: it has no key=value pair');
    expect(one('a="\\n" '.repeat(count / 8))).toBe(1);
  });
});

const blank = '[ \\t\\r\\n]';
const pair = new RegExp(
  `^(?:(?<bare>[^ \\t\\r\\n="]+)|(?<key>[^ \\t\\r\\n="]+)=(?:"(?<quoted>(?:[^"\\\\]|\\\\[^])*)"|(?<value>(?!")[^ \\t\\r\\n]*)))(?=${blank}|$)`,
  'u',
);
const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** The meaning of an escape; other text stands for itself. */
function partMeaning(part: string): Buffer {
  if (/^\\x[\dA-Fa-f]{2}$/.test(part)) return Buffer.from(part.slice(2), 'hex');
  if (/^\\[uU][\dA-Fa-f]{4,8}$/.test(part)) {
    const code = parseInt(part.slice(2), 16);
    const isCharacter = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return Buffer.from(isCharacter ? String.fromCodePoint(code) : '\ufffd');
  }
  return Buffer.from(/^\\[abfnrtv"\\/']$/.test(part) ? (escapes[part[1]!] ?? part[1]!) : part);
}

/** The meaning of a quoted text, by the rules. */
function meaningOf(text: string): string {
  const parts = text.split(/(\\x[\dA-Fa-f]{2}|\\u[\dA-Fa-f]{4}|\\U[\dA-Fa-f]{8}|\\[abfnrtv"\\/'])/);
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(parts.map(partMeaning)));
}

/** The pairs of a line, by the rules; null for a rejected line. */
function pairsOf(line: string): Map<string, string> | null {
  const pairs = new Map<string, string>();
  let hasPair = false;
  for (let rest = line.replace(/^[ \t\r\n]+/, ''); rest !== '';) {
    const match = pair.exec(rest);
    if (match === null) return null;
    const { bare, key, quoted, value } = match.groups!;
    if (key === undefined) pairs.set(bare!, 'true');
    else pairs.set(key, quoted === undefined ? value! : meaningOf(quoted));
    hasPair ||= key !== undefined;
    rest = rest.slice(match[0].length).replace(/^[ \t\r\n]+/, '');
  }
  return hasPair ? pairs : null;
}

describe('random lines', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'a',
      'b',
      'a.b',
      'é',
      'other',
      '=',
      '"',
      ' ',
      '\t',
      '\\',
      '\\"',
      '\\n',
      '\\x41',
      '\\xff',
      '🦊',
    ),
    fc.constantFrom(
      'a=',
      'b="',
      '" ',
      '\\u00e9',
      '\\U0001f98a',
      '\\U00110000',
      '\\ud800',
      '\\q',
      '\0',
      '1',
      '=',
    ),
  );
  const usual = fc
    .tuple(
      fc.constantFrom(...names, 'x'),
      fc.oneof(
        fc.constantFrom('', 'true', '1', '"text of it"', '"\\"q\\""', 'a=b', '"a\\\\"'),
        fc.array(piece, { maxLength: 5 }).map((parts) => `"${parts.join('')}"`),
      ),
    )
    .map(([key, value]) => `${key}=${value} `);
  const line = fc
    .array(fc.oneof({ arbitrary: usual, weight: 3 }, { arbitrary: piece, weight: 1 }), { maxLength: 8 })
    .map((parts) => parts.join(''))
    // Without two surrogates that would form one character, which other tests cover.
    .filter((text) => !/\\ud800\\ud8/i.test(text));

  it('give the pairs that the rules define', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), (lines) => {
        // NULs at the beginning of a line are not part of it.
        const written = lines.map((text) => text.slice(/[^\0]|$/.exec(text)!.index));
        const pairs = written.filter((text) => text.trim() !== '' || text.includes('\0')).map(pairsOf);
        const rows = pairs
          .filter((found) => found !== null)
          .map((found) => names.map((name) => found.get(name) ?? null));
        const text = lines.map((content) => `${content}\n`).join('');
        for (const columnar of [true, false]) {
          const decoded = decodeLines(texts, text, { columnar });
          expect({ lines, rows: decoded.rows }).toEqual({ lines, rows });
          expect(decoded.rejected.length).toBe(pairs.length - rows.length);
        }
      }),
      { numRuns: caseCount(1000, 50_000) },
    );
  });
});
