import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { describeLine } from '../../../agents/decode/describe-line.js';
import { fieldTextBytesMax } from '../../../engine/core/limits.js';
import { agent, decodeLines, noon } from './decode-lines.js';

const otlp = agent(
  [
    { name: 'time', type: 'time' },
    { name: 'nanos', type: 'int', source: 'time_unix_nano' },
    { name: 'level', source: 'severity_text' },
    { name: 'severity', type: 'int', source: 'severity_number' },
    { name: 'body' },
    { name: 'trace_id' },
    { name: 'order', source: 'attributes.order.id' },
    { name: 'service', source: 'resource.service.name' },
    { name: 'scope', source: 'scope.name' },
  ],
  { format: 'otlp' },
);

interface AnyValue {
  readonly value: Record<string, unknown>;
  /** The text of the field. */
  readonly text: string | null;
}

const scalar: fc.Arbitrary<AnyValue> = fc.oneof(
  fc.string().map((text) => ({ value: { stringValue: text }, text: text === '' ? '' : text })),
  fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    .map((int) => ({ value: { intValue: String(int) }, text: String(int) })),
  fc.boolean().map((boolValue) => ({ value: { boolValue }, text: String(boolValue) })),
  fc
    .integer()
    .map((doubleValue) => ({ value: { doubleValue: doubleValue + 0.5 }, text: String(doubleValue + 0.5) })),
);
const anyValue: fc.Arbitrary<AnyValue> = fc.oneof(
  scalar,
  fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string()), { maxLength: 3 }).map((members) => ({
    value: { kvlistValue: { values: members.map(([key, text]) => ({ key, value: { stringValue: text } })) } },
    text: JSON.stringify(Object.fromEntries(members)),
  })),
  fc.array(fc.string(), { maxLength: 3 }).map((texts) => ({
    value: { arrayValue: { values: texts.map((text) => ({ stringValue: text })) } },
    text: JSON.stringify(texts),
  })),
);
const attribute = (key: string): fc.Arbitrary<AnyValue | undefined> =>
  fc.option(anyValue, { nil: undefined }).map(
    (each) =>
      each && {
        ...each,
        value: {
          attributes: [
            { key: 'x', value: {} },
            { key, value: each.value },
          ],
        },
      },
  );
const nanos = fc.option(fc.bigInt({ min: 1n, max: 2n ** 62n }), { nil: undefined });
const logRecord = fc.record({
  time: nanos,
  observed: nanos,
  level: fc.constantFrom('', 'INFO'),
  severity: fc.constantFrom(undefined, 9),
  body: fc.option(anyValue, { nil: undefined }),
  trace: fc.constantFrom('', '3ff20ef1673ad0960ca808a87ce23313'),
  order: attribute('order.id'),
});
const line = fc.array(
  fc.record({
    service: attribute('service.name'),
    scopes: fc.array(fc.tuple(fc.constantFrom('', 'shop'), fc.array(logRecord, { maxLength: 3 })), {
      maxLength: 2,
    }),
  }),
  { maxLength: 3 },
);

