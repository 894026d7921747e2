import { describe, expect, it } from 'vitest';
import { fc } from '../../cases.js';
import type { FieldDefinition } from '../../../agents/definition/definition.js';
import type { Value } from '../../model/rows.js';
import { agent, decodeLines, noon } from './decode-lines.js';

/** A value read by a pattern that captures the whole line: [value, counted as unreadable]. */
function readText(text: string, field: Partial<FieldDefinition>): [Value, number] {
  const definition = agent([{ name: 'v', ...field }], { format: 'plain', regex: '(?s)^=(?P<v>.*)$' });
  const { rows, unreadableValues, rejected } = decodeLines(definition, `=${text}\n`);
  expect(rejected).toEqual([]);
  return [rows[0]![0]!, unreadableValues];
}

/** A value as JSON text. */
function readJson(text: string, field: Partial<FieldDefinition>): [Value, number] {
  const { rows, unreadableValues, rejected } = decodeLines(
    agent([{ name: 'v', ...field }], {}),
    `{"v":${text}}\n`,
  );
  expect(rejected).toEqual([]);
  return [rows[0]![0]!, unreadableValues];
}

/** About the maximum length of a line: at this length, quadratic time would be an hour. */
const long = 1_000_000;

describe('int', () => {
  it('reads numbers of the length of a line in linear time', () => {
    for (const text of [`1${'0'.repeat(long)}1.0`, `${'9'.repeat(long)}e-1`, `1.${'0'.repeat(long)}1`])
      expect(readJson(text, { type: 'int' })).toEqual([null, 1]);
    expect(readJson(`7.${'0'.repeat(long)}`, { type: 'int' })).toEqual([7n, 0]);
  });

  it.each([
    ['0', 0n],
    ['-0', 0n],
    ['+7', 7n],
    ['007', 7n],
    [' 12\t', 12n],
    ['999999999999999', 999999999999999n],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['0000000000000000000000000000000042', 42n],
    ['9223372036854775808', null],
    ['-9223372036854775809', null],
    ['1'.repeat(5000), null],
    ['-', null],
    ['', null],
    ['+', null],
    ['1.0', null],
    ['1e3', null],
    ['0x10', null],
    ['1 2', null],
    ['12a', null],
    ['--1', null],
    ['١', null],
  ])('reads %j from text as %s', (text, value) => {
    expect(readText(text, { type: 'int' })).toEqual([value, value === null ? 1 : 0]);
    expect(readJson(JSON.stringify(text), { type: 'int' })).toEqual([value, value === null ? 1 : 0]);
  });

  it.each([
    ['5', 5n],
    ['-5', -5n],
    ['5.0', 5n],
    ['5.000e0', 5n],
    ['1e3', 1000n],
    ['1.5E+3', 1500n],
    ['1500e-2', 15n],
    ['-0.0', 0n],
    ['0e999999999', 0n],
    ['9007199254740993', 9007199254740993n],
    ['9007199254740993.0', 9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['92233720368547758070e-1', 9223372036854775807n],
    ['9223372036854775808', null],
    ['1e19', null],
    ['1e999999999', null],
    ['5.5', null],
    ['9007199254740991.0000001', null],
    ['1e-1', null],
    ['true', null],
    ['{}', null],
    ['[1]', null],
  ])('reads the JSON value %s as %s', (text, value) => {
    expect(readJson(text, { type: 'int' })).toEqual([value, value === null ? 1 : 0]);
  });

  it('does not count a JSON null', () => {
    for (const type of ['int', 'float', 'string', 'time'] as const)
      expect(readJson('null', { type })).toEqual([null, 0]);
  });

  it('reads every 64-bit integer', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }), (value) => {
        const expected = BigInt.asIntN(64, value) === value ? value : null;
        expect(readText(String(value), { type: 'int' })[0]).toBe(expected);
        expect(readJson(String(value), { type: 'int' })[0]).toBe(expected);
      }),
    );
  });
});

