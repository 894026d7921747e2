import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { delimitedSteps } from '../../../agents/decode/delimited-steps.js';
import { DelimitedLineSplitter } from '../../../agents/decode/delimited-lines.js';
import { LineColumns } from '../../../agents/decode/line-columns.js';
import { agent, decodeLines } from './decode-lines.js';
import { anyText } from '../../model/any-text.js';

const numRuns = caseCount(200, 20_000);

const combined =
  '^(?P<a>\\S+) \\S+ (?P<b>\\S+) \\[(?P<time>[^\\]]+)\\] "(?P<c>[A-Z]+) (?P<d>\\S+) (?P<e>[^"]+)" ' +
  '(?P<f>\\d{3}) (?P<g>\\d+|-)(?: "(?P<h>[^"]*)" "(?P<i>[^"]*)")?';
const combinedLine =
  '198.18.0.1 - - [17/Nov/2026:10:00:00 +0000] "GET /index.html HTTP/1.1" 200 612 "https://example.org/" "curl/8.5.0"';

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];

/** An agent with every field that a pattern may capture, also as a number and as a time. */
function plainAgent(regex: string): ReturnType<typeof agent> {
  return agent(
    [
      { name: 'time', type: 'time', timestamp: { format: 'common' } },
      ...names.map((name) => ({ name })),
      { name: 'number', type: 'int', source: 'a' },
      { name: 'float', type: 'float', source: 'b' },
      { name: 'both', template: '{{.a}} {{.b}}' },
    ],
    { format: 'plain', regex },
  );
}

function expectSame(regex: string, block: Uint8Array): void {
  const definition = plainAgent(regex);
  const rows = decodeLines(definition, block, { columnar: false });
  expect(decodeLines(definition, block, { columnar: true })).toEqual(rows);
}

/** A backtracking choice after one that does not backtrack: most lines are still split by kernels. */
const withOther = combined.replace(
  '(?P<c>[A-Z]+) (?P<d>\\S+) (?P<e>[^"]+)',
  '(?:(?P<c>[A-Z]+) (?P<d>[^ "]+)(?: (?P<e>[^ "]+))?|(?P<j>(?:[^"\\\\]|\\\\.)*))',
);

const patterns = [
  combined,
  withOther,
  '^(?P<a>[^ ]*) (?P<b>[^ ]*)$',
  '(?P<a>\\d+),(?P<b>[^,]*),(?P<c>.*)',
  '^(?P<a>.*)$',
  '^(?P<a>.*?)$',
  '^(?P<a>.*?): (?P<b>.*)',
  '^(?P<a>[^:]+?):(?P<b>\\w*)',
  '^(?P<a>.+) (?P<b>.+)$',
  '^(?:(?P<a>x+)|(?P<b>[0-9]+)|-)(?P<c>,.*)?$',
  '^(?P<a>\\d+)(?: (?P<b>\\S+))?(?: (?P<c>[^ ]+))?$',
  '^(?P<a>\\d*|-) (?P<b>.*)$',
  '^(?P<a>[a-z]+)=(?P<b>"[^"]*"|[^ ]*)(?: |$)',
  '^(?P<a>\\w+)\\s+(?P<b>\\S+)\\s*$',
  '(?i)^get (?P<a>\\S+)',
  '^(?P<a>é+) (?P<b>[^é]+)$',
  '^(?P<a>(?:x )*)(?P<b>\\d)',
  '(?m)^(?P<a>[^,]+),(?P<b>\\d{2,3})$',
  '^\\b(?P<a>\\w+)\\b',
  '^$',
  '^(?P<a>)(?P<b>[^ ]?) ?(?P<c>x|y|)',
];

const atom = fc.constantFrom(
  ...[
    '\\S+',
    '\\S*',
    '[^ ]+',
    '[^"]*',
    '\\d+',
    '\\d{2}',
    '.*',
    '.*?',
    '\\w+',
    '[^,]*?',
    '-|\\d+',
    'x|[^ ]+',
    '.',
    '',
  ],
);
const glue = fc.constantFrom(
  ...[' ', ' "', '" ', ',', ', ', ' \\[', '\\] ', '', '\\s+', '(?: |,)', 'x?', ': '],
);
const randomPattern = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(atom, glue, fc.boolean()), { minLength: 1, maxLength: 4 }),
    fc.boolean(),
  )
  .map(([isAnchored, parts, hasEnd]) => {
    const texts = parts.map(([inside, behind, isOptional], i) => {
      const group = `(?P<${names[i]!}>${inside})`;
      return isOptional ? `(?:${group}${behind})?` : `${group}${behind}`;
    });
    return `${isAnchored ? '^' : ''}${texts.join('')}${hasEnd ? '$' : ''}`;
  });

