import { describe, expect, it } from 'vitest';
import { caseCount, fc, seed } from '../../cases.js';
import { describeLine } from '../../../agents/decode/describe-line.js';
import { LineFramer } from '../../../agents/decode/line-framing.js';
import { recordEndsOf } from '../../../agents/decode/record-ends.js';
import { decodeRange } from '../../../agents/decode/decode-task.js';
import { createRecordDecoder } from '../../../agents/decode/record-decoder.js';
import { rejectedText } from '../../../agents/decode/rejected-lines.js';
import type {
  AgentDefinition,
  FieldDefinition,
  FileInput,
  LineFormat,
} from '../../../agents/definition/definition.js';
import { BatchBuilder } from '../../../engine/columns/batch-builder.js';
import { lineBytesMax, rowGroupRowsMax } from '../../../engine/core/limits.js';
import { contentOf, criLine, dockerLine, modelRecords, timeOf, writtenOf } from './container-model.js';
import { agent, decodeLines, noon } from './decode-lines.js';

const numRuns = caseCount(200, 5000);
const multiline = { start: '^\\d\\d ', timeoutMs: 1000, linesMax: 4, bytesMax: 600 };
const parts = [
  { name: 't', source: 'container.time' },
  { name: 's', source: 'container.stream' },
  { name: 'text', source: 'container.text' },
];
const formats = [
  ['docker', { format: 'docker', payload: 'plain' }, dockerLine],
  ['cri', { format: 'cri', payload: 'plain' }, criLine],
  ['docker with multiline', { format: 'docker', payload: 'plain', multiline }, dockerLine],
  ['cri with multiline', { format: 'cri', payload: 'plain', multiline }, criLine],
] as const;

/** What is kept of the lines that are rejected. */
function keptOf(definition: AgentDefinition, content: Buffer): string[] {
  const decoder = createRecordDecoder(definition, {
    captures: new Map(),
    timezone: 'UTC',
    written: { byMs: noon },
  });
  const range = { start: 0, end: content.length, continuesLine: false };
  const { rows, rejected } = decodeRange(decoder, content, range, new BatchBuilder(definition.schema));
  expect(rows).toBe(0);
  return rejected.reasons.map((_, i) => Buffer.from(rejectedText(rejected, i, content)).toString());
}

describe.each(formats)('records of %s', (_name, format: LineFormat, write) => {
  const definition = agent(parts, format);

  it(`are those of the model, whole or cut at any byte (seed ${seed})`, () => {
    fc.assert(
      fc.property(writtenOf, fc.boolean(), fc.nat(), (lines, endsInLine, cut) => {
        const content = contentOf(lines, write, endsInLine);
        const { records, others } = modelRecords(lines, write, format.multiline);
        const expected = records
          .filter(({ text }) => text !== '')
          .map(({ time, stream, text }) => [time, stream, text]);
        const { rows, rejected } = decodeLines(definition, content);
        expect(rows).toEqual(expected);
        expect(rejected.map(({ line }) => line)).toEqual(others);
        const ends = recordEndsOf(definition)(new Uint8Array(0));
        const known = cut % (content.length + 1);
        const whole = ends.wholeTo(content.subarray(0, known), 0, known);
        expect(whole).toBeLessThanOrEqual(known);
        const first = decodeLines(definition, content.subarray(0, whole));
        const rest = decodeLines(definition, content.subarray(whole));
        expect([...first.rows, ...rest.rows]).toEqual(expected);
      }),
      { numRuns, seed },
    );
  });

  it(`are rejected with their own lines, which give the same again (seed ${seed})`, () => {
    const strict = agent([{ name: 'n' }], { ...format, regex: '^never$' });
    fc.assert(
      fc.property(writtenOf, (lines) => {
        const { records, others } = modelRecords(lines, write, format.multiline);
        const filled = records.filter(({ text }) => text !== '');
        const kept = keptOf(strict, contentOf(lines, write, false));
        expect(kept.toSorted()).toEqual([...filled.map(({ raw }) => raw.join('\n')), ...others].toSorted());
        const again = kept
          .filter((line) => !others.includes(line))
          .map((line) => decodeLines(definition, line));
        expect(again.map(({ rows: [row] }) => row![2]).toSorted()).toEqual(
          filled.map(({ text }) => text).toSorted(),
        );
      }),
      { numRuns, seed },
    );
  });
});

const time = timeOf(0);
const fields = [
  { name: 'level' },
  { name: 'n', type: 'int' },
  { name: 's', source: 'container.stream' },
] as const;
const reading = (file: Partial<FileInput>, more: readonly Partial<FieldDefinition>[] = []) =>
  agent([...fields, ...(more as typeof fields)], file);
const whole = { stream: 'stdout', isPartial: false, ms: 0 } as const;

