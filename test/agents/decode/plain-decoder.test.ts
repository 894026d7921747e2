import { existsSync, readFileSync } from 'node:fs';
import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { createRecordDecoder } from '../../../agents/decode/record-decoder.js';
import { newStopFlag, setStopFlag } from '../../../agents/decode/stop-flag.js';
import { BatchBuilder } from '../../../engine/columns/batch-builder.js';
import { lineBytesMax, rowGroupRowsMax } from '../../../engine/core/limits.js';
import type { Value } from '../../model/rows.js';
import { agent, decodeLines } from './decode-lines.js';
import { describeUnless } from '../../needs.js';

const pairs = agent([{ name: 'k' }, { name: 'v' }], { format: 'plain', regex: '^(?P<k>[^=]+)=(?P<v>.*)$' });

describe('lines', () => {
  it('end with a line feed, with an optional carriage return before it, or with the input', () => {
    const { rows, rejected } = decodeLines(pairs, 'a=1\r\nb=2\nc=3\r\r\nd=\r\ne=5');
    expect(rows).toEqual([
      ['a', '1'],
      ['b', '2'],
      ['c', '3\r'],
      ['d', ''],
      ['e', '5'],
    ]);
    expect(rejected).toEqual([]);
    expect(decodeLines(pairs, 'a=1\r').rows).toEqual([['a', '1']]);
  });

  it('that are empty are neither stored nor rejected', () => {
    const { rows, rejected } = decodeLines(pairs, '\n\r\na=1\n\n\n');
    expect(rows).toEqual([['a', '1']]);
    expect(rejected).toEqual([]);
  });

  it('that do not match are rejected with their position, including blank lines', () => {
    const { rows, rejected } = decodeLines(pairs, 'a=1\nnothing\r\n  \nb=2\n');
    expect(rows.length).toBe(2);
    expect(rejected).toEqual([
      { reason: 'does not match the pattern', line: 'nothing', start: 4 },
      { reason: 'does not match the pattern', line: '  ', start: 13 },
    ]);
  });

  it('that are too long are rejected; lines of the maximum length are not', () => {
    const whole = `a=${'x'.repeat(lineBytesMax - 2)}`;
    const { rows, rejected } = decodeLines(pairs, `${whole}\n${whole}x\r\nb=2\n`);
    expect(rows.map((row) => row[0])).toEqual(['a', 'b']);
    expect(rejected.map(({ reason }) => reason)).toEqual([
      `has ${lineBytesMax + 1} bytes, more than ${lineBytesMax}`,
    ]);
  });

  it('that take too many steps are rejected, and the lines after them are not', () => {
    const definition = agent([{ name: 'v' }], {
      format: 'plain',
      regex: `^(?P<v>${'.{0,1000}'.repeat(20)})$`,
    });
    const { rows, rejected } = decodeLines(definition, `a\n${'b'.repeat(100_000)}\nc\n`);
    expect(rows).toEqual([['a'], ['c']]);
    expect(rejected.map(({ reason, start }) => ({ reason, start }))).toEqual([
      { reason: 'takes more than 20000000 steps to match against the pattern', start: 2 },
    ]);
  });

  it('may contain a NUL', () => {
    expect(decodeLines(pairs, 'a\0=\0\n').rows).toEqual([['a\0', '\0']]);
  });

  it('begin behind NULs and byte order marks, in long and in short runs', () => {
    const text = 'a=1\n\0\0b=2\n\ufeffc=3\r\n\0\0\0\n\ufeff\0\ufeffd=\0\n\0\ufeff\r\n\0e';
    for (const copies of [1, 500]) {
      const { rows, rejected, nulBytes } = decodeLines(pairs, `${text}\n`.repeat(copies));
      expect(rows.length).toBe(4 * copies);
      expect(rows.slice(-4)).toEqual([
        ['a', '1'],
        ['b', '2'],
        ['c', '3'],
        ['d', '\0'],
      ]);
      expect(rejected.length).toBe(copies);
      expect(nulBytes).toBe(8 * copies);
    }
  });

  it.each(['plain', 'multiline'] as const)('are decoded one at a time when turns are short: %s', (kind) => {
    const multiline = { start: '^[ac]', timeoutMs: 1, linesMax: 10, bytesMax: 1000 };
    const definition = agent([{ name: 'v' }], {
      format: 'plain',
      regex: '^(?s)(?P<v>(a|b|c|\\n)*)(?P<w>b?)$',
      ...(kind === 'plain' ? {} : { multiline }),
    });
    const lines = Buffer.from('a\nb\nc\n');
    const options = { captures: new Map<string, string>(), timezone: 'UTC', written: { byMs: 0 } };
    const decoder = createRecordDecoder(definition, { ...options, turnMs: 0 });
    const builder = new BatchBuilder(definition.schema);
    const ends: number[] = [];
    for (let at = 0; at < lines.length; ends.push(at))
      at = decoder.decode(lines, at, lines.length, builder, () => expect.fail('a line was rejected'));
    expect(ends).toEqual(kind === 'plain' ? [2, 4, 6] : [4, 6]);
  });

  it('are not decoded once decoding is stopped', () => {
    const stop = newStopFlag();
    const options = { captures: new Map<string, string>(), timezone: 'UTC', written: { byMs: 0 }, stop };
    const decoder = createRecordDecoder(pairs, options);
    const builder = new BatchBuilder(pairs.schema);
    const lines = Buffer.from('a=1\nb=2\n');
    const decode = (): number => decoder.decode(lines, 0, lines.length, builder, () => setStopFlag(stop));
    expect(decode()).toBe(lines.length);
    setStopFlag(stop);
    expect(decode).toThrow(expect.objectContaining({ code: 'cancelled' }));
  });

  it('stop at a full batch and continue after it', () => {
    const lines = Buffer.from('a=1\n'.repeat(rowGroupRowsMax + 3));
    const decoder = createRecordDecoder(pairs, {
      captures: new Map(),
      timezone: 'UTC',
      written: { byMs: 0 },
    });
    const builder = new BatchBuilder(pairs.schema);
    const reject = (): void => expect.fail('a line was rejected');
    const at = decoder.decode(lines, 0, lines.length, builder, reject);
    expect(at).toBe(rowGroupRowsMax * 4);
    expect(decoder.decode(lines, at, lines.length, builder, reject)).toBe(at);
    expect(builder.finish().length).toBe(rowGroupRowsMax);
    expect(decoder.decode(lines, at, lines.length, builder, reject)).toBe(lines.length);
    expect(builder.finish().length).toBe(3);
  });
});

