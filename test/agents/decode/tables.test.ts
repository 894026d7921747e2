import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { describeLine } from '../../../agents/decode/describe-line.js';
import { QuotedRecords } from '../../../agents/decode/record-ends.js';
import { headersOf } from '../../../agents/decode/table-headers.js';
import type { FileInput } from '../../../agents/definition/definition.js';
import { lineBytesMax } from '../../../engine/core/limits.js';
import { agent, decodeLines, noon } from './decode-lines.js';
import {
  csvValue,
  names,
  recordsIn,
  recordsOf,
  rowsIn,
  sectionsOf,
  written,
  type Write,
} from './table-model.js';

const numRuns = caseCount(150, 10_000);

/** An agent with a field for each column, and one that no header has. */
const tableOf = (file: Partial<FileInput>): ReturnType<typeof agent> =>
  agent(
    [...names, 'missing'].map((source, i) => ({ name: `c${i}`, source })),
    file,
  );

const choices = fc.array(fc.boolean(), { minLength: 1, maxLength: 20 });
const textOf = (...units: string[]): fc.Arbitrary<string | null> =>
  fc.option(fc.string({ unit: fc.constantFrom(...units), maxLength: 8 }));
const awkward = textOf('a', ' ', ',', ';', '\t', '"', '\n', '\r', 'é', '-');

/** The formats, how each writes its rows, and what values it can hold. */
const formats = [
  { file: { format: 'csv' }, separator: ',', write: csvValue(','), values: awkward },
  { file: { format: 'csv', separator: ';' }, separator: ';', write: csvValue(';'), values: awkward },
  { file: { format: 'csv', separator: '\t' }, separator: '\t', write: csvValue('\t'), values: awkward },
  {
    file: { format: 'tsv' },
    separator: '\t',
    write: ((value) => value ?? '') as Write,
    values: textOf('a', ' ', ',', '"', 'é', '-').map((value) => (value === '' ? null : value)),
  },
] as const;

describe.each(formats)('$file', ({ file, separator, write, values }) => {
  const definition = tableOf(file);

  it('has the values that were written, by the names of the header in force', () => {
    fc.assert(
      fc.property(sectionsOf(values), choices, (sections, choices) => {
        const text = written(sections, separator, write, choices);
        const { rows, rejected, unreadable } = decodeLines(definition, text);
        expect(rejected).toEqual([]);
        expect(rows).toEqual(recordsIn(sections, [...names, 'missing']));
        const lackedBy = text.slice(0, text.search(/\r?\n/));
        expect(unreadable.find(({ field }) => field === names.length)).toMatchObject({ values: 0, lackedBy });
      }),
      { numRuns },
    );
  });

  it('is decoded many rows at once with the same results', () => {
    fc.assert(
      fc.property(sectionsOf(values), choices, (sections, choices) => {
        const [{ names, rows }] = sections as [(typeof sections)[0]];
        const many = Math.ceil(300_000 / (1 + JSON.stringify(rows).length));
        const long = Array.from({ length: many }, () => rows).flat();
        const text = written([{ names, rows: long }, ...sections.slice(1)], separator, write, choices);
        const decoded = decodeLines(definition, text);
        expect(decoded).toEqual(decodeLines(definition, text, { columnar: false }));
        expect(decoded.rejected).toEqual([]);
      }),
      { numRuns: caseCount(4, 200) },
    );
  });
});

describe.each(['blanks', 'tabs', 'zeek'])('w3c with %s', (kind) => {
  const columns = ['n', 'text', 'c(d)', 'e-f'];
  const definition = agent(
    ['e-f', 'n', 'missing', 'text'].map((source, i) => ({ name: `c${i}`, source })),
    { format: 'w3c' },
  );
  const word = fc.string({
    unit: fc.constantFrom('a', '-', '(', 'é', '#', '7'),
    minLength: 1,
    maxLength: 4,
  });
  const separator = kind === 'blanks' ? ' ' : '\t';
  const isZeek = kind === 'zeek';
  // Marks around a word are not a part of it, and a word of blanks is one with marks.
  const valueIn = (text: string): string | null => {
    if (text === '-') return null;
    if (isZeek) return text === '(empty)' ? '' : text;
    return text.length > 1 && text.startsWith('"') && text.endsWith('"')
      ? text.slice(1, -1).replaceAll('""', '"')
      : text;
  };
  const texts = fc.oneof(
    word,
    fc.constantFrom(...(isZeek ? ['(empty)', '(empty', 'a b'] : ['"a b c"', '"-"', '""', 'a"b'])),
  );
  const table = fc.array(fc.tuple(texts, texts, texts, texts), { minLength: 1, maxLength: 8 });

  it('has the values that were written, also if many rows are decoded at once', () => {
    fc.assert(
      fc.property(table, fc.nat(3), fc.constantFrom(1, 1, 1, 300_000), (rows, turn, bytes) => {
        const names = columns.map((_, i) => columns[(i + turn) % columns.length]!);
        const header = isZeek
          ? `#separator \\x09\n#fields\t${names.join('\t')}`
          : `#Fields: ${names.join(' ')}`;
        // A line that begins with # is no row.
        const kept = rows.filter(([first]) => !first.startsWith('#'));
        const lines = rows.map((row) => `${row.join(separator)}\n`).join('');
        const times = Math.ceil(bytes / lines.length);
        const { rows: found, rejected } = decodeLines(
          definition,
          `${header}\n${lines.repeat(times)}#close\n`,
        );
        const expected = kept.map((row) =>
          ['e-f', 'n', 'missing', 'text'].map((name) =>
            name === 'missing' ? null : valueIn(row[names.indexOf(name)]!),
          ),
        );
        expect(rejected).toEqual([]);
        expect(found.length).toBe(expected.length * times);
        expect(found.slice(0, expected.length)).toEqual(expected);
        expect(found.slice(-expected.length || found.length)).toEqual(expected);
      }),
      { numRuns: caseCount(40, 2000) },
    );
  });
});

