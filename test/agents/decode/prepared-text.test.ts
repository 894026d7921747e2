import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { FileInput } from '../../../agents/definition/definition.js';
import { agent, type Decoded, decodeLines } from './decode-lines.js';
import { csvValue } from './table-model.js';

const numRuns = caseCount(300, 10_000);

function decoded(content: string | Uint8Array, file: Partial<FileInput>): Decoded {
  return decodeLines(
    agent([{ name: 'text' }], { format: 'plain', regex: '^(?s)(?P<text>.*)$', ...file }),
    content,
  );
}

function textsOf(content: string | Uint8Array, file: Partial<FileInput>): unknown[] {
  return decoded(content, file).rows.map(([text]) => text);
}

/** What masks leave of a text, by JavaScript's expressions. */
function masked(text: string, patterns: readonly string[]): string {
  return patterns.reduce((left, pattern) => {
    const hidden = new Set<number>();
    for (const match of left.matchAll(new RegExp(pattern, 'gdu'))) {
      const { indices } = match;
      const groups = indices!.length === 1 ? [indices![0]] : indices!.slice(1);
      for (const group of groups) for (let at = group?.[0] ?? 0; at < (group?.[1] ?? 0); at++) hidden.add(at);
    }
    // Neighbouring ranges are masked each by itself, so the masks are counted out of the comparison.
    return [...left].reduce(
      ({ at, shown }, character) => ({
        at: at + character.length,
        shown: hidden.has(at) ? `${shown}\0` : shown + character,
      }),
      { at: 0, shown: '' },
    ).shown;
  }, text);
}

const withoutMasks = (text: string): string =>
  text.replaceAll(/\0+/g, '***').replaceAll(/(?:\*\*\*)+/g, '***');

describe('masks', () => {
  const patterns = [
    'password=(\\S+)',
    '(?:user|token)=(\\w+);?(\\d*)',
    '\\b\\d{4}\\b',
    '^(\\w+) ',
    'a|(b)',
    '(a(b)?)',
    'x*',
    '[é🦊]+$',
    '(a.*b|a)',
  ];
  const word = fc.constantFrom(
    'password=',
    'user=',
    'token=',
    'a',
    'b',
    'ab',
    '1234',
    '12',
    ' ',
    ';',
    'é',
    '🦊',
    'x',
    'xx',
  );
  const text = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(''));

  it('hide what the groups of their matches hold, or all of it', () => {
    fc.assert(
      fc.property(text, fc.subarray(patterns, { minLength: 1, maxLength: 1 }), (line, mask) => {
        fc.pre(line.trim() !== '');
        expect(textsOf(`${line}\n`, { mask }).map((each) => withoutMasks(String(each)))).toEqual([
          withoutMasks(masked(line, mask)),
        ]);
      }),
      { numRuns },
    );
  });

  it('are applied one after another, and counted', () => {
    const file = agent([{ name: 'text' }], {
      format: 'plain',
      regex: '^(?P<text>.*)$',
      mask: ['password=(\\S+)', '\\d+'],
    });
    const { rows } = decodeLines(file, 'password=a1 x=22\nnothing\n');
    expect(rows).toEqual([['password=*** x=***'], ['nothing']]);
  });

  it('hide the rest of a line for which they would take quadratic time', () => {
    const line = `start ${'a'.repeat(300_000)} end`;
    const [text] = textsOf(line, { mask: ['(a.*b|a)'] });
    expect(text).toMatch(/^st[*]{3}rt [*]+$/);
  });

  it('hide texts of rejected lines and records of several lines too', () => {
    const mask = ['secret\\w*'];
    const { rejected, texts } = decodeLines(
      agent([{ name: 'a' }], { format: 'json', mask }),
      'no secretA\n{"a":"secretB"}\n{"a":"1","b":"secretC"}{"a":"secretD","b":}\n',
    );
    expect(rejected.length).toBe(2);
    expect(texts).toEqual(['no ***', '{"a":"1","b":"***"}{"a":"***","b":}']);
    const values = agent([{ name: 'a' }], { format: 'json', mask, values: { records: ['R'] } });
    const kept = decodeLines(values, '{"x":"secretE"}\n{"secretF":1,"R":[{"a":"secretG"},"secretH"]}');
    expect(kept.rows).toEqual([['***']]);
    expect(kept.texts).toEqual(['{"x":"***"}', ',"***"']);
  });

  it('hide texts of containers, also of those that are rejected', () => {
    const lineOf = (log: string): string =>
      `${JSON.stringify({ log, stream: 'stdout', time: '2026-11-20T10:00:00Z' })}\n`;
    const content = `${lineOf('{"a":"secretA"}\n')}${lineOf('no secretB\n')}no line secretC\n`;
    const format = { format: 'docker', payload: 'json', mask: ['secret\\w*'] } as const;
    const { rows, texts, rejected } = decodeLines(agent([{ name: 'a' }], format), content);
    expect([rows, rejected.length, texts]).toEqual([
      [['***']],
      2,
      [lineOf('no ***\n').trimEnd(), 'no line ***'],
    ]);
    const { rows: others } = decodeLines(agent([{ name: 'a' }], { ...format, otherwise: 'a' }), content);
    expect(others).toEqual([['***'], ['no ***']]);
  });

  it('may meet bytes that are not UTF-8', () => {
    const bytes = Buffer.concat([Buffer.from('a '), Buffer.of(0xff), Buffer.from(' secret\n')]);
    const { rows, replacedBytes } = decoded(bytes, { mask: ['secret'] });
    expect([rows, replacedBytes]).toEqual([[['a \ufffd ***']], 1]);
  });
});