describe('lines of OTLP JSON', () => {
  it('give a record for each log record, with the attributes of its resource and scope', () => {
    fc.assert(
      fc.property(line, (resources) => {
        const data = {
          resourceLogs: resources.map(({ service, scopes }) => ({
            resource: service?.value,
            scopeLogs: scopes.map(([name, records]) => ({
              scope: { name },
              logRecords: records.map(({ time, observed, level, severity, body, trace, order }) => ({
                timeUnixNano: time === undefined ? '0' : String(time),
                observedTimeUnixNano: observed === undefined ? undefined : String(observed),
                severityText: level,
                severityNumber: severity,
                body: body?.value,
                traceId: trace,
                ...order?.value,
              })),
            })),
          })),
        };
        const expected = resources.flatMap(({ service, scopes }) =>
          scopes.flatMap(([name, records]) =>
            records.map(({ time, observed, level, severity, body, trace, order }) => [
              (time ?? observed) === undefined ? null : (time ?? observed)! / 1_000_000n,
              time ?? null,
              level || null,
              severity === undefined ? null : BigInt(severity),
              body?.text || null,
              trace || null,
              order?.text ?? null,
              service?.text ?? null,
              name || null,
            ]),
          ),
        );
        const { rows, rejected } = decodeLines(otlp, `${JSON.stringify(data)}\n`);
        expect(rejected).toEqual([]);
        expect(rows).toEqual(expected);
      }),
      { numRuns: caseCount(300, 10_000) },
    );
  });

  it('are rejected where they are none', () => {
    const lines = [
      '{"resourceLogs":[',
      'text',
      '{"resourceMetrics":[]}',
      '{"resourceLogs":[{"x":NaN}]}',
      '[{"time":1},2]',
      '{"resourceLogs":[{},null,7,{"scopeLogs":{}}]}',
      '',
    ];
    const { rows, rejected } = decodeLines(otlp, lines.join('\n'));
    expect(rows).toEqual([]);
    expect(rejected.map(({ reason }) => reason)).toEqual([
      'is not OTLP JSON: at column 18, its end, expected a value',
      'is not OTLP JSON: at column 1 expected "true"',
      'is not OTLP JSON with logs: it has no array "resourceLogs"',
      'is not OTLP JSON: it has an escape or a number that JSON does not have',
      'is not a log record by itself',
    ]);
  });

  it('do not repeat the attributes of a resource beyond the limit of a line', () => {
    const attributes = [{ key: 'service.name', value: { stringValue: 's'.repeat(500_000) } }];
    const lineOf = (records: number): string =>
      JSON.stringify({
        resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords: Array(records).fill({}) }] }],
      });
    expect(decodeLines(otlp, lineOf(60)).rows.length).toBe(60);
    expect(decodeLines(otlp, lineOf(100))).toMatchObject({
      rows: [],
      rejected: [{ reason: `has more than ${fieldTextBytesMax} bytes of text in the fields of its records` }],
    });
  });

  it('keep a rejected log record so that it can be decoded again', () => {
    const record = (text: string): object => ({
      timeUnixNano: '1795842000000000000',
      body: { stringValue: text },
    });
    const data = { resourceLogs: [{ scopeLogs: [{ logRecords: ['a', 'b'.repeat(100), 'c'].map(record) }] }] };
    const twice = '{{$x = print $x $x}}'.repeat(30);
    const template = `{{$x := .body}}{{if ge (len .body) 99}}${twice}{{end}}{{.body}}`;
    const strict = agent(
      [
        { name: 'time', type: 'time' },
        { name: 'body', template },
      ],
      { format: 'otlp' },
    );
    const { rows, rejected, texts } = decodeLines(strict, JSON.stringify(data));
    expect(rows.map(([, body]) => body)).toEqual(['a', 'c']);
    expect(rejected.length).toBe(1);
    const again = decodeLines(otlp, texts[0]!);
    expect(again.rows.map(([time, , , , body]) => [time, body])).toEqual([[1795842000000n, 'b'.repeat(100)]]);
  });

  it('are described by the first log record', () => {
    const record = (n: number): object => ({
      severityText: `L${n}`,
      attributes: [{ key: 'k', value: { intValue: n } }],
    });
    const data = { resourceLogs: [{ scopeLogs: [{ logRecords: [record(1), record(2)] }] }] };
    const described = describeLine(otlp, JSON.stringify(data), { timezone: 'UTC', now: () => noon });
    expect(described).toMatchObject({ outcome: 'record', records: 2 });
    expect('parsed' in described && described.parsed.filter(({ text }) => text !== null)).toEqual([
      { name: 'attributes.k', text: '1' },
      { name: 'severity_text', text: 'L1' },
    ]);
  });
});
