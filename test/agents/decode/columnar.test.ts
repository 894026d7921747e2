import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { createRecordDecoder } from '../../../agents/decode/record-decoder.js';
import { BatchBuilder } from '../../../engine/columns/batch-builder.js';
import { JsonLineSplitter } from '../../../agents/decode/json-lines.js';
import { LineColumns } from '../../../agents/decode/line-columns.js';
import { lineBytesMax, rowGroupRowsMax } from '../../../engine/core/limits.js';
import { agent, decodeLines } from './decode-lines.js';
import { anyText } from '../../model/any-text.js';

const numRuns = caseCount(200, 20_000);

const definition = agent(
  [
    { name: 'at', type: 'time', timestamp: { format: 'rfc3339' } },
    { name: 'common', type: 'time', timestamp: { format: 'common' }, source: 'at' },
    { name: 'unix', type: 'time', timestamp: { format: 'unix' }, source: 'number' },
    { name: 'stamp', type: 'time', timestamp: { format: 'stamp' }, source: 'at' },
    { name: 'epoch', type: 'time', source: 'number' },
    { name: 'number', type: 'int' },
    { name: 'float', type: 'float', source: 'number' },
    { name: 'flag', type: 'bool', source: 'number' },
    { name: 'text' },
    { name: 'again', source: 'text' },
    { name: 'host', source: 'host' },
    { name: 'odd', source: 'né"\\🦊' },
    { name: 'missing' },
    { name: 'flat', template: '{{.text}} at {{.at}}, {{.host}}{{.text}}' },
    { name: 'chosen', template: '{{if .number}}{{.text}}{{else}}none{{end}}' },
    { name: 'made', type: 'int', template: '{{.number}}' },
  ],
  {},
);
const captures = new Map([['host', 'näme']]);