describe('long lines', () => {
  const whole = { format: 'plain', regex: '^(?P<all>.*)$' } as const;
  const short = Array.from({ length: 40 }, (_, i) => `line ${i}`);
  const withLong = (text: string): string => [...short, text, ...short].join('\n');

  it.each([
    [
      'whose whole text is taken by many fields',
      Array.from({ length: 1000 }, (_, i) => ({ name: `f${i}`, source: 'all' })),
      'the texts of its fields have more than 33554432 bytes together',
    ],
    [
      'whose text a template repeats',
      [{ name: 'v', template: '{{.all}}'.repeat(1000) }],
      'the texts of its fields have more than 33554432 bytes together',
    ],
    [
      'whose templates take too many steps',
      Array.from({ length: 200 }, (_, i) => ({
        name: `f${i}`,
        template: `{{$x := ""}}${'{{$x = printf "%.1s" .all}}'.repeat(100)}{{$x}}`,
      })),
      'takes more than 33554432 steps in the templates of its fields',
    ],
  ])('%s are rejected, also among many', (_, fields, reason) => {
    const definition = agent(fields, whole);
    const text = 'y'.repeat(100_000);
    const many = decodeLines(definition, withLong(text));
    expect(many.rejected.map((line) => ({ ...line, line: line.line.length }))).toEqual([
      { reason, line: text.length, start: short.join('\n').length + 1 },
    ]);
    expect(many.rows.length).toBe(2 * short.length);
    expect(decodeLines(definition, withLong(text), { columnar: false })).toEqual(many);
  });

  it('are read if the values fit, on either path', () => {
    const fields = Array.from({ length: 30 }, (_, i) => ({ name: `f${i}`, source: 'all' }));
    const text = 'y'.repeat(1_000_000);
    const definition = agent(fields, whole);
    const lines = decodeLines(definition, withLong(text));
    expect(lines.rejected).toEqual([]);
    expect(lines.rows[short.length]).toEqual(fields.map(() => text));
    expect(decodeLines(definition, withLong(text), { columnar: false })).toEqual(lines);
  });

  it('count each invalid byte that is replaced by more bytes', () => {
    const fields = Array.from({ length: 20 }, (_, i) => ({ name: `f${i}`, source: 'all' }));
    const bytes = Buffer.alloc(600_000, 0xff);
    const { rows, rejected } = decodeLines(agent(fields, whole), Buffer.concat([bytes, Buffer.from('\nz')]));
    expect(rejected.map(({ reason }) => reason)).toEqual([
      'the texts of its fields have more than 33554432 bytes together',
    ]);
    expect(rows).toEqual([fields.map(() => 'z')]);
  });
});

