import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { JsonValues } from '../../../agents/decode/json-values.js';
import type { FileInput } from '../../../agents/definition/definition.js';
import { agent, decodeLines, type Decoded } from './decode-lines.js';

const numRuns = caseCount(200, 10_000);

const fields = [{ name: 'n' }, { name: 'v' }];
const plain = agent(fields, { values: { records: [] } });
const inRecords = agent(fields, { values: { records: ['a', 'Records'] } });

/** An object of a log: its number, and a value with everything that a search for brackets could fall for. */
const object = fc
  .record({
    n: fc.nat(99),
    v: fc.oneof(fc.string(), fc.json({ maxDepth: 3 }), fc.constantFrom('}', '{"', '],[', '\\', '\n')),
  })
  .map(({ n, v }) => ({ n: String(n), v }));
const spaces = fc.constantFrom('', '', ' ', '\n', '\r\n', '\n\n  ');
const indent = fc.constantFrom(0, 0, 1, 2);
const written = fc
  .tuple(object, indent)
  .map(([value, by]) => ({ value, text: JSON.stringify(value, null, by) }));
type Written = { readonly value: { n: string; v: string }; readonly text: string };

/** Values one after another, or in arrays. */
const sequence: fc.Arbitrary<{ text: string; values: Written['value'][] }> = fc
  .array(
    fc.oneof(
      fc
        .tuple(written, spaces)
        .map(([{ value, text }, space]) => ({ text: `${text}${space}`, values: [value] })),
      fc.tuple(fc.array(written, { maxLength: 4 }), spaces, spaces, spaces).map(([elements, a, b, c]) => ({
        text: `[${a}${elements.map(({ text }) => text).join(`${b},${a}`)}${c}]${b}`,
        values: elements.map(({ value }) => value),
      })),
    ),
    { maxLength: 5 },
  )
  .map((parts) => ({
    text: parts.map(({ text }) => text).join(''),
    values: parts.flatMap(({ values }) => values),
  }));

/** Objects with an array of records beneath other members. */
const envelopes: typeof sequence = fc
  .array(fc.tuple(fc.array(written, { maxLength: 4 }), object, indent, spaces, fc.boolean()), {
    maxLength: 4,
  })
  .map((parts) => ({
    text: parts
      .map(([elements, other, by, space, isFirst]) => {
        const holder = { x: other, Records: elements.map(({ value }) => value), Recordsx: [other] };
        const outer = isFirst
          ? { a: holder, b: { Records: [other] } }
          : { b: other, 'a.Records': [other], a: holder };
        return JSON.stringify(outer, null, by) + space;
      })
      .join(''),
    values: parts.flatMap(([elements]) => elements.map(({ value }) => value)),
  }));

const rowsOf = (values: Written['value'][]): string[][] => values.map(({ n, v }) => [n, v]);

/** The results of content that is cut where records are complete, with what is left as the last piece. */
function inPieces(
  definition: typeof plain,
  records: string[],
  content: Buffer,
  cuts: readonly number[],
): Decoded[] {
  const results: Decoded[] = [];
  let from = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    const to = Math.max(from, cut % (content.length + 1));
    const whole = new JsonValues(records).wholeTo(content.subarray(0, to), from, to);
    if (whole > from) results.push(decodeLines(definition, content.subarray(from, whole)));
    from = whole;
  }
  if (from < content.length) results.push(decodeLines(definition, content.subarray(from)));
  return results;
}