describe('the text of a container', () => {
  it('is read as what it is, and a part around it wins', () => {
    const json = '{"level":"a \\"b\\"","n":1,"container.stream":"x"}';
    const pairs = 'level="a \\"b\\"" n=1 container.stream=x';
    const expected = [['a "b"', 1n, 'stdout']];
    for (const [format, write] of [
      ['docker', dockerLine],
      ['cri', criLine],
    ] as const) {
      const rowsOf = (file: Partial<FileInput>, text: string) =>
        decodeLines(reading({ format, ...file }), `${write({ ...whole, text })}\n`).rows;
      expect(rowsOf({ payload: 'json' }, json)).toEqual(expected);
      expect(rowsOf({ payload: 'logfmt' }, pairs)).toEqual(expected);
      const regex = '^\\[(?P<level>.*)\\] (?P<n>\\d+)';
      expect(rowsOf({ payload: 'plain', regex }, '[a "b"] 1 more')).toEqual(expected);
    }
  });

  it('that is not in its format is rejected with its line, or kept where a field takes the whole text', () => {
    const line = dockerLine({ ...whole, text: 'panic: no JSON' });
    const { rows, rejected } = decodeLines(reading({ format: 'docker', payload: 'json' }), `${line}\n`);
    expect(rows).toEqual([]);
    expect(rejected).toEqual([
      { reason: expect.stringContaining('is not a JSON object') as string, line, start: 0 },
    ]);
    const all = reading({ format: 'docker', payload: 'json' }, [{ name: 'text', source: 'container.text' }]);
    const content = `${dockerLine({ ...whole, text: '{"level":"a","n":1}' })}\n${line}\n`;
    expect(decodeLines(all, content)).toMatchObject({
      rows: [
        ['a', 1n, 'stdout', '{"level":"a","n":1}'],
        [null, null, 'stdout', 'panic: no JSON'],
      ],
      rejected: [],
      unreadableValues: 0,
    });
  });

  it('of Docker has attributes, whose names may have points', () => {
    const attributes = ['tag', 'com.docker.compose.service', 'none'].map((name) => ({
      name: name.replaceAll('.', '_'),
      source: `container.attrs.${name}`,
    }));
    const definition = agent(attributes, { format: 'docker', payload: 'plain' });
    const attrs = { tag: 'we"b', 'com.docker.compose.service': 'api' };
    const content = [
      dockerLine({ ...whole, text: 'a', attrs }),
      dockerLine({ ...whole, text: 'b' }),
      dockerLine({ ...whole, text: 'c', isPartial: true, attrs }),
      dockerLine({ ...whole, text: 'd', attrs: { tag: 'x' } }),
    ].join('\n');
    const found = ['we"b', 'api', null];
    expect(decodeLines(definition, content).rows).toEqual([found, [null, null, null], found]);
  });

  it(`is what a parser of JSON makes of Docker's line, however it is written (seed ${seed})`, () => {
    const definition = agent(parts, { format: 'docker', payload: 'plain' });
    const logs = fc
      .tuple(fc.string({ unit: 'binary', maxLength: 8 }), fc.constantFrom('', '\n', '\r\n', '\\n'))
      .map(([text, end]) => text.replace(/[\n\r\0\ufeff]|^$/g, 'x') + end);
    const written = fc.tuple(
      logs,
      fc.constantFrom('stdout', 'stderr', 'stdin'),
      fc.constantFrom(0, 1, 2, 3, 4, 5),
    );
    fc.assert(
      fc.property(written, ([log, stream, form]) => {
        const usual = JSON.stringify({ log, stream, time });
        const line = [
          usual,
          JSON.stringify({ time, stream, log, attrs: {} }),
          ` ${usual}\t\r`,
          log.endsWith('\n') ? usual.replace('\\n"', '\\u000A"') : usual,
          usual.replace('"log"', '"\\u006cog"'),
          usual.slice(0, -2),
        ][form]!;
        const { rows, rejected } = decodeLines(definition, `${line}\n`);
        if (form === 5 || stream === 'stdin') expect([rows, rejected.length]).toEqual([[], 1]);
        else expect(rows).toEqual([[time, stream, log.replace(/\r?\n$/, '')]]);
      }),
      { numRuns: 5 * numRuns, seed },
    );
  });
});

