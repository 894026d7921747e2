import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { describeLine } from '../../../agents/decode/describe-line.js';
import { MultilineRecords } from '../../../agents/decode/line-framing.js';
import { createRecordDecoder } from '../../../agents/decode/record-decoder.js';
import { BatchBuilder } from '../../../engine/columns/batch-builder.js';
import type { Multiline } from '../../../agents/definition/definition.js';
import { lineBytesMax } from '../../../engine/core/limits.js';
import { agent, decodeLines, noon } from './decode-lines.js';
import { contentOf, joined, recordsIn } from './multiline-model.js';

const numRuns = caseCount(150, 10_000);

const multiline: Multiline = { start: '^\\d\\d ', timeoutMs: 1000, linesMax: 5, bytesMax: 60 };
const file = { format: 'plain', regex: '(?s)^(?P<n>\\d\\d )?(?P<text>.*)$', multiline } as const;
const definition = agent([{ name: 'n' }, { name: 'text' }], file);

function textsOf(content: Uint8Array): string[] {
  return decodeLines(definition, content).rows.map(
    ([n, text]) => `${n === null ? '' : String(n)}${String(text)}`,
  );
}

describe('records of several lines', () => {
  it('are those of the model, with their lines joined', () => {
    fc.assert(
      fc.property(contentOf, (content) => {
        const expected = recordsIn(content, multiline).map(joined);
        expect(textsOf(content)).toEqual(expected.filter((text) => text !== ''));
      }),
      { numRuns },
    );
  });

  it('are complete only when no later line can change them', () => {
    fc.assert(
      fc.property(contentOf, fc.nat(), (content, cut) => {
        const ends = new MultilineRecords(multiline);
        const known = cut % (content.length + 1);
        const whole = ends.wholeTo(content.subarray(0, known), 0, known);
        const all = recordsIn(content, multiline).map((record) => record.toString('latin1'));
        const first = recordsIn(content.subarray(0, whole), multiline).map((record) =>
          record.toString('latin1'),
        );
        expect(first).toEqual(all.slice(0, first.length));
        // Only the last record is held back, and a line that may begin another.
        const rest = recordsIn(content.subarray(whole, known), multiline);
        expect(rest.length).toBeLessThanOrEqual(2);
      }),
      { numRuns },
    );
  });

  it('begin with a match in the first 4096 bytes of a line', () => {
    const ends = new MultilineRecords({ ...multiline, start: 'BEGIN|é$' });
    const begins = (line: string): boolean =>
      ends.isStart(Buffer.from(line), 0, Buffer.byteLength(line), true);
    expect(begins(`${'x'.repeat(4091)}BEGIN and more`)).toBe(true);
    expect(begins(`${'x'.repeat(4092)}BEGIN`)).toBe(false);
    // The limit of the searched bytes splits no character.
    expect(begins(`${'x'.repeat(4094)}éé`)).toBe(true);
    expect(begins(`${'x'.repeat(4095)}é`)).toBe(false);
    const broken = Buffer.concat([Buffer.alloc(4091, 0xff), Buffer.from('BEGIN')]);
    expect(ends.isStart(broken, 0, broken.length, false)).toBe(true);
    expect(ends.isStart(Buffer.concat([Buffer.of(0xff), broken]), 0, broken.length + 1, false)).toBe(false);
  });

  it('may each be a JSON object that spans several lines', () => {
    const pretty = agent([{ name: 'a', type: 'int' }, { name: 'b' }], {
      multiline: { ...multiline, start: '^\\{', bytesMax: 1000 },
    });
    const objects = [{ a: 1, b: 'x' }, { a: 2 }].map((object) => JSON.stringify(object, null, 2));
    expect(decodeLines(pretty, `${objects.join('\n')}\n`).rows).toEqual([
      [1n, 'x'],
      [2n, null],
    ]);
  });

  it('are decoded many at once if they have one line each, with longer records between them', () => {
    let content = '';
    for (let n = 0; n < 20_000; n++) content += n % 1000 === 999 ? `10 a ${n}\n  at ${n}\n` : `10 ${n}\n`;
    const plain = agent([{ name: 'n' }, { name: 'text' }], {
      ...file,
      regex: '^(?P<n>[^ ]+) (?s)(?P<text>.*)$',
    });
    const { rows, rejected } = decodeLines(plain, content);
    expect([rows.length, rejected.length]).toEqual([20_000, 0]);
    expect([rows[998], rows[999], rows[1000]]).toEqual([
      ['10', '998'],
      ['10', 'a 999\n  at 999'],
      ['10', '1000'],
    ]);
    expect(rows).toEqual(decodeLines(plain, content, { columnar: false }).rows);
  });

  it('are rejected as a whole, with their position', () => {
    const strict = agent([{ name: 'n' }], { ...file, regex: '^(?P<n>\\d+) ok$' });
    const { rows, rejected } = decodeLines(strict, '10 ok\n11 bad\r\n  at x\n12 ok\n');
    expect(rows).toEqual([['10'], ['12']]);
    expect(rejected).toEqual([{ reason: 'does not match the pattern', line: '11 bad\r\n  at x', start: 6 }]);
  });

  it('end when the builder is full, and continue there', () => {
    const decoder = createRecordDecoder(definition, {
      captures: new Map(),
      timezone: 'UTC',
      written: { byMs: noon },
    });
    const content = Buffer.from('10 a\n  b\n'.repeat(70_000));
    const builder = new BatchBuilder(definition.schema);
    const reached = decoder.decode(content, 0, content.length, builder, () => {});
    expect(reached).toBe(builder.finish().length * 9);
    decoder.decode(content, reached, content.length, builder, () => {});
    expect(reached / 9 + builder.finish().length).toBe(70_000);
  });

  it('do not include a line that is too long', () => {
    const long = `${'x'.repeat(lineBytesMax + 1)}`;
    const { rows, rejected } = decodeLines(definition, `10 a\n${long}\n  b\n11 c\n`);
    expect(rows.map(([, text]) => text)).toEqual(['a', '  b', 'c']);
    expect(rejected).toMatchObject([
      { reason: expect.stringContaining('more than 1048576') as string, start: 5 },
    ]);
  });
});

describe('the explanation of one record', () => {
  const options = { timezone: 'UTC', now: () => noon };

  it('covers all of its lines', () => {
    expect(describeLine(definition, '10 a\r\n  b\n', options)).toMatchObject({
      outcome: 'record',
      continues: false,
      fields: [{ value: '10 ' }, { value: 'a\n  b' }],
      parsed: [{ text: '10 ' }, { text: 'a\n  b' }],
    });
    expect(describeLine(definition, '  b', options)).toMatchObject({ outcome: 'record', continues: true });
  });

  it('is refused for two records, and for several lines without multiline', () => {
    expect(() => describeLine(definition, '10 a\n b\n11 c', options)).toThrow(/more than one record: line 3/);
    const single = agent([{ name: 'n' }], { format: 'plain', regex: '(?P<n>.*)' });
    expect(() => describeLine(single, 'a\nb', options)).toThrow(/more than one line.*multiline/);
  });
});
