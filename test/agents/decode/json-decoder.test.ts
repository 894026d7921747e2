import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonDepthMax } from '../../../engine/limits.js';
import type { Value } from '../../../engine/columns/rows.js';
import { agent, decodeLines } from './decode-lines.js';

const long = process.env.LOGSTRATA_LONG === '1';

const names = ['a', 'b', 'c'];
const texts = agent(
  names.map((name) => ({ name })),
  {},
);

function read(text: string): Value[] {
  const { rows, rejected } = decodeLines(texts, `${text}\n`);
  expect(rejected).toEqual([]);
  expect(rows.length).toBe(1);
  return rows[0]!;
}

function reasonOf(text: string): string {
  const { rows, rejected } = decodeLines(texts, `${text}\n`);
  expect(rows).toEqual([]);
  expect(rejected.length).toBe(1);
  expect(rejected[0]!.start).toBe(0);
  return rejected[0]!.reason;
}

describe('keys', () => {
  it('are matched exactly, in any order; others are ignored, missing ones are null', () => {
    expect(read('{"c":"3","x":{"a":"no"},"a":"1","A":"no","a ":"no"}')).toEqual(['1', null, '3']);
    expect(read('{}')).toEqual([null, null, null]);
  });

  it('that come twice give the last value', () => {
    expect(read('{"a":"1","a":2}')).toEqual(['2', null, null]);
    expect(read('{"a":"1","a":null}')).toEqual([null, null, null]);
  });

  it('may be written with escapes, dots and anything else', () => {
    expect(read('{"\\u0061":"1","\\u0062b":"no"}')).toEqual(['1', null, null]);
    const odd = agent(
      [
        { name: 'x', source: 'http.status' },
        { name: 'y', source: 'né"\\🦊' },
        { name: 'z', source: '' },
      ],
      {},
    );
    const line = JSON.stringify({ 'http.status': 'p', 'né"\\🦊': 'q', '': 'r', http: { status: 'no' } });
    expect(decodeLines(odd, line).rows).toEqual([['p', 'q', 'r']]);
  });

  it('may serve several fields', () => {
    const definition = agent(
      [
        { name: 'x', source: 'a' },
        { name: 'y', source: 'a', type: 'int' },
      ],
      {},
    );
    expect(decodeLines(definition, '{"a":"12"}').rows).toEqual([['12', 12n]]);
  });
});

describe('strings', () => {
  it('are unescaped', () => {
    expect(read('{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83e\\udd8a\\u0000"}')[0]).toBe(
      '"\\/\b\f\n\r\té€🦊\0',
    );
    expect(read('{"a":"\\uD83E\\uDD8A","b":"\\\\u0041"}')).toEqual(['🦊', '\\u0041', null]);
  });

  it('have U+FFFD for half a surrogate pair, counted', () => {
    const { rows, replacedBytes } = decodeLines(
      texts,
      '{"a":"x\\ud83ey\\udd8a","b":"\\ud83e\\ud83e\\udd8a","c":"\\ufffd"}',
    );
    expect(rows).toEqual([['x\ufffdy\ufffd', '\ufffd🦊', '\ufffd']]);
    expect(replacedBytes).toBe(3);
  });

  it('have U+FFFD for bytes that are not UTF-8, counted where they are stored', () => {
    const line = Buffer.concat([
      Buffer.from('{"a":"x'),
      Buffer.from([0xff, 0xe2, 0x82]),
      Buffer.from('\\n","b":["'),
      Buffer.from([0xc3]),
      Buffer.from('"],"x":"'),
      Buffer.from([0xff]),
      Buffer.from('"}\n{"a":"y"}\n'),
    ]);
    const { rows, replacedBytes } = decodeLines(texts, line);
    expect(rows).toEqual([
      ['x\ufffd\ufffd\n', '["\ufffd"]', null],
      ['y', null, null],
    ]);
    expect(replacedBytes).toBe(3);
  });

  it('with many escapes in one line keep their texts apart', () => {
    const value = '\\n\\u00e9'.repeat(3000);
    const expected = '\né'.repeat(3000);
    expect(read(`{"a":"${value}1","x":"${value}","b":"${value}2","c":"${value}3"}`)).toEqual([
      `${expected}1`,
      `${expected}2`,
      `${expected}3`,
    ]);
  });
});

