import fc from 'fast-check';
import type { Multiline } from '../../../agents/definition/definition.js';

const line = fc.constantFrom(
  ...['10 a', '11 some text', '12 \u00e9\ud83e\udd8a', '13 '],
  ...[
    '  at x',
    '\tat y of z',
    '',
    '',
    '1',
    '10',
    'no start 10 ',
    'a line that is a good deal longer than all others, and then some',
  ],
);
const ending = fc.constantFrom('\n', '\n', '\n', '\r\n');

/** Lines as programs write them or not, some of which begin records, the last often without a line end. */
export const contentOf: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.array(fc.tuple(line, ending), { maxLength: 60 }),
    fc.constantFrom('', '', '10 last', '  rest'),
    fc.boolean(),
  )
  .map(([lines, last, isDamaged]) => {
    const text = Buffer.from(lines.map(([each, end]) => each + end).join('') + last);
    // An invalid UTF-8 byte in a line that begins or continues a record.
    return isDamaged
      ? Buffer.concat([Buffer.from('10 \xff\n', 'latin1'), text, Buffer.from(' \xfe', 'latin1')])
      : text;
  });

/** The records of content, including line ends, as documented: the naive model. */
export function recordsIn(content: Buffer, { start, linesMax, bytesMax }: Multiline): Buffer[] {
  const lines = content.toString('latin1').match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const records: string[][] = [];
  for (const each of lines) {
    const text = each.replace(/\r?\n?$/, '');
    const current = records.at(-1);
    const bytes = (current?.join('').length ?? 0) + each.replace(/\n$/, '').length;
    const begins = current === undefined || current.length === linesMax || bytes > bytesMax;
    if (begins || new RegExp(start).test(text)) records.push([each]);
    else current.push(each);
  }
  return records.map((each) => Buffer.from(each.join(''), 'latin1'));
}

/** The text of a record: its lines joined, without empty lines at its beginning and end. */
export function joined(record: Buffer): string {
  return record
    .toString()
    .replace(/\r$/, '')
    .replaceAll('\r\n', '\n')
    .replace(/^\n+|\n+$/g, '');
}