describe('values of JSON over lines', () => {
  it.each([
    ['one after another, and in arrays', sequence, plain, []],
    ['in an array at a path of each object', envelopes, inRecords, ['a', 'Records']],
  ] as const)('are records %s, wherever the content is cut', (_, content, definition, records) => {
    fc.assert(
      fc.property(content, fc.array(fc.nat(), { maxLength: 6 }), ({ text, values }, cuts) => {
        const results = inPieces(definition, [...records], Buffer.from(text), cuts);
        expect(results.flatMap(({ rejected }) => rejected)).toEqual([]);
        expect(results.flatMap(({ rows }) => rows)).toEqual(rowsOf(values));
      }),
      { numRuns },
    );
  });

  it('are complete as soon as they are, at every byte', () => {
    fc.assert(
      fc.property(sequence, ({ text, values }) => {
        const content = Buffer.from(text);
        const ends = new JsonValues();
        for (let to = 0; to <= content.length; to++) {
          const whole = ends.wholeTo(content.subarray(0, to), 0, to);
          const { rows, rejected } = decodeLines(plain, content.subarray(0, whole));
          expect(rejected).toEqual([]);
          expect(rows).toEqual(rowsOf(values).slice(0, rows.length));
          // Nothing but brackets, commas and one unfinished value is left.
          const left = decodeLines(plain, content.subarray(whole, to));
          expect(left.rows.length).toBe(0);
          expect(left.rejected.length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: Math.ceil(numRuns / 10) },
    );
  });

  it('do not depend on pieces when there is anything else between them', () => {
    const noise = fc.array(
      fc.oneof(
        written.map(({ text }) => text),
        fc.constantFrom('\n', '{', '}', '[', ']', ',', '"', '"a":', 'text\n', '1', 'tru', '\0', '\\'),
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(noise, fc.array(fc.nat(), { maxLength: 6 }), (parts, cuts) => {
        const content = Buffer.from(`${parts.join('')}\n`);
        const rowsIn = (results: Decoded[]): unknown => ({
          rows: results.flatMap(({ rows }) => rows),
          rejected: results.flatMap(({ rejected }) =>
            rejected.map(({ line, reason }) => [line.trim(), reason]),
          ),
        });
        for (const [definition, records] of [
          [plain, []],
          [inRecords, ['a', 'Records']],
        ] as const)
          expect(rowsIn(inPieces(definition, [...records], content, cuts))).toEqual(
            rowsIn([decodeLines(definition, content)]),
          );
      }),
      { numRuns },
    );
  });

  it('that are damaged are rejected, and the next ones are not lost', () => {
    const content = [
      'Listening on port 0',
      '{"n":"1"}',
      '{"n":"2","v":"unfini',
      '{"n":"3"}',
      '{',
      '  "n": "4",',
      '{"n":"5"}',
      '}',
      '{"n":"6"} {"n":"7"}',
      '[{"n":"8"}, 9, "x", ["y"], {"n":"10"}]',
    ].join('\n');
    const { rows, rejected } = decodeLines(plain, content);
    expect(rows.map(([n]) => n)).toEqual(['1', '3', '5', '6', '7', '8', '10']);
    expect(rejected.map(({ line }) => line)).toEqual([
      'Listening on port 0',
      '{"n":"2","v":"unfini',
      '{\n  "n": "4",',
      '}',
      ', 9',
      ', "x"',
      ', ["y"]',
    ]);
    // What is kept of a rejected value becomes a record when it is decoded again.
    expect(decodeLines(inRecords, ',{"n":"1"}').rows).toEqual([['1', null]]);
    expect(decodeLines(inRecords, '{"a":{"Records":[{"n":"1"}').rows).toEqual([['1', null]]);
  });

  it('lack a record where there is no array at the path', () => {
    const { rows, rejected } = decodeLines(
      inRecords,
      '{"a":{}}\n{"a":{"Records":{}}}{"a":{"Records":[{"n":"1"}]}}',
    );
    expect(rows).toEqual([['1', null]]);
    expect(rejected.map(({ line, reason }) => [line, reason])).toEqual([
      ['{"a":{}}', 'has no array "a.Records"'],
      ['{"a":{"Records":{}}}', 'has no array "a.Records"'],
    ]);
  });

  it('of hostile nesting, and without an end, take linear time', () => {
    const deep = `${'['.repeat(400_000)}\n{"n":"1"}\n${'{"a":'.repeat(100_000)}\n{"n":"2"}\n${'{},'.repeat(300_000)}`;
    const { rows, rejected } = decodeLines(plain, deep);
    expect(rows.filter(([n]) => n !== null)).toEqual([
      ['1', null],
      ['2', null],
    ]);
    expect(rows.length).toBe(300_002);
    expect(rejected.length).toBe(2);
  });

  it('count the NULs before them', () => {
    const { rows, nulBytes } = decodeLines(plain, '{"n":"1"}\n\0\0\0{"n":"2"}\n\0\n{"n":"3"}');
    expect([rows.map(([n]) => n), nulBytes]).toEqual([['1', '2', '3'], 4]);
  });

  it('may have mistakes that are repaired', () => {
    const file: Partial<FileInput> = { values: { records: [] } };
    const { rows, replacedBytes } = decodeLines(
      agent(fields, file),
      '[{"n":"\\x41","v":NaN},\n{"n":"b",\n"v":-Infinity}]',
    );
    expect([rows, replacedBytes]).toEqual([
      [
        ['A', null],
        ['b', null],
      ],
      3,
    ]);
  });
});