describe('lines', () => {
  it('are stripped of the escape sequences of terminals', () => {
    const sequence = fc.constantFrom(
      '\x1b[0m',
      '\x1b[1;31m',
      '\x1b[?25l',
      '\x1b]0;title\x07',
      '\x1b]8;;http://x\x1b\\',
      '\x1bM',
      '\x1b(B',
      '\x1b[38;2;1;2;3m',
    );
    const piece = fc.oneof(
      fc.constantFrom('text', ' ', 'é', '[', ']', ';', '1m').map((shown) => ({ shown, written: shown })),
      sequence.map((written) => ({ shown: '', written })),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const line = `x${pieces.map(({ written }) => written).join('')}x`;
        expect(textsOf(`${line}\n`, { strip: 'ansi' })).toEqual([
          `x${pieces.map(({ shown }) => shown).join('')}x`,
        ]);
      }),
      { numRuns },
    );
    // Without an end, a sequence takes no text with it, and many take linear time.
    const hostile = `${'\x1b]'.repeat(200_000)}text\x1b`;
    expect(textsOf(hostile, { strip: 'ansi' })).toEqual(['text']);
  });

  it('are trimmed and skipped after that, and the skipped ones are no rejected ones', () => {
    const content = '\x1b[0m  # note \n  text\t \n\n#\n';
    expect(textsOf(content, { strip: 'ansi', trim: true, skip: '^#' })).toEqual(['text']);
    const { rows, rejected } = decoded('#a\nb', { regex: '^(?P<text>b)$', skip: '^#' });
    expect([rows, rejected]).toEqual([[['b']], []]);
  });

  it('count NULs, and may be several records', () => {
    const file = agent([{ name: 'n' }], { format: 'json', trim: true });
    const { rows, nulBytes, rejected } = decodeLines(
      file,
      '\0\0 [{"n":"1"},{"n":"2"}] \n{"n":"3"}{"n":"4"}\n{"n":',
    );
    expect([rows.flat(), nulBytes, rejected.length]).toEqual([['1', '2', '3', '4'], 2, 1]);
  });
});