const numbers = [
  ...['0', '-0', '7', '-12', '1234567890', '12345678901', '123456789012345', '1234567890123456'],
  ...['999999999999999999', '9223372036854775807', '9223372036854775808', '-9223372036854775808'],
  ...['-9223372036854775809', '9999999999999999999', '18446744073709551617'],
  ...[
    '0.1',
    '-0.0',
    '1e3',
    '5.0',
    '12.',
    '.5',
    '1.25e-3',
    '1e999',
    '123456789.123456',
    '1234567.12345678901',
  ],
  ...['01', '+3', '-', '', ' 42 ', '\t7', '--1', '1a', '0x10', 'nan', 'inf', '1760000000.25', '1760000000.'],
  ...['99999999999', '0000000000000000000012'],
];
const times = [
  ...[
    '2026-11-21T12:34:56Z',
    '2026-11-21 12:34:56.5+01:00',
    '2026-02-29T00:00:00Z',
    '2024-02-29T23:59:59.999999Z',
  ],
  ...['0000-01-01T00:00:00Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '2026-11-21t12:34:56z'],
  ...['2026-11-21T24:00:00Z', '2026-11-21T12:60:00Z', '2026-11-21T12:34:60Z', '2026-13-01T00:00:00Z'],
  ...['2026-11-21T12:34:56', '2026-11-21T12:34:56.Z', '2026-11-21T12:34:56,5Z', '2026-11-21T12:34:56+24:00'],
  ...[
    '2026-11-21T12:34:56-23:59',
    '2026-11-21T12:34:56+00:60',
    '2026-11-21T12:34:56Zx',
    ' 2026-11-21T12:34:56Z ',
  ],
  ...[
    '2026-11-21T12:34:56+0100',
    '2026-11-21T12:34:56-01',
    '2026-11-21T12:34:56+010',
    '2026-11-21T12:34:56+',
  ],
  ...[
    '2026-11-21 12:34:56,25-0130',
    '2026-11-21T12:34:56,Z',
    '2026-11-21T12:34:56+24',
    '2026-11-21T12:34:56+0060',
  ],
  ...['2016-12-31T23:59:60Z', '2026-11-21T12:34Z', '20261121T123456Z', '2026-11-21T12:34:56+01:00[CET]'],
  ...[
    '21/Nov/2026:12:34:56 +0100',
    '29/Feb/2100:00:00:00 +0000',
    '21/nov/2026:12:34:56 -0000',
    '21/Nov/2026:12:34:56 0100',
  ],
  ...[
    '01/Jan/1969:23:59:59 -2359',
    '31/Dec/0000:00:00:00 +0000',
    'Nov 21 10:00:00',
    'Nov  2 10:00:00',
    '12:34',
  ],
];
const texts = [
  ...[
    '',
    'a',
    'plain text',
    'exactly sixteen!',
    'x'.repeat(15),
    'y'.repeat(17),
    'z'.repeat(100),
    'ünï¢ödé 🦊',
  ],
  ...[
    'with \\"quotes\\"',
    '\\\\',
    '\\n\\r\\t\\b\\f\\/',
    '\\u0041\\u00e9\\u20ac',
    '\\ud83e\\udd8a',
    '\\ud83e',
    '\\udd8a x',
  ],
  ...['\\u12g4', '\\x', 'tab\there', 'nul\0', '\u007f', '\ufeff'],
];

/** The content of a JSON string, or a JSON value of another type. */
const text = fc.oneof(
  fc.constantFrom(...numbers, ...times, ...texts),
  anyText({ maxLength: 40 }).map((value) => JSON.stringify(value).slice(1, -1)),
);
const nested = [
  ...[
    '{}',
    '[]',
    '[1, "a]}" ,{"b":[null,true ]}]',
    '{"x":{"y":"z"}, "w" : -1}',
    '[1,]',
    '{"a"}',
    '[',
    '[}',
    '{"a":1]',
  ],
  ...[`${'['.repeat(64)}${']'.repeat(64)}`, `${'['.repeat(65)}${']'.repeat(65)}`, `${'[{"a":'.repeat(300)}`],
];
const value = fc.oneof(
  { weight: 4, arbitrary: text.map((inside) => `"${inside}"`) },
  { weight: 2, arbitrary: fc.constantFrom(...numbers) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('true', 'false', 'null', 'nul', 'True', 'falsy', 'truex', ...nested),
  },
);
const space = fc.oneof({ weight: 8, arbitrary: fc.constant('') }, fc.constantFrom(' ', '\t', '  \r '));
const key = fc.constantFrom(
  ...['at', 'number', 'text', 'né\\"\\\\🦊', 'other', 'host', '', 'te\\u0078t', 'texts'],
);
const member = fc
  .tuple(space, key, space, space, value, space)
  .map(([a, name, b, c, content, d]) => `${a}"${name}"${b}:${c}${content}${d}`);

/** Mostly what a program writes: the same keys in the same order. */
const usualLine = fc
  .tuple(fc.constantFrom(...times), fc.constantFrom(...numbers), text)
  .map(([at, number, content]) => `{"at":"${at}","number":${number},"text":"${content}","other":[1,2]}`);
const goodLine = fc.constantFrom(
  '{"at":"2026-11-21T12:34:56.789Z","number":12,"text":"good","other":{}}',
  '{"at": "2026-11-20T12:34:56.789Z", "number": -1.5, "text": "grün", "other": null}',
);
const anyLine = fc
  .tuple(space, fc.array(member, { maxLength: 6 }), space)
  .map(([a, members, b]) => `${a}{${members.join(',')}}${b}`);
const brokenLine = fc
  .tuple(fc.oneof(usualLine, anyLine), fc.nat(), fc.nat(255), fc.boolean())
  .map(([line, place, byte, isCut]) => {
    const bytes = Buffer.from(line);
    const at = bytes.length === 0 ? 0 : place % bytes.length;
    if (isCut) return bytes.subarray(0, at);
    bytes[at] = byte;
    return bytes;
  });
const line = fc.oneof(
  { weight: 6, arbitrary: goodLine.map((content) => Buffer.from(content)) },
  { weight: 4, arbitrary: usualLine.map((content) => Buffer.from(content)) },
  { weight: 4, arbitrary: anyLine.map((content) => Buffer.from(content)) },
  { weight: 2, arbitrary: brokenLine },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        '',
        ' ',
        '\r',
        'no json',
        '{"text":"a"} x',
        '\0\0{"text":"a"}',
        '\ufeff{"text":"a"}',
        '\0',
      )
      .map((content) => Buffer.from(content)),
  },
);
const lineEnds = fc.constantFrom('\n', '\n', '\n', '\r\n', '\r\r\n');