describe('lines', () => {
  it('of blanks are blank, blanks between tokens do not matter', () => {
    const { rows, rejected } = decodeLines(texts, '\n \t\r\n\r\n { "a" : "1" ,\t"b":2 } \r\n{"a":"3"}');
    expect(rejected).toEqual([]);
    expect(rows).toEqual([
      ['1', '2', null],
      ['3', null, null],
    ]);
  });

  it.each([
    ['hello', 'at column 1 expected "{"'],
    ['[1]', 'at column 1 expected "{"'],
    ['{"a":1', 'at column 7, its end, expected "," or "}"'],
    ['{"é":1 "b":2}', 'at column 8 expected "," or "}"'],
    ['{"a":1}x', 'at column 8 expected nothing behind the object'],
    ['{"a" 1}', 'at column 6 expected ":"'],
    ['{a:1}', 'at column 2 expected a key in quotation marks'],
    ['{"a":1,}', 'at column 8 expected a key in quotation marks'],
    ['{"a":}', 'at column 6 expected a value'],
    ['{"a":tru}', 'at column 6 expected "true"'],
    ['{"a":"x', 'at column 8, its end, expected the end of the string, a quotation mark'],
    ['{"a":"x\ty"}', 'at column 8 expected no control character in a string'],
    ['{"a":"\\x"}', 'at column 8 expected one of "\\/bfnrtu behind a backslash'],
    ['{"a":"\\u12g4"}', 'at column 9 expected four hexadecimal digits'],
    ['{"a":01}', 'at column 7 expected no digit behind a leading zero'],
    ['{"a":-}', 'at column 7 expected a digit'],
    ['{"a":1.}', 'at column 8 expected a digit behind the point'],
    ['{"a":1e+}', 'at column 9 expected a digit of the exponent'],
    ['{"a":[1,]}', 'at column 9 expected a value'],
    ['{"a":[1}', 'at column 8 expected "," or "]"'],
    ['{"a":{"b":1]}', 'at column 12 expected "," or "}"'],
    ['{"a":{"b"}}', 'at column 10 expected ":"'],
  ])('%s is rejected with its place', (text, reason) => {
    expect(reasonOf(text)).toBe(`is not a JSON object: ${reason}`);
  });

  it('leave nothing of a rejected line in the next', () => {
    const { rows, rejected } = decodeLines(texts, '{"a":"1","b":"\\ud800",\n{"b":"2"}\n');
    expect(rejected.length).toBe(1);
    expect(rows).toEqual([[null, '2', null]]);
  });

  it('nest up to the bound', () => {
    const nested = `${'['.repeat(jsonDepthMax)}${']'.repeat(jsonDepthMax)}`;
    expect(read(`{"a":${nested}}`)[0]).toBe(nested);
    expect(reasonOf(`{"a":[${nested}]}`)).toContain(`expected no more than ${jsonDepthMax} nested values`);
  });
});

/** The text with U+FFFD for each half of a surrogate pair without the other. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

const space = fc.string({ unit: fc.constantFrom(' ', '\t'), maxLength: 2 });
const character = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom('a', '"', '\\', '/', '\n', '🦊', '\ud83e', '\udd8a'),
);

/** A character as JSON may write it. */
const written = fc.tuple(character, fc.boolean()).map(([text, escape]) => {
  const loneHalf = wellFormed(text) !== text;
  if (!escape && !loneHalf) return JSON.stringify(text).slice(1, -1);
  return Array.from(
    { length: text.length },
    (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('');
});
const jsonString = fc.array(written, { maxLength: 8 }).map((parts) => `"${parts.join('')}"`);
const jsonNumber = fc.oneof(
  fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom('-0', '1.50', '5.0', '1E+2', '0e0'),
);
const jsonValue = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    jsonString,
    jsonNumber,
    fc.constantFrom('true', 'false', 'null'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .array(
      fc.tuple(space, tie('value'), space).map((parts) => parts.join('')),
      { maxLength: 3 },
    )
    .map((values) => `[${values.join(',') || ' '}]`),
  object: fc
    .array(
      fc
        .tuple(space, jsonString, space, tie('value'), space)
        .map(([s, key, t, value, u]) => `${s}${key}${t}:${value}${u}`),
      { maxLength: 3 },
    )
    .map((members) => `{${members.join(',')}}`),
})).value;

const member = fc.record({
  key: fc.constantFrom('"a"', '"b"', '"c"', '"\\u0062"', '"other"', '""'),
  value: jsonValue,
  spaces: fc.array(space, { minLength: 4, maxLength: 4 }),
});

/** The value of a string field by the rules, from the value's text. */
function expectedText(value: string): Value {
  if (value === 'null') return null;
  if (!value.startsWith('"')) return value;
  const parsed: unknown = JSON.parse(value);
  return typeof parsed === 'string' ? wellFormed(parsed) : expect.fail('not a string');
}

describe('random lines', () => {
  it('give each value as it stands, strings unescaped', () => {
    fc.assert(
      fc.property(fc.array(fc.array(member, { maxLength: 6 }), { minLength: 1, maxLength: 4 }), (lines) => {
        const written = lines.map((members) => {
          const parts = members.map(
            ({ key, value, spaces: [s, t, u, v] }) => `${s}${key}${t}:${u}${value}${v}`,
          );
          return `{${parts.join(',')}}\n`;
        });
        const expected = lines.map((members) =>
          names.map((name) => {
            const last = members.findLast(({ key }) => JSON.parse(key) === name);
            return last === undefined ? null : expectedText(last.value);
          }),
        );
        expect(decodeLines(texts, written.join(''))).toMatchObject({ rows: expected, rejected: [] });
      }),
      { numRuns: long ? 50_000 : 1500 },
    );
  });

  it('are taken exactly when JSON.parse takes them for an object', () => {
    const mutation = fc.tuple(
      fc.nat(),
      fc.constantFrom(0, 1, 2),
      fc.constantFrom(...'{}[]:,"\\0-.eE+tu a\u0001é'),
    );
    const line = fc
      .tuple(fc.array(member, { maxLength: 3 }), fc.array(mutation, { maxLength: 3 }))
      .map(([members, mutations]) => {
        let text = `{${members.map(({ key, value }) => `${key}:${value}`).join(',')}}`;
        for (const [place, removed, added] of mutations) {
          const at = place % (text.length + 1);
          text = `${text.slice(0, at)}${added}${text.slice(at + removed)}`;
        }
        return wellFormed(text);
      });
    fc.assert(
      fc.property(line, (text) => {
        const { rows, rejected } = decodeLines(texts, `${text}\n`);
        expect({ text, taken: rows.length === 1 }).toEqual({ text, taken: isObject(text) });
        expect(rows.length + rejected.length).toBe(text.trim() === '' ? 0 : 1);
      }),
      { numRuns: long ? 200_000 : 5000 },
    );
  });
});

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