describe('rows of tables', () => {
  const cell = fc.option(
    fc
      .array(fc.constantFrom('key=', 'S', 'S', ' ', ',', ';', '"', '\n', 'é', 'x'), { maxLength: 8 })
      .map((all) => all.join('')),
  );
  const columns = ['n', 'a', 'b', 'c'];

  it('are masked and skipped, and no value moves to another column', () => {
    const row = fc.tuple(fc.nat(9).map(String), cell, cell, cell);
    const forms = fc.constantFrom<Partial<FileInput>>({ format: 'csv' }, { format: 'csv', separator: ';' });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), forms, (rows, form) => {
        const write = csvValue(form.separator ?? ',');
        const lines = [columns, ...rows].map((each) =>
          each.map((value) => write(value, false)).join(form.separator ?? ','),
        );
        const text = `#S no header\n${lines.join('\n#S, no row\n')}\n`;
        const definition = agent(
          columns.map((name) => ({ name })),
          { ...form, mask: ['key=(\\S+)', 'S'], skip: '^#' },
        );
        const { rows: found, rejected } = decodeLines(definition, text);
        expect(rejected).toEqual([]);
        expect(found.map(([n]) => n)).toEqual(rows.map(([n]) => n));
        for (const [i, each] of found.entries())
          for (const [j, value] of each.entries()) {
            const before = rows[i]![j]!;
            expect([value === null, String(value).includes('S')]).toEqual([before === null, false]);
            if (
              before !== null &&
              !before.includes('S') &&
              !rows[i]!.some((other) => other?.includes('key='))
            )
              expect(value).toBe(before);
          }
      }),
      { numRuns },
    );
  });

  it('are masked where they are rejected, also one that is taken for a header', () => {
    const mask = ['key=(\\w+)'];
    const fields = [{ name: 'a' }, { name: 'b' }];
    for (const [format, separator] of [
      ['csv', ','],
      ['tsv', '\t'],
    ] as const) {
      const content = ['1,key=secret', 'key=secret,z', 'a,b', 'key=secret,x,y', '1,key=secret']
        .join('\n')
        .replaceAll(',', separator);
      const { rows, texts, rejected } = decodeLines(agent(fields, { format, mask }), content);
      expect(rows).toEqual([['1', 'key=***']]);
      expect(texts.map((text) => text.replaceAll(separator, ','))).toEqual([
        '1,key=***',
        'key=***,z',
        'key=***,x,y',
      ]);
      expect(JSON.stringify(rejected.map(({ reason }) => reason))).not.toContain('secret');
    }
    const iis = agent([{ name: 'query' }, { name: 'status' }], { format: 'w3c', mask: ['token=([^&]+)'] });
    const lines = '#Fields: query status\nq=1&token=secret 200\ntoken=secret\n';
    const { rows, texts } = decodeLines(iis, lines);
    expect([rows, texts]).toEqual([[['q=1&token=***', '***']], ['token=***']]);
  });

  it('are stripped, have trimmed values, and may become records although they are none', () => {
    const fields = [{ name: 'a' }, { name: 'b' }];
    const csv = agent(fields, { format: 'csv', strip: 'ansi', trim: true, otherwise: 'b' });
    const { rows, rejected, unreadable } = decodeLines(
      csv,
      ' a ,\x1b[1mb\x1b[0m\n 1 , \x1b[31mx y\x1b[0m \n" 2 ",\t\nno row\n1,2,3\n',
    );
    expect(rejected).toEqual([]);
    expect(rows).toEqual([
      ['1', 'x y'],
      [' 2 ', null],
      [null, 'no row'],
      [null, '1,2,3'],
    ]);
    const other = agent(fields, { format: 'csv', otherwise: 'b' });
    expect([unreadable, decodeLines(other, 'a\nno,row\n').unreadable]).toEqual([[], []]);
    const tsv = agent(fields, { format: 'tsv', trim: true });
    expect(decodeLines(tsv, 'a\tb\n\t x \n \ty\n').rows).toEqual([
      [null, 'x'],
      [null, 'y'],
    ]);
  });
});

describe('lines that are no record of their format', () => {
  it('become records with their text in a part', () => {
    const json = agent([{ name: 'level' }, { name: 'message', source: 'msg' }], {
      format: 'json',
      otherwise: 'msg',
    });
    const lines = [
      'Listening on port 0',
      '{"level":"info","msg":"a"}',
      '{"level":',
      '',
      '{"level":"warn"}x',
      '[1]',
    ];
    const { rows, rejected } = decodeLines(json, lines.join('\n'));
    expect(rejected).toEqual([]);
    expect(rows).toEqual([
      [null, 'Listening on port 0'],
      ['info', 'a'],
      [null, '{"level":'],
      [null, '{"level":"warn"}x'],
      [null, '[1]'],
    ]);
    const plain = agent([{ name: 'n', type: 'int' }, { name: 'rest' }], {
      format: 'plain',
      regex: '^(?P<n>\\d+) ok',
      otherwise: 'rest',
      multiline: { start: '^\\d', timeoutMs: 1, linesMax: 9, bytesMax: 999 },
    });
    expect(decodeLines(plain, '1 ok\n2 bad\n  at x\n').rows).toEqual([
      [1n, null],
      [null, '2 bad\n  at x'],
    ]);
  });
});