/** Whole blocks, often without a line end after the last line. */
const blocks = fc
  .tuple(
    fc.array(fc.tuple(line, lineEnds), { minLength: 1, maxLength: 40 }),
    fc.boolean(),
    fc.integer({ min: 1, max: 3 }),
  )
  .map(([lines, isEnded, times]) => {
    const all = Array.from({ length: times }, () => lines).flat();
    const bytes = Buffer.concat(all.flatMap(([content, end]) => [content, Buffer.from(end)]));
    return isEnded ? bytes : bytes.subarray(0, bytes.length - 1);
  })
  .filter((bytes) => bytes.length > 0);

function expectSame(agentDefinition: AgentDefinition, block: Uint8Array): void {
  const rows = decodeLines(agentDefinition, block, { captures, columnar: false });
  const columnar = decodeLines(agentDefinition, block, { captures, columnar: true });
  expect(columnar).toEqual(rows);
}

describe('JSON lines that are decoded many at once', () => {
  it('may spell their times in every way of RFC 3339 in one file', () => {
    const spelled = {
      '2026-11-21T12:34:56Z': '2026-11-21T12:34:56.000Z',
      '2026-11-21 12:34:56.5+01:00': '2026-11-21T11:34:56.500Z',
      '2026-11-21T12:34:56+0000': '2026-11-21T12:34:56.000Z',
      '2026-11-21T12:34:56,250-0130': '2026-11-21T14:04:56.250Z',
      '2026-11-21T12:34:56+01': '2026-11-21T11:34:56.000Z',
      '2026-11-21T12:34:56,25Z': '2026-11-21T12:34:56.250Z',
      '2016-12-31t23:59:60z': '2017-01-01T00:00:00.000Z',
      '2026-11-21T12:34Z': '2026-11-21T12:34:00.000Z',
      '20261121T123456+0100': '2026-11-21T11:34:56.000Z',
      '2026-11-21T12:34:56+01:00[Europe/Oslo]': '2026-11-21T11:34:56.000Z',
    };
    const block = Object.keys(spelled)
      .map((at) => `{"at":"${at}","text":"${'x'.repeat(200)}"}\n`)
      .join('');
    const times = agent([{ name: 'at', type: 'time', timestamp: { format: 'rfc3339' } }], {});
    for (const columnar of [true, false]) {
      const { rows, unreadableValues } = decodeLines(times, block, { columnar });
      expect(rows.map(([at]) => new Date(Number(at)).toISOString())).toEqual(Object.values(spelled));
      expect(unreadableValues).toBe(0);
    }
    // The first six are read by the kernels, the others one by one.
    const splitter = new JsonLineSplitter(['at']);
    const columns = new LineColumns(splitter, [{ kind: 'time', field: 0, format: 'rfc3339' }]);
    const bytes = Buffer.from(block);
    expect(columns.open(bytes, 0, bytes.length, true)).toBe(bytes.length);
    expect(columns.next()).toBe(true);
    expect([...columns.states]).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
  });

  it('are decoded by this path also with escapes, nested values and nulls', () => {
    const splitter = new JsonLineSplitter(['text', 'at', 'number']);
    const columns = new LineColumns(splitter, [
      { kind: 'string', field: 0 },
      { kind: 'time', field: 1, format: 'rfc3339' },
      { kind: 'int', field: 2, digitsMax: 18 },
      { kind: 'float', field: 2 },
    ]);
    const taken = [
      '{"at":"2026-11-21T12:34:56.789Z","number":12,"text":"good"}',
      '{"number":null,"x":{"y":[1,"\\u0800" ]},"text":"\\"go\\u00f6d\\"\\n"}',
      ' { "text" : [1] , "number" : "-" }\r',
    ];
    const odd = ['{"number":1.5}', '{"text":"\\ud800"}', '{"at":"today"}', '', '{'];
    const bytes = Buffer.from([...taken, ...odd].join('\n'));
    expect(columns.open(bytes, 0, bytes.length, true)).toBe(bytes.length);
    expect(columns.next()).toBe(true);
    expect([...columns.states]).toEqual([0, 0, 0, 1, 1, 1, 1, 1]);
    const [strings, times] = columns.columns;
    if (strings?.kind !== 'string' || times?.kind !== 'int') throw new Error('another kind of column');
    const { offsets } = strings;
    expect(Buffer.from(strings.bytes.subarray(0, offsets[3])).toString()).toBe('good"goöd"\n[1]');
    expect([...(strings.presence ?? [1, 1, 1])].slice(0, 3)).toEqual([1, 1, 1]);
    expect([...times.presence!.subarray(0, 3)]).toEqual([1, 0, 0]);
    // As an integer and as a double.
    const unreadable = columns.columns.map((column) => (column.kind === 'string' ? null : column.unreadable));
    expect(unreadable.map((lines) => (lines === null ? 0 : [...lines.subarray(0, 3)]))).toEqual([
      0,
      0,
      [0, 0, 1],
      [0, 0, 1],
    ]);
    expect(columns.next()).toBe(false);
  });

  it('are decoded by this path with nested objects, unless a key on a path is repeated', () => {
    const columns = new LineColumns(new JsonLineSplitter(['a', 'a.b', 'a.b.c', 'x.y']), [
      { kind: 'string', field: 0 },
      { kind: 'string', field: 1 },
      { kind: 'string', field: 2 },
      { kind: 'string', field: 3 },
    ]);
    const taken = [
      '{"a":{"b":{"c":"1","b":[{"c":2}]},"c":3},"x":{"y":{"z":[]}}}',
      '{"a":{"b":{"c":"1","b":[{"c":2}]},"c":3},"x":{"y":{"z":[]}}}',
      '{"x":{},"a":{ "b" : {} } ,"z":{"y":1}}',
      '{"x":{"y":1},"x.y":2,"x.y":3,"a":4}',
      '{"b":{"c":1},"c":2,"y":3,"a":["b"]}',
      `{"x":{"y":${'['.repeat(64)}${']'.repeat(64)}},"a":{"b":null}}`,
    ];
    const odd = [
      '{"x.y":2,"x":{"y":1}}',
      '{"a":{"b":1},"a":{}}',
      '{"a":1,"a":2}',
      '{"x":{"y":1,"y":2}}',
      '{"x":{"y":1}',
      '{"x":{"y":1,}}',
      '{"x":{,}}',
      '{"x":{"\\u0079":1}}',
      '{"x":{"y":1}]',
    ];
    const bytes = Buffer.from([...taken, ...odd].join('\n'));
    expect(columns.open(bytes, 0, bytes.length, true)).toBe(bytes.length);
    expect(columns.next()).toBe(true);
    expect([...columns.states]).toEqual([...taken.map(() => 0), ...odd.map(() => 1)]);
    const texts = columns.columns.map((column) => {
      if (column.kind !== 'string') throw new Error('another kind of column');
      const { bytes: text, offsets, presence } = column;
      return taken.map((_, i) =>
        presence?.[i] === 0 ? null : Buffer.from(text.subarray(offsets[i], offsets[i + 1])).toString(),
      );
    });
    const deep = '{"b":{"c":"1","b":[{"c":2}]},"c":3}';
    expect(texts).toEqual([
      [deep, deep, '{ "b" : {} }', '4', '["b"]', '{"b":null}'],
      ['{"c":"1","b":[{"c":2}]}', '{"c":"1","b":[{"c":2}]}', '{}', null, null, null],
      ['1', '1', null, null, null, null],
      ['{"z":[]}', '{"z":[]}', null, '3', null, `${'['.repeat(64)}${']'.repeat(64)}`],
    ]);
  });

  it('are decoded by this path with any 64-bit integer, and not with larger ones', () => {
    const within = ['9223372036854775807', '-9223372036854775808', '1000000000000000000'];
    const beyond = ['9223372036854775808', '-9223372036854775809', '9999999999999999999'];
    const columns = new LineColumns(new JsonLineSplitter(['n']), [{ kind: 'int', field: 0, digitsMax: 19 }]);
    const bytes = Buffer.from([...within, ...beyond].map((number) => `{"n":${number}}\n`).join(''));
    expect(columns.open(bytes, 0, bytes.length, true)).toBe(bytes.length);
    expect(columns.next()).toBe(true);
    expect([...columns.states]).toEqual([0, 0, 0, 1, 1, 1]);
    const [column] = columns.columns;
    if (column?.kind !== 'int') throw new Error('another kind of column');
    const { halves } = column;
    const values = within.map((_, i) => (BigInt(halves[2 * i + 1]!) << 32n) | BigInt(halves[2 * i]! >>> 0));
    expect(values.map(String)).toEqual(within);
    expect(columns.next()).toBe(false);
  });

  it('have integers of any length, and no other characters in them', () => {
    const digits = '8123456790123456789';
    const integers = Array.from({ length: 19 }, (_, i) => digits.slice(i)).flatMap((each) => [
      each,
      `-${each}`,
    ]);
    // The characters around the digits, in each place of each length.
    const others = ['/', ':', '0:', '/9', '.', 'a', '\u00b1'];
    const spoilt = integers.flatMap((each) =>
      Array.from({ length: each.length }, (_, i) => each.slice(0, i) + others[i % 7]! + each.slice(i + 1)),
    );
    const columns = new LineColumns(new JsonLineSplitter(['n']), [{ kind: 'int', field: 0, digitsMax: 19 }]);
    const bytes = Buffer.from([...integers, ...spoilt].map((text) => `{"n":"${text}"}\n`).join(''));
    expect(columns.open(bytes, 0, bytes.length, true)).toBe(bytes.length);
    expect(columns.next()).toBe(true);
    expect(columns.count).toBe(integers.length + spoilt.length);
    const [column] = columns.columns;
    if (column?.kind !== 'int') throw new Error('another kind of column');
    const { halves } = column;
    const valueAt = (i: number): bigint => (BigInt(halves[2 * i + 1]!) << 32n) | BigInt(halves[2 * i]! >>> 0);
    expect(integers.map((_, i) => valueAt(i))).toEqual(integers.map(BigInt));
    expect([...columns.states]).toEqual([...integers.map(() => 0), ...spoilt.map(() => 1)]);
  });

  it('give the same records as one by one', () => {
    fc.assert(
      fc.property(blocks, (block) => expectSame(definition, block)),
      { numRuns },
    );
  });

  it('are decoded for any values', () => {
    for (const content of [...numbers, ...times, ...texts]) {
      const lines = [`"${content}"`, content].map(
        (written) => `{"at":${written},"number":${written},"text":${written}}\n`,
      );
      expectSame(definition, Buffer.from(lines.join('').repeat(20)));
    }
  });

  it('may end anywhere within a vector', () => {
    for (let length = 0; length < 70; length++) {
      const lines = Array.from(
        { length: 40 },
        (_, i) => `{"text":"${'t'.repeat((length + i) % 70)}","number":${i}}`,
      );
      const block = Buffer.from(lines.join('\n'));
      expectSame(definition, block);
      expectSame(definition, block.subarray(0, block.length - 1));
    }
  });

  it('may be long, too long, and numerous', () => {
    const long = (bytes: number): string => `{"text":"${'x'.repeat(bytes - 11)}"}\n`;
    const few = Array.from({ length: 50 }, (_, i) => `{"number":${i}}\n`).join('');
    for (const bytes of [600_000, lineBytesMax, lineBytesMax + 1, lineBytesMax + 2]) {
      expectSame(definition, Buffer.from(`${few}${long(bytes)}${few}`));
    }
    expectSame(definition, Buffer.from('{}\n'.repeat(100_000)));
  });

  it('with invalid UTF-8 are repaired only where they are invalid', () => {
    const good = Buffer.from('{"text":"grün","number":1}\n{"text":"green","number":2}\n'.repeat(40));
    const bad = Buffer.from('{"text":"gr\xfcn","number":3,"at":"\xff"}\n', 'latin1');
    expectSame(definition, Buffer.concat([good, bad, good, bad]));
    const { replacedBytes } = decodeLines(definition, Buffer.concat([good, bad, good]), { captures });
    // In the text itself, in its second field, and twice in one template and once in the other.
    expect(replacedBytes).toBe(6);
  });

  it('stop at the same line when the builder is full', () => {
    const plain = agent([{ name: 'number', type: 'int' }, { name: 'text' }], {});
    const lines = Array.from({ length: rowGroupRowsMax + 500 }, (_, i) => `{"number":${i},"text":"t${i}"}`);
    const bytes = Buffer.from(lines.join('\n'));
    const stops = [true, false].map((columnar) => {
      const decoder = createRecordDecoder(plain, {
        captures: new Map(),
        timezone: 'UTC',
        written: { byMs: 0 },
        columnar,
      });
      const builder = new BatchBuilder(plain.schema);
      const at = decoder.decode(bytes, 0, bytes.length, builder, () => {});
      return { at, rows: builder.rows };
    });
    expect(stops[0]).toEqual(stops[1]);
    expect(stops[0]!.rows).toBe(rowGroupRowsMax);
  });
});