describe('captures', () => {
  it('of groups that took no part are null and not counted, empty ones are empty', () => {
    const definition = agent(
      [{ name: 'a' }, { name: 'b' }, { name: 'n', type: 'int' }, { name: 'missing', type: 'int' }],
      { format: 'plain', regex: '^(?P<a>x*)(?:-(?P<b>y*))?(?P<n>\\d+)?$' },
    );
    const { rows, unreadableValues } = decodeLines(definition, 'x\nxx-\n-y5\n');
    expect(rows).toEqual([
      ['x', null, null, null],
      ['xx', '', null, null],
      ['', 'y', 5n, null],
    ]);
    expect(unreadableValues).toBe(0);
  });

  it('are found anywhere in the line unless the pattern is anchored', () => {
    const definition = agent([{ name: 'n', type: 'int' }], { format: 'plain', regex: 'id=(?P<n>\\d+)' });
    expect(decodeLines(definition, 'a id=x id=12 id=13\n').rows).toEqual([[12n]]);
  });

  it('count a value that cannot be read', () => {
    const definition = agent([{ name: 'n', type: 'int' }], { format: 'plain', regex: '^(?P<n>\\S+)$' });
    const { rows, unreadableValues } = decodeLines(definition, '-\n5\n');
    expect(rows).toEqual([[null], [5n]]);
    expect(unreadableValues).toBe(1);
  });
});

describe('invalid UTF-8', () => {
  it('becomes U+FFFD where it is stored, and is counted there', () => {
    const definition = agent([{ name: 'v' }, { name: 'w', source: 'v' }], {
      format: 'plain',
      regex: '^(?P<k>[^=]+)=(?P<v>[^=]*)=.*$',
    });
    const bytes = Buffer.concat([
      Buffer.from('k\xff=a', 'latin1'),
      Buffer.from([0xe2, 0x82, 0x41, 0xff, 0xfe]),
      Buffer.from('=\xff\nk=\ufffd=', 'utf8'),
      Buffer.from([0xc0]),
    ]);
    const { rows, replacedBytes } = decodeLines(definition, bytes);
    expect(rows).toEqual([
      ['a\ufffdA\ufffd\ufffd', 'a\ufffdA\ufffd\ufffd'],
      ['\ufffd', '\ufffd'],
    ]);
    expect(replacedBytes).toBe(6);
  });
});

/** A decoder that is obviously correct: text, re2js, strings. */
function decodeNaively(regex: string, names: readonly string[], bytes: Uint8Array): (string | null)[][] {
  const pattern = RE2JS.compile(regex);
  const rows: (string | null)[][] = [];
  const lines = Buffer.from(bytes).toString('latin1').split('\n');
  for (const line of lines) {
    const text = line.replace(/\r$/, '').replace(/^(?:\0|\xef\xbb\xbf)+/, '');
    const raw = Buffer.from(text, 'latin1');
    if (raw.length === 0) continue;
    const matcher = pattern.matcher(new TextDecoder('utf-8', { ignoreBOM: true }).decode(raw));
    if (matcher.find()) rows.push(names.map((name) => matcher.group(name)));
  }
  return rows;
}