describe('bool', () => {
  it.each([
    ['true', 1n],
    ['TRUE', 1n],
    ['Yes', 1n],
    ['1', 1n],
    [' true\t', 1n],
    ['false', 0n],
    ['no', 0n],
    ['0', 0n],
    ['', null],
    ['2', null],
    ['t', null],
    ['on', null],
    ['truely', null],
    ['true true', null],
    ['1.0', null],
    ['\u017fno', null],
  ])('reads %j as %s', (text, value) => {
    expect(readText(text, { type: 'bool' })).toEqual([value, value === null ? 1 : 0]);
  });

  it('accepts true, false, 0, 1 and strings from JSON, and nothing else', () => {
    expect(readJson('true', { type: 'bool' })).toEqual([1n, 0]);
    expect(readJson('false', { type: 'bool' })).toEqual([0n, 0]);
    expect(readJson('1', { type: 'bool' })).toEqual([1n, 0]);
    expect(readJson('"no"', { type: 'bool' })).toEqual([0n, 0]);
    expect(readJson('null', { type: 'bool' })).toEqual([null, 0]);
    for (const other of ['2', '0.0', '[]', '{"a":true}', '"x"'])
      expect(readJson(other, { type: 'bool' })).toEqual([null, 1]);
  });

  it('skips blanks in linear time', () => {
    const blanks = ' '.repeat(long / 4);
    expect(readText(`${blanks}yes${blanks}`, { type: 'bool' })).toEqual([1n, 0]);
  });
});

describe('float', () => {
  it('reads numbers of the length of a line in linear time', () => {
    for (const text of ['1'.repeat(long), `${'1'.repeat(long)}x`, `1.${'1'.repeat(long)}x`])
      expect(readText(text, { type: 'float' })).toEqual([null, 1]);
    expect(readText(`0.${'3'.repeat(long)}`, { type: 'float' })).toEqual([1 / 3, 0]);
  });

  it.each([
    ['1', 1],
    ['-1.5', -1.5],
    ['+1.5', 1.5],
    ['.5', 0.5],
    ['5.', 5],
    ['1e3', 1000],
    [' 0.1 ', 0.1],
    ['-0', -0],
    ['123456789012345678', 123456789012345678],
    ['1e-400', 0],
    ['', null],
    ['-', null],
    ['.', null],
    ['1e', null],
    ['1,5', null],
    ['1e999', null],
    ['0x10', null],
    ['1_000', null],
    ['1.2.3', null],
    ['Infinit', null],
  ])('reads %j as %s', (text, value) => {
    expect(readText(text, { type: 'float' })).toEqual([value, value === null ? 1 : 0]);
  });

  it.each(['nan', 'NaN', 'inf', '-Inf', '+Infinity'])('stores %s as null and does not count it', (text) => {
    expect(readText(text, { type: 'float' })).toEqual([null, 0]);
  });

  it('reads every double in its shortest form', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.nat(20), (value, digits) => {
        expect(readText(String(value), { type: 'float' })[0]).toBe(Number(String(value)));
        expect(readJson(JSON.stringify(value), { type: 'float' })[0]).toBe(Number(JSON.stringify(value)));
        const fixed = value.toFixed(digits);
        expect(readText(fixed, { type: 'float' })[0]).toBe(Number(fixed));
      }),
    );
  });

  it('accepts numbers and strings from JSON, and nothing else', () => {
    expect(readJson('"2.5"', { type: 'float' })).toEqual([2.5, 0]);
    expect(readJson('9007199254740993', { type: 'float' })).toEqual([9007199254740992, 0]);
    expect(readJson('true', { type: 'float' })).toEqual([null, 1]);
    expect(readJson('[1]', { type: 'float' })).toEqual([null, 1]);
  });
});