it('a row is explained with its header', () => {
  const definition = tableOf({ format: 'csv' });
  const options = { timezone: 'UTC', now: () => noon };
  expect(describeLine(definition, 'n,more,text\n1,"x\ny",2\n', options)).toMatchObject({
    outcome: 'record',
    parsed: [
      { name: 'n', text: '1' },
      { name: 'more', text: 'x\ny' },
      { name: 'text', text: '2' },
    ],
  });
  expect(describeLine(definition, 'n,text\n1', options)).toMatchObject({ outcome: 'rejected' });
  expect(describeLine(definition, 'n,text\n', options)).toMatchObject({ outcome: 'blank' });
  expect(() => describeLine(definition, 'n,text\n1,2\n3,4', options)).toThrow('more than one row');
});

describe('any text as csv', () => {
  const pieces = fc.constantFrom(
    'n',
    'a',
    'é',
    ',',
    ',',
    '"',
    '"',
    '""',
    '\n',
    '\r\n',
    '\0',
    'text,n\n',
    'n,"text"\r\n',
  );
  const definition = tableOf({ format: 'csv' });

  it('has the records of the model', () => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
        const text = `n,text\n${parts.join('')}`;
        const { rows, rejected } = decodeLines(definition, text);
        const expected = rowsIn(text, ['n', 'text']);
        expect(rows.map(([n, text]) => [n, text])).toEqual(expected.rows);
        const lines = rejected.map(({ line }) => Buffer.from(line, 'latin1').toString().replace(/^\0+/, ''));
        expect(lines).toEqual(expected.rejected);
      }),
      { numRuns: caseCount(400, 50_000) },
    );
  });

  it('is cut only where a record ends, and all is known there', () => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), fc.nat(), (parts, cut) => {
        const bytes = Buffer.from(`n,text\n${parts.join('')}`);
        const known = cut % (bytes.length + 1);
        const whole = new QuotedRecords(0x2c).wholeTo(bytes.subarray(0, known), 0, known);
        const ends = recordsOf(bytes.toString('latin1')).map(({ end }) => end);
        expect([0, ...ends]).toContain(whole);
        // Held back are a part of a line, and what a mark in the first line may keep together.
        const [firstLine, ...others] = bytes.toString('latin1', whole, known).split('\n');
        expect(others.length === 0 || firstLine!.includes('"')).toBe(true);
        const headers = headersOf(definition)!;
        const first = headers.behind(bytes, { start: 0, end: whole, continuesLine: false });
        const then = { start: whole, end: bytes.length, reading: first, continuesLine: false };
        const atOnce = { start: 0, end: bytes.length, continuesLine: false };
        expect(headers.behind(bytes, then)).toEqual(headers.behind(bytes, atOnce));
      }),
      { numRuns: caseCount(400, 50_000) },
    );
  });

  it('loses one line to a quotation mark that nothing closes', () => {
    const lines = 'b,c\n'.repeat(300_000);
    const { rows, rejected } = decodeLines(definition, `n,text\na,"b\n${lines}`);
    expect([rows.length, rejected.length]).toEqual([300_000, 1]);
    expect(rejected[0]!.reason).toBe(
      'is not CSV: at column 5, its end, expected a quotation mark that ends the value',
    );
    const ends = new QuotedRecords(0x2c);
    const bytes = Buffer.from(`a,"b\n${lines}`);
    expect(ends.wholeTo(bytes, 0, lineBytesMax)).toBe(0);
    expect(ends.wholeTo(bytes, 0, bytes.length)).toBe(bytes.length);
  });

  it('takes time in proportion to its length', () => {
    // Each would be quadratic if a record could be open over many lines of which each begins another one.
    for (const line of ['","\n', '"x","\n', '",x","\n', '"",""\n', '""",\n', '"\n', ',"a\n', 'x"","\n']) {
      const bytes = Buffer.from(line.repeat(4_000_000 / line.length));
      const ends = new QuotedRecords(0x2c);
      let records = 0;
      for (let at = 0; at < bytes.length; at = ends.recordEnd(bytes, at)) records++;
      expect(records).toBeGreaterThan(0);
      expect(ends.wholeTo(bytes, 0, bytes.length)).toBeGreaterThan(bytes.length - 2 * lineBytesMax);
    }
  });
});