const regexes = [
  '^(?P<a>[^ ]*) (?P<b>.*?)(?P<c>\\d*)$',
  '(?P<a>\\w+)(?:[ =](?P<b>[^é]+))?(?P<c>é?)',
  '(?i)(?P<a>k*)(?P<b>.)(?P<c>\\pL*)',
  '^(?:(?P<a>a)|(?P<b>b)|.)*(?P<c>.)',
];

it('agrees with a naive decoder on random bytes', () => {
  const piece = fc.oneof(
    fc
      .constantFrom('a', 'b', 'K', ' ', '=', '1', '\r', '\n', '\r\n', 'é', '\u212a', '🦊', '\ufffd')
      .map((text) => [...Buffer.from(text)]),
    fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => [...bytes]),
  );
  const input = fc.array(piece, { maxLength: 60 }).map((pieces) => Uint8Array.from(pieces.flat()));
  fc.assert(
    fc.property(fc.constantFrom(...regexes), input, (regex, bytes) => {
      const names = ['a', 'b', 'c'];
      const definition = agent(
        names.map((name) => ({ name })),
        { format: 'plain', regex },
      );
      expect(decodeLines(definition, bytes).rows).toEqual(decodeNaively(regex, names, bytes));
    }),
    { numRuns: caseCount(750, 100_000) },
  );
});

const logs = new URL('../../../../shared/logs/', import.meta.url);

/** The cells of a CSV in the common quoting (RFC 4180). */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!);
    if (end !== ',') rows.push([]);
    if (end === '') break;
  }
  return rows.filter((row) => row.length > 1);
}

const systems: readonly (readonly [system: string, regex: string, columns: readonly string[]])[] = [
  [
    'Apache',
    '^\\[(?P<time>[^\\]]+)\\] \\[(?P<level>[^\\]]+)\\] (?P<content>.*?) *$',
    ['Time', 'Level', 'Content'],
  ],
  [
    'HDFS',
    '^(?P<date>\\d+) (?P<time>\\d+) (?P<pid>\\d+) (?P<level>\\w+) (?P<component>[^:]+): *(?P<content>.*?) *$',
    ['Date', 'Time', 'Pid', 'Level', 'Component', 'Content'],
  ],
  [
    'Linux',
    '^(?P<month>\\w+) +(?P<date>\\d+) (?P<time>[\\d:]+) (?P<level>\\S+) +(?P<component>[^\\[:]+?)(?:\\[(?P<pid>\\d+)\\])?: *(?P<content>.*?) *$',
    ['Month', 'Date', 'Time', 'Level', 'Component', 'PID', 'Content'],
  ],
  [
    'OpenSSH',
    '^(?P<date>\\w+) +(?P<day>\\d+) (?P<time>[\\d:]+) (?P<component>\\S+) sshd\\[(?P<pid>\\d+)\\]: *(?P<content>.*?) *$',
    ['Date', 'Day', 'Time', 'Component', 'Pid', 'Content'],
  ],
];

const missingLogs = existsSync(logs) ? null : 'the logs are not beside the checkout';

describeUnless(missingLogs, 'real logs', () => {
  it.each(systems)(
    '%s: every field of every line equals the CSV next to it, which has no blanks around its cells',
    (system, regex, columns) => {
      const base = new URL(`${system}/${system}_2k.log`, logs);
      const [header, ...table] = parseCsv(readFileSync(`${base.pathname}_structured.csv`, 'utf8'));
      const names = columns.map((column) => column.toLowerCase());
      const definition = agent(
        names.map((name) => ({ name })),
        { format: 'plain', regex },
      );
      const { rows, rejected } = decodeLines(definition, readFileSync(base));
      const expected = table.map((row) => columns.map((column): Value => row[header!.indexOf(column)]!));
      expect(rejected).toEqual([]);
      expect(rows.map((row) => row.map((value) => value ?? ''))).toEqual(expected);
      expect(rows.length).toBe(2000);
    },
  );
});