describe('time', () => {
  it('reads epoch milliseconds if no format is given', () => {
    expect(readText('1700000000123', { type: 'time' })).toEqual([1700000000123n, 0]);
    expect(readText('-5', { type: 'time' })).toEqual([-5n, 0]);
    expect(readJson('1700000000123.0', { type: 'time' })).toEqual([1700000000123n, 0]);
    expect(readJson('"1700000000123"', { type: 'time' })).toEqual([1700000000123n, 0]);
    expect(readText('8640000000000000', { type: 'time' })).toEqual([8640000000000000n, 0]);
    expect(readText('8640000000000001', { type: 'time' })).toEqual([null, 1]);
    expect(readText('2026-01-01', { type: 'time' })).toEqual([null, 1]);
    expect(readJson('1.5', { type: 'time' })).toEqual([null, 1]);
  });

  it('reads timestamps by their format, in the configured zone', () => {
    const rfc3339: Partial<FieldDefinition> = { type: 'time', timestamp: { format: 'rfc3339' } };
    expect(readText('2026-11-21T10:00:00.5+02:00', rfc3339)).toEqual([
      BigInt(Date.UTC(2026, 10, 21, 8, 0, 0, 500)),
      0,
    ]);
    expect(readText(' 2026-11-21T10:00:00Z ', rfc3339)).toEqual([BigInt(Date.UTC(2026, 10, 21, 10)), 0]);
    expect(readText('2026-02-30T10:00:00Z', rfc3339)).toEqual([null, 1]);
    expect(readText('', rfc3339)).toEqual([null, 1]);
    const unix: Partial<FieldDefinition> = { type: 'time', timestamp: { format: 'unix' } };
    expect(readJson('1700000000.25', unix)).toEqual([1700000000250n, 0]);
    expect(readJson('"1700000000"', unix)).toEqual([1700000000000n, 0]);
    expect(readJson('true', unix)).toEqual([null, 1]);
    const local = agent([{ name: 't', type: 'time', timestamp: { format: '2006-01-02 15:04:05' } }], {});
    const { rows } = decodeLines(local, '{"t":"2026-07-01 12:00:00"}', { timezone: 'Europe/Oslo' });
    expect(rows).toEqual([[BigInt(Date.UTC(2026, 6, 1, 10))]]);
  });

  it('remembers the last text without confusing it with others', () => {
    const definition = agent([{ name: 't', type: 'time', timestamp: { format: 'rfc3339' } }], {});
    const texts = [
      '2026-11-21T10:00:00Z',
      '2026-11-21T10:00:00Z',
      '2026-11-21T10:00:01Z',
      '',
      '2026-11-21T10:00:01Z',
    ];
    const { rows, unreadableValues } = decodeLines(definition, texts.map((t) => `{"t":"${t}"}\n`).join(''));
    const at = BigInt(Date.UTC(2026, 10, 21, 10));
    expect(rows.flat()).toEqual([at, at, at + 1000n, null, at + 1000n]);
    expect(unreadableValues).toBe(1);
  });

  it('takes the year from the clock, also when that moves on', () => {
    const definition = agent([{ name: 't', type: 'time', timestamp: { format: 'stamp' } }], {});
    const line = '{"t":"Nov 22 12:00:01"}';
    expect(decodeLines(definition, line).rows[0]![0]).toBe(BigInt(Date.UTC(2025, 10, 22, 12, 0, 1)));
    const later = decodeLines(definition, line, { written: { byMs: noon + 1000 } });
    expect(later.rows[0]![0]).toBe(BigInt(Date.UTC(2026, 10, 22, 12, 0, 1)));
  });

  it("takes the year from the capture of that name, of the line or of its file's name", () => {
    const fields = [{ name: 't', type: 'time' as const, timestamp: { format: 'stamp' } }];
    const text = 'Nov 22 12:00:00';
    const at = (year: number): bigint => BigInt(Date.UTC(year, 10, 22, 12));
    const json = decodeLines(
      agent(fields, {}),
      `{"t":"${text}","year":"2019"}\n{"t":"${text}","year":2020}\n{"t":"${text}"}\n{"t":"${text}","year":null}\n`,
    );
    expect(json.rows.flat()).toEqual([at(2019), at(2020), at(2026), at(2026)]);
    const plain = agent(fields, { format: 'plain', regex: '^(?P<t>\\w+ +\\d+ \\S+)(?: (?P<year>\\S*))?' });
    const lines = decodeLines(
      plain,
      `${text} 2019\n${text}\n${text} \n${text} 19\n${text} 20260\n${text} MMXX\n`,
    );
    expect(lines.rows.flat()).toEqual([at(2019), at(2026), at(2026), null, null, null]);
    expect(lines.unreadableValues).toBe(3);
    const captures = new Map([['year', '2018']]);
    expect(decodeLines(plain, `${text} 2019\n`, { captures }).rows.flat()).toEqual([at(2018)]);
    // A template has the year in its text, or not at all.
    const template = [{ ...fields[0]!, template: '{{.t}}' }];
    expect(decodeLines(agent(template, {}), `{"t":"${text}","year":"2019"}`).rows.flat()).toEqual([at(2026)]);
  });
});

describe('string', () => {
  it('keeps text unchanged, including empty text and NUL', () => {
    for (const text of ['', ' a ', 'a\0b', 'né 🦊', '\ufeffx']) expect(readText(text, {})).toEqual([text, 0]);
  });

  it('accepts every type of JSON value', () => {
    expect(readJson('12.50', {})).toEqual(['12.50', 0]);
    expect(readJson('100000000000000000000000', {})).toEqual(['100000000000000000000000', 0]);
    expect(readJson('true', {})).toEqual(['true', 0]);
    expect(readJson('{ "a" : [1, "\\u0041"] }', {})).toEqual(['{ "a" : [1, "\\u0041"] }', 0]);
    expect(readJson('[ ]', {})).toEqual(['[ ]', 0]);
  });
});