describe('lines of containers', () => {
  const cri = agent(parts, { format: 'cri', payload: 'plain' });
  const textsOf = (content: string) => decodeLines(cri, content).rows.map((row) => row[2]);

  it('may have more tags, and NULs and blank lines between them', () => {
    const content = `${time} stdout F:x:y a\n\n\0\0${time} stderr P:z b\r\n \n${time} stderr F c\r\n${time} stdout F\n`;
    expect(decodeLines(cri, content)).toMatchObject({
      rows: [
        [time, 'stdout', 'a'],
        [time, 'stderr', 'b\rc'],
      ],
      rejected: [],
      nulBytes: 2,
    });
  });

  it.each([
    ['cri', 'plain text', 'expected TIME, stdout or stderr, P or F'],
    ['cri', `${time}`, 'expected TIME'],
    ['cri', `${time} stdin F x`, 'expected TIME'],
    ['cri', `${time} stdout X x`, 'expected TIME'],
    ['cri', `${time} stdout FF x`, 'expected TIME'],
    ['cri', `${time} stdout`, 'expected TIME'],
    ['docker', 'plain text', 'is not a JSON object'],
    ['docker', '{"level":"info"}', 'expected a log, a time, and stdout or stderr'],
    ['docker', '{"log":"x\\n","stream":"stdout","time":1}', 'expected a log, a time, and stdout or stderr'],
    [
      'docker',
      `{"log":"x\\n","stream":"stdin","time":"${time}"}`,
      'expected a log, a time, and stdout or stderr',
    ],
  ] as const)('of %s are rejected for what they lack: %s', (format, line, reason) => {
    const { rows, rejected } = decodeLines(agent(parts, { format, payload: 'plain' }), `${line}\n`);
    expect(rows).toEqual([]);
    expect(rejected).toEqual([{ reason: expect.stringContaining(reason) as string, line, start: 0 }]);
  });

  it('that are too long are rejected, and end what is open', () => {
    const long = `${time} stderr F ${'x'.repeat(lineBytesMax)}`;
    const content = `${time} stdout P a\n${long}\n${time} stdout F b\n`;
    expect(textsOf(content)).toEqual(['a', 'b']);
    expect(decodeLines(cri, content).rejected).toMatchObject([
      { reason: expect.stringContaining('more than 1048576') as string },
    ]);
  });

  it('are never torn apart where a batch is full', () => {
    const others = `${time} stderr F x\n`.repeat(20_000);
    const content = `${time} stdout P a\n${others}${time} stdout F b\n`.repeat(5);
    const texts = textsOf(content);
    expect(5 * 20_001).toBeGreaterThan(rowGroupRowsMax);
    expect(texts.length).toBe(5 * 20_001);
    expect(texts.filter((text) => text !== 'x')).toEqual(Array(5).fill('ab'));
  });

  it('of a text that never ends become records of a bounded size', async () => {
    const line = Buffer.from(`${time} stdout P ${'x'.repeat(16 * 1024)}\n`);
    const piece = Buffer.concat(Array<Buffer>(64).fill(line));
    const pieces = 100;
    let given = 0;
    const source = { path: 'x', next: () => Promise.resolve(given++ < pieces ? piece : null) };
    const framer = new LineFramer(source, 0, false, recordEndsOf(cri)(new Uint8Array(0)));
    const lengths: number[] = [];
    for (let frame = await framer.next(); frame !== null; frame = await framer.next()) {
      expect(frame.kind).not.toBe('long');
      const { rows } = decodeLines(cri, frame.bytes.subarray(0, frame.end));
      for (const row of rows) lengths.push((row[2] as string).length);
      if (frame.kind !== 'tail') continue;
      framer.keepTail();
      break;
    }
    expect(Math.max(...lengths)).toBeLessThanOrEqual(lineBytesMax);
    expect(lengths.slice(0, -1).every((length) => length > lineBytesMax - line.length)).toBe(true);
    expect(lengths.reduce((sum, length) => sum + length)).toBe(pieces * 64 * 16 * 1024);
  });
});

describe('the explanation of a record', () => {
  const options = { timezone: 'UTC', now: () => noon };
  const definition = reading({ format: 'docker', payload: 'json' }, [
    { name: 'tag', source: 'container.attrs.tag' },
  ]);

  it('shows the parts around its text, and those of the text', () => {
    const attrs = { tag: 'web' };
    const lines = [
      dockerLine({ ...whole, text: '{"level":"a",', isPartial: true, attrs }),
      dockerLine({ ...whole, text: '"n":1,"more":true}', attrs }),
    ].join('\n');
    expect(describeLine(definition, lines, options)).toMatchObject({
      outcome: 'record',
      continues: false,
      fields: [{ text: 'a' }, { value: 1n }, { text: 'stdout' }, { text: 'web' }],
      parsed: [
        { name: 'container.text', text: '{"level":"a","n":1,"more":true}' },
        { name: 'container.stream', text: 'stdout' },
        { name: 'container.time', text: time },
        { name: 'container.attrs.tag', text: 'web' },
        { name: 'level', text: 'a' },
        { name: 'n', text: '1' },
        { name: 'more', text: 'true' },
      ],
    });
  });

  it('is that of the first of two, and of a text that is in another format', () => {
    const line = dockerLine({ ...whole, text: 'no JSON' });
    const first = dockerLine({ ...whole, text: '{"n":1}' });
    expect(describeLine(definition, `${first}\n${first}`, options)).toMatchObject({
      records: 2,
      fields: [{}, { value: 1n }, {}, {}],
    });
    expect(describeLine(definition, line, options)).toMatchObject({ outcome: 'rejected' });
    const all = reading({ format: 'docker', payload: 'json' }, [{ name: 'text', source: 'container.text' }]);
    expect(describeLine(all, line, options)).toMatchObject({
      outcome: 'record',
      fields: [{}, {}, {}, { text: 'no JSON' }],
    });
  });
});
