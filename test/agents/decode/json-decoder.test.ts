import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { jsonDepthMax } from '../../../engine/core/limits.js';
import type { Value } from '../../model/rows.js';
import { agent, decodeLines } from './decode-lines.js';
import { anyCharacter } from '../../model/any-text.js';

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
  it('are matched exactly, in any order; other keys are ignored, missing ones are null', () => {
    expect(read('{"c":"3","x":{"a":"no"},"a":"1","A":"no","a ":"no"}')).toEqual(['1', null, '3']);
    expect(read('{}')).toEqual([null, null, null]);
  });

  it('that are repeated give the last value', () => {
    expect(read('{"a":"1","a":2}')).toEqual(['2', null, null]);
    expect(read('{"a":"1","a":null}')).toEqual([null, null, null]);
  });

  it('may contain escapes, dots and any other character', () => {
    expect(read('{"\\u0061":"1","\\u0062b":"no"}')).toEqual(['1', null, null]);
    const odd = agent(
      [
        { name: 'x', source: 'http.status' },
        { name: 'y', source: 'né"\\🦊' },
        { name: 'z', source: '' },
      ],
      {},
    );
    const line = JSON.stringify({ http: { status: 'no' }, 'http.status': 'p', 'né"\\🦊': 'q', '': 'r' });
    expect(decodeLines(odd, line).rows).toEqual([['p', 'q', 'r']]);
  });

  it('may supply several fields', () => {
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

/** Paths that share prefixes, and a name with dots that is no path. */
const pathNames = ['a', 'a.b', 'a.b.c', 'a.c', 'b.a', 'b.', '.'];
const paths = agent(
  pathNames.map((source, i) => ({ name: `f${i}`, source })),
  {},
);

/** The values of the names in a line, decoded one by one and among many. */
function readPaths(line: string): Record<string, Value> {
  const one = decodeLines(paths, `${line}\n`, { columnar: false });
  expect(one.rejected).toEqual([]);
  const many = decodeLines(paths, `${line}\n`.repeat(1024));
  expect(many.rows).toEqual(Array.from({ length: 1024 }, () => one.rows[0]));
  const values = one.rows[0]!.map((value, i) => [pathNames[i]!, value] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== null));
}

describe('keys with dots', () => {
  it('are paths into nested objects if the line has no such key', () => {
    expect(readPaths('{"a":{"b":{"c":"1"},"c":2},"b":{"a":true,"":"e"},"":{"":4}}')).toEqual({
      a: '{"b":{"c":"1"},"c":2}',
      'a.b': '{"c":"1"}',
      'a.b.c': '1',
      'a.c': '2',
      'b.a': 'true',
      'b.': 'e',
      '.': '4',
    });
    expect(readPaths('{"a":{"b":"x\\ty"}}')).toEqual({ a: '{"b":"x\\ty"}', 'a.b': 'x\ty' });
    expect(readPaths('{"\\u0061":{"\\u0062":{"c":1}}}')).toMatchObject({ 'a.b.c': '1' });
  });

  it('match a key of exactly that name first, wherever it stands', () => {
    for (const line of ['{"b":{"a":1},"b.a":2}', '{"b.a":2,"b":{"a":1}}', '{"b.a":0,"b":{"a":1},"b.a":2}'])
      expect(readPaths(line)).toEqual({ 'b.a': '2' });
    for (const line of ['{"b":{"a":1},"b.a":null}', '{"b.a":null,"b":{"a":1}}'])
      expect(readPaths(line)).toEqual({});
  });

  it('are paths of single keys, through objects only', () => {
    expect(readPaths('{"a.b":{"c":1},"a":{"b.c":2}}')).toEqual({ 'a.b': '{"c":1}', a: '{"b.c":2}' });
    expect(readPaths('{"a":[{"b":1}],"b":"a"}')).toEqual({ a: '[{"b":1}]' });
    expect(readPaths('{"b":[1,2],"c":{"b":{"a":1}}}')).toEqual({});
  });

  it('use the last of repeated keys on a path, also if that one lacks the value', () => {
    expect(readPaths('{"a":{"b":1},"a":{"c":2}}')).toEqual({ a: '{"c":2}', 'a.c': '2' });
    expect(readPaths('{"b":{"a":1},"b":3}')).toEqual({});
    expect(readPaths('{"b":{"a":1},"b":null}')).toEqual({});
    expect(readPaths('{"b":{"a":1,"a":2}}')).toEqual({ 'b.a': '2' });
    expect(readPaths('{"b":{"a":1,"a":null}}')).toEqual({});
    expect(readPaths('{"a":{"b":{"c":1},"b":2}}')).toEqual({ a: '{"b":{"c":1},"b":2}', 'a.b': '2' });
    expect(readPaths('{"a":{"b":{"c":1}},"a":{"b":{}}}')).toEqual({ a: '{"b":{}}', 'a.b': '{}' });
  });

  it('supply values of all types and parts of templates', () => {
    const definition = agent(
      [
        { name: 'time', type: 'time', source: 'at.ms' },
        { name: 'status', type: 'int', source: 'http.status' },
        { name: 'took', type: 'float', source: 'http.took' },
        { name: 'text', template: '{{index . "http.method"}} {{index . "http.path"}}' },
        { name: 'kind', template: '{{if ge (index . "http.status") 500}}bad{{else}}good{{end}}' },
      ],
      {},
    );
    const http = { method: 'GET', path: '/"x"', status: 503, took: 0.25 };
    const line = JSON.stringify({ at: { ms: 1_795_165_200_123 }, http });
    const row = [1_795_165_200_123n, 503n, 0.25, 'GET /"x"', 'bad'];
    for (const count of [1, 100])
      expect(decodeLines(definition, `${line}\n`.repeat(count)).rows).toEqual(
        Array.from({ length: count }, () => row),
      );
  });

  it('count unpaired surrogates and invalid UTF-8 only in the value that is stored', () => {
    const definition = agent([{ name: 'v', source: 'b.a' }], {});
    const bad = Buffer.concat([Buffer.from('{"b":{"a":"x'), Buffer.from([0xff]), Buffer.from('"}}\n')]);
    const lines = [
      '{"b":{"a":"\\ud800"}}\n',
      '{"b":{"a":"\\ud800"},"b.a":"y"}\n',
      '{"b.a":"\\ud800","b":{"a":"z"}}\n',
    ];
    const { rows, replacedBytes } = decodeLines(
      definition,
      Buffer.concat([Buffer.from(lines.join('')), bad]),
    );
    expect(rows).toEqual([['\ufffd'], ['y'], ['\ufffd'], ['x\ufffd']]);
    expect(replacedBytes).toBe(3);
  });

  it('carry no value of one line over into the next', () => {
    const definition = agent([{ name: 'v', source: 'b.a' }], {});
    const lines = '{"b":{"a":1}}\n{"b":{}}\n{"a":2}\n{"b":{"a":3},\n{}\n{"b":{"a":4}}\n';
    expect(decodeLines(definition, lines).rows).toEqual([['1'], [null], [null], [null], ['4']]);
  });

  it('report the position of a mistake on a path', () => {
    const rejected = decodeLines(paths, '{"a":{"b":{"c":1,}}}\n{"a":{"b":{"c":1]}}\n{"a":{"b"}}\n').rejected;
    expect(rejected.map(({ reason }) => reason)).toEqual([
      'is not a JSON object: at column 18 expected a key in quotation marks',
      'is not a JSON object: at column 17 expected "," or "}"',
      'is not a JSON object: at column 10 expected ":"',
    ]);
  });

  it('reach as deep as values may be nested', () => {
    const deep = (depth: number): string => `${'{"k":'.repeat(depth)}1${'}'.repeat(depth)}`;
    const definition = agent(
      [
        {
          name: 'v',
          source: Array(jsonDepthMax + 1)
            .fill('k')
            .join('.'),
        },
      ],
      {},
    );
    expect(decodeLines(definition, deep(jsonDepthMax + 1)).rows).toEqual([['1']]);
    const beyond = decodeLines(definition, `${deep(jsonDepthMax + 2)}\n${deep(150_000)}\n`);
    const reason = `expected at most ${jsonDepthMax} nested values`;
    expect(beyond.rejected.map((line) => line.reason.includes(reason))).toEqual([true, true]);
    // The limit applies to the brackets on the path and in the value together.
    const half = agent([{ name: 'v', source: 'k.k.k' }], {});
    const inside = (depth: number): string => `{"k":{"k":{"k":${'['.repeat(depth)}${']'.repeat(depth)}}}}\n`;
    expect(decodeLines(half, inside(jsonDepthMax - 2)).rows.length).toBe(1);
    expect(decodeLines(half, inside(jsonDepthMax - 1)).rejected.length).toBe(1);
  });

  it('are found in lines with many repeated keys, and may have many steps', () => {
    const wide = agent(
      Array.from({ length: 1000 }, (_, i) => ({ name: `f${i}`, source: `a.k${i}` })),
      {},
    );
    const again = `{${'"a":{"k1":1},'.repeat(70_000)}"a":{"k2":2}}\n`;
    const [row] = decodeLines(wide, again).rows;
    expect(row!.filter((value) => value !== null)).toEqual(['2']);
    const dots = agent([{ name: 'v', source: '.'.repeat(100_000) }], {});
    expect(decodeLines(dots, `{"":${'{"":'.repeat(300)}1${'}'.repeat(301)}\n`).rows).toEqual([[null]]);
  });
});

describe('strings', () => {
  it('are unescaped', () => {
    expect(read('{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83e\\udd8a\\u0000"}')[0]).toBe(
      '"\\/\b\f\n\r\té€🦊\0',
    );
    expect(read('{"a":"\\uD83E\\uDD8A","b":"\\\\u0041"}')).toEqual(['🦊', '\\u0041', null]);
  });

  it('have U+FFFD for unpaired surrogates, which are counted', () => {
    const { rows, replacedBytes } = decodeLines(
      texts,
      '{"a":"x\\ud83ey\\udd8a","b":"\\ud83e\\ud83e\\udd8a","c":"\\ufffd"}',
    );
    expect(rows).toEqual([['x\ufffdy\ufffd', '\ufffd🦊', '\ufffd']]);
    expect(replacedBytes).toBe(3);
  });

  it('have U+FFFD for invalid UTF-8, which is counted where it is stored', () => {
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

  it('with many escapes in one line do not mix up their texts', () => {
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
  it('of whitespace are blank, and whitespace between tokens is ignored', () => {
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
    ['{"a":1}x', 'at column 8 expected nothing after the object'],
    ['{"a" 1}', 'at column 6 expected ":"'],
    ['{a:1}', 'at column 2 expected a key in quotation marks'],
    ['{"a":1,}', 'at column 8 expected a key in quotation marks'],
    ['{"a":}', 'at column 6 expected a value'],
    ['{"a":tru}', 'at column 6 expected "true"'],
    ['{"a":"x', 'at column 8, its end, expected the end of the string, a quotation mark'],
    ['{"a":"x\ty"}', 'at column 8 expected no control character in a string'],
    ['{"a":"\\q"}', 'at column 8 expected one of "\\/bfnrtu after a backslash'],
    ['{"a":"\\x4"}', 'at column 9 expected two hexadecimal digits'],
    ['{"a":Nan}', 'at column 6 expected "NaN"'],
    ['{"a":1}{"b":}', 'at column 8 expected nothing after the object'],
    ['[{"a":1},2]', 'at column 1 expected "{"'],
    ['{"a":"\\u12g4"}', 'at column 9 expected four hexadecimal digits'],
    ['{"a":01}', 'at column 7 expected no digit after a leading zero'],
    ['{"a":-}', 'at column 7 expected a digit'],
    ['{"a":1.}', 'at column 8 expected a digit after the point'],
    ['{"a":1e+}', 'at column 9 expected a digit of the exponent'],
    ['{"a":[1,]}', 'at column 9 expected a value'],
    ['{"a":[1}', 'at column 8 expected "," or "]"'],
    ['{"a":{"b":1]}', 'at column 12 expected "," or "}"'],
    ['{"a":{"b"}}', 'at column 10 expected ":"'],
  ])('%s is rejected with its position', (text, reason) => {
    expect(reasonOf(text)).toBe(`is not a JSON object: ${reason}`);
  });

  it('may have mistakes of programs, which are repaired and counted', () => {
    const lines = [
      '{"a":"\\xC3\\xa9\\x22","b":NaN,"c":[Infinity,"\\x00"]}',
      '{"a":-Infinity,"b":"\\xff"}',
      '{"a":"\\x41","b":1}x',
    ];
    const decoded = decodeLines(texts, `${lines.join('\n')}\n`);
    const column = (name: string): Value[] =>
      decoded.rows.map((row) => row[texts.fields.findIndex((field) => field.name === name)] ?? null);
    expect(column('a')).toEqual(['é"', null]);
    // Six mistakes of the first line. The byte of the second is no UTF-8 either.
    expect({ ...decoded, rows: 0 }).toMatchObject({
      replacedBytes: 6 + 2 + 1,
      rejected: [{ line: lines[2] }],
    });
  });

  it('may be several objects, or an array of objects', () => {
    const many = Array.from({ length: 70_000 }, (_, i) => `{"a":"${i % 7}"}`);
    const lines = [
      '{"a":"1"}{"a":"2"} {"a":"3"}',
      '[{"a":"4"},{"a":"5"}]',
      '[]',
      many.slice(0, 40_000).join(''),
      many.slice(0, 40_000).join(' '),
    ];
    const { rows, rejected } = decodeLines(agent([{ name: 'a' }], {}), lines.join('\n'));
    const expected = many.slice(0, 40_000).map((_, i) => String(i % 7));
    expect(rejected).toEqual([]);
    expect(rows.flat()).toEqual(['1', '2', '3', '4', '5', ...expected, ...expected]);
    const tooMany = decodeLines(agent([{ name: 'a' }], {}), many.join(''));
    expect(tooMany.rows).toEqual([]);
    expect(tooMany.rejected).toMatchObject([{ reason: 'has 70000 records, more than 65536' }]);
  });

  it('carry no value of a rejected line over into the next', () => {
    const { rows, rejected } = decodeLines(texts, '{"a":"1","b":"\\ud800",\n{"b":"2"}\n');
    expect(rejected.length).toBe(1);
    expect(rows).toEqual([[null, '2', null]]);
  });

  it('may be nested up to the limit', () => {
    const nested = `${'['.repeat(jsonDepthMax)}${']'.repeat(jsonDepthMax)}`;
    expect(read(`{"a":${nested}}`)[0]).toBe(nested);
    expect(reasonOf(`{"a":[${nested}]}`)).toContain(`expected at most ${jsonDepthMax} nested values`);
  });
});

/** The text with U+FFFD for each unpaired surrogate. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

const space = fc.string({ unit: fc.constantFrom(' ', '\t'), maxLength: 2 });
const character = fc.oneof(
  anyCharacter,
  fc.constantFrom('a', '"', '\\', '/', '\n', '🦊', '\ud83e', '\udd8a'),
);

/** A character in one of the forms that JSON allows. */
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

/** The value of a string field by the rules, from the text of the value. */
function expectedText(value: string): Value {
  if (value === 'null') return null;
  if (!value.startsWith('"')) return value;
  const parsed: unknown = JSON.parse(value);
  return typeof parsed === 'string' ? wellFormed(parsed) : expect.fail('not a string');
}

/** A value as it is written in a line; for an object also its members, in their order. */
interface Written {
  readonly text: string;
  readonly members?: readonly (readonly [string, Written])[];
}

const pathKey = fc.constantFrom('a', 'b', 'c', 'a.b', 'b.c', 'b.a', '', 'other');
const tree = fc.letrec<{ value: Written; object: Written }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    {
      arbitrary: jsonValue.map((text): Written => ({ text })).filter(({ text }) => !text.startsWith('{')),
      weight: 1,
    },
    { arbitrary: tie('object'), weight: 3 },
  ),
  object: fc
    .array(fc.tuple(pathKey, fc.boolean(), space, tie('value'), space), { maxLength: 4 })
    .map((members): Written => {
      const parts = members.map(([key, isEscaped, s, { text }, t]) => {
        const codes = [...key].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
        return `${s}"${isEscaped ? codes.join('') : key}"${t}:${s}${text}${t}`;
      });
      return { text: `{${parts.join(',')}}`, members: members.map(([key, , , value]) => [key, value]) };
    }),
})).object;

/** The value of a name in a line, by the rules. */
function valueOf(line: Written, name: string): Value {
  const last = (of: Written | undefined, key: string): Written | undefined =>
    of?.members?.findLast(([other]) => other === key)?.[1];
  const value = last(line, name) ?? name.split('.').reduce<Written | undefined>(last, line);
  return value === undefined ? null : expectedText(value.text);
}

describe('random lines', () => {
  it('give the values that paths lead to', () => {
    fc.assert(
      fc.property(fc.array(tree, { minLength: 1, maxLength: 8 }), (lines) => {
        const text = lines.map((line) => `${line.text}\n`).join('');
        const rows = lines.map((line) => pathNames.map((name) => valueOf(line, name)));
        expect(decodeLines(paths, text, { columnar: false })).toMatchObject({ rows, rejected: [] });
        // Long enough to be decoded many at once.
        const times = Math.ceil(2048 / text.length);
        const many = Array.from({ length: times }, () => rows).flat();
        expect(decodeLines(paths, text.repeat(times))).toMatchObject({ rows: many, rejected: [] });
      }),
      { numRuns: caseCount(250, 50_000) },
    );
  });

  it('give each value as it is written, with strings unescaped', () => {
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
      { numRuns: caseCount(750, 50_000) },
    );
  });

  it('are accepted exactly if JSON.parse reads them as an object, several, or an array of them', () => {
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
        const expected = text.trim() === '' ? 0 : objectsIn(text);
        expect({ text, rows: rejected.length > 0 ? null : rows.length }).toEqual({ text, rows: expected });
      }),
      { numRuns: caseCount(2500, 200_000) },
    );
  });
});

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How many objects a line has: one, several, or those of an array; null where it has anything else. */
function objectsIn(text: string): number | null {
  const value = parsed(text);
  if (Array.isArray(value)) return value.every(isObject) ? value.length : null;
  if (value !== undefined) return isObject(value) ? 1 : null;
  for (let end = text.indexOf('}'); end >= 0; end = text.indexOf('}', end + 1)) {
    if (!isObject(parsed(text.slice(0, end + 1)))) continue;
    const rest = text.slice(end + 1);
    const others = rest.trimStart().startsWith('{') ? objectsIn(rest) : null;
    return others === null ? null : 1 + others;
  }
  return null;
}