describe('templates', () => {
  const regex = '^(?P<a>[^,]*),(?P<b>[^,]*)(?:,(?P<c>.*))?$';

  it('render the parsed fields, including those that are not stored', () => {
    const definition = agent([{ name: 'm', template: '{{.a}}-{{.b}}{{if .c}}+{{.c}}{{end}}{{.none}}' }], {
      format: 'plain',
      regex,
    });
    expect(decodeLines(definition, 'x,é\nx,y,z\n').rows).toEqual([['x-é'], ['x-y+z']]);
    const json = agent([{ name: 'm', template: '{{.a}} {{.b}} {{.c}}' }], {});
    const { rows } = decodeLines(json, '{"a":"\\u00e9\\n","b":[1, 2],"c":null}\n');
    expect(rows).toEqual([['é\n [1, 2] ']]);
  });

  it('are read as the type of the field; an empty result is null and not counted', () => {
    const definition = agent(
      [
        { name: 'i', type: 'int', template: '{{.a}}{{.b}}' },
        { name: 't', type: 'time', template: '{{.a}}T{{.b}}Z', timestamp: { format: 'rfc3339' } },
        { name: 'f', type: 'float', template: '{{.c}}' },
      ],
      { format: 'plain', regex },
    );
    const { rows, unreadableValues } = decodeLines(definition, '1,2\n2026-01-01,10:00:00,1.5\n');
    expect(rows).toEqual([
      [12n, null, null],
      [null, BigInt(Date.UTC(2026, 0, 1, 10)), 1.5],
    ]);
    expect(unreadableValues).toBe(2);
  });

  it('whose result cannot be read are counted by field, with the first of them that is no dash, one by one and many at once', () => {
    const definition = agent(
      [
        { name: 'i', type: 'int', source: 'a' },
        { name: 't', type: 'time', source: 'b', timestamp: { format: '15:04' } },
        { name: 'f', type: 'float', source: 'c' },
        { name: 'm', template: '{{.a}}' },
      ],
      { format: 'plain', regex },
    );
    const good = '1,10:00,1.5\n'.repeat(300);
    const text = `${good}-,10:00,2\n1,later,${'x'.repeat(100)}\n${good}?,10:00,y\n`;
    const unreadable = [
      { field: 0, values: 2, example: '?' },
      { field: 1, values: 1, example: 'later' },
      { field: 2, values: 2, example: `${'x'.repeat(60)}…` },
    ];
    for (const columnar of [true, false]) {
      const decoded = decodeLines(definition, text, { columnar });
      expect(decoded.unreadable.toSorted((a, b) => a.field - b.field)).toEqual(unreadable);
      expect(decoded.unreadableValues).toBe(5);
    }
  });

  it('count replaced bytes', () => {
    const definition = agent([{ name: 'm', template: '<{{.a}}>' }], {});
    const { rows, replacedBytes } = decodeLines(
      definition,
      Buffer.concat([Buffer.from('{"a":"x'), Buffer.from([0xff, 0xe2, 0x82]), Buffer.from('\\ud800"}')]),
    );
    expect(rows).toEqual([['<x\ufffd\ufffd\ufffd>']]);
    expect(replacedBytes).toBe(3);
  });

  it('reject a line whose text would exceed the maximum length of a value', () => {
    const definition = agent([{ name: 'm', template: '{{.a}}'.repeat(18) }], {});
    const long = 'x'.repeat(1_000_000);
    const { rows, rejected } = decodeLines(definition, `{"a":"${long}"}\n{"a":"y"}\n`);
    expect(rows).toEqual([['y'.repeat(18)]]);
    expect(rejected).toMatchObject([
      { reason: 'the template of field "m" gives 18000000 bytes, more than 16777216', start: 0 },
    ]);
  });
});

describe('captures of the file name', () => {
  const captures = new Map([
    ['host', 'wéb1'],
    ['n', '7'],
  ]);

  it('are fields, read as their types, and override captures of the line', () => {
    const fields = [
      { name: 'host' },
      { name: 'n', type: 'int' as const },
      { name: 'a' },
      { name: 'both', template: '{{.host}}/{{.a}}' },
      { name: 'alias', source: 'host' },
    ];
    const expected = [['wéb1', 7n, 'x', 'wéb1/x', 'wéb1']];
    const json = decodeLines(agent(fields, {}), '{"host":"other","n":1,"a":"x"}\n', { captures });
    expect(json.rows).toEqual(expected);
    const plain = agent(fields, { format: 'plain', regex: '^(?P<host>\\w+) (?P<a>\\w+)$' });
    expect(decodeLines(plain, 'other x\n', { captures }).rows).toEqual(expected);
  });
});