const word = fc.oneof(
  fc.constantFrom(
    ...['x', '12', '123', '-', 'GET', 'abc', '"q r"', 'k="v w"', '[t]', 'é', 'ünï', '', 'x x 1', '\r', '\0'],
  ),
  anyText({ maxLength: 20 }).map((text) => text.replaceAll('\n', ' ')),
);
const line = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...[combinedLine, combinedLine.replace('612', '-'), combinedLine.slice(0, 77)],
      ...['"\\x16\\x03"', '""', '"-"', '"GET /a\\"b HTTP/1.1"', '"GET /index"'].map((request) =>
        combinedLine.replace('"GET /index.html HTTP/1.1"', () => request),
      ),
    ),
  },
  {
    weight: 5,
    arbitrary: fc
      .array(fc.tuple(word, fc.constantFrom(' ', ' ', ',', ', ', ': ', ' "', '" ', '=')), { maxLength: 6 })
      .map((parts) => parts.flat().join('')),
  },
  { weight: 1, arbitrary: fc.constantFrom('', '\r', '"') },
);
const blocks = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\n', '\r\n')), { minLength: 1, maxLength: 30 })
  .map((lines) => Buffer.from(lines.flat().join('').repeat(6)));

describe('plain lines that are decoded many at once', () => {
  it('give the same records as one by one', () => {
    fc.assert(fc.property(fc.oneof(fc.constantFrom(...patterns), randomPattern), blocks, expectSame), {
      numRuns,
    });
  });

  it('give the same records with invalid UTF-8, whatever byte is broken', () => {
    const bytes = fc.array(fc.tuple(fc.nat(combinedLine.length - 1), fc.nat(255)), { maxLength: 2 });
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 12, maxLength: 30 }), (changes) => {
        const lines = changes.map((changed) => {
          const content = Buffer.from(`${combinedLine}\n`);
          for (const [at, byte] of changed) content[at] = byte;
          return content;
        });
        expectSame(combined, Buffer.concat(lines));
      }),
      { numRuns },
    );
  });

  it('are split by kernels for patterns whose next byte decides every choice', () => {
    const steps = delimitedSteps(combined, [...names, 'time'])!;
    const columns = new LineColumns(new DelimitedLineSplitter(steps, 11), [
      { kind: 'string', field: 7 },
      { kind: 'time', field: 10, format: 'common' },
      { kind: 'int', field: 6, digitsMax: 18 },
    ]);
    const short = combinedLine.slice(0, combinedLine.indexOf(' "https'));
    const lines = [combinedLine, `${short}\r`, short.replace('612', '-'), short.replace('GET', 'get'), ''];
    const bytes = Buffer.from(lines.join('\n'));
    expect(columns.open(bytes, 0, bytes.length, true)).toBe(bytes.length);
    expect(columns.next()).toBe(true);
    // An empty last line without a line end is not a line.
    expect([...columns.states]).toEqual([0, 0, 0, 1]);
    const [referer, times, sizes] = columns.columns;
    if (referer?.kind !== 'string' || times?.kind !== 'int' || sizes?.kind !== 'int')
      throw new Error('other kinds');
    expect(Buffer.from(referer.bytes).toString()).toBe('https://example.org/');
    expect([...referer.presence!.subarray(0, 3)]).toEqual([1, 0, 0]);
    const { buffer, byteOffset } = times.halves;
    expect(new BigInt64Array(buffer, byteOffset, 3)).toEqual(
      new BigInt64Array(3).fill(BigInt(Date.UTC(2026, 10, 17, 10))),
    );
    expect([...sizes.halves.subarray(0, 6)]).toEqual([612, 0, 612, 0, 0, 0]);
    expect([...sizes.unreadable!.subarray(0, 3)]).toEqual([0, 0, 1]);
  });

  it('exclude patterns that need backtracking', () => {
    const taken = patterns.filter((regex) => delimitedSteps(regex, names) !== null);
    expect(taken).toContain(combined);
    expect(taken).toContain(withOther);
    for (const regex of [
      '^(?P<a>.+) (?P<b>.+)$',
      '^(?P<a>.*?): (?P<b>.*)',
      '^(?P<a>(?:x )*)(?P<b>\\d)',
      '^\\b(?P<a>\\w+)\\b',
    ]) {
      expect(patterns).toContain(regex);
      expect(taken).not.toContain(regex);
    }
    expect(taken.length).toBeGreaterThan(7);
  });
});
