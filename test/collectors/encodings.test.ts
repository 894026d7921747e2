import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { caseCount, fc, seed } from '../cases.js';
import type { Encoding, FileInput } from '../../agents/definition/definition.js';
import { lineBytesMax } from '../../engine/core/limits.js';
import { pour } from '../agents/load/archive.js';
import { Readable } from 'node:stream';
import { follow, type FollowedFolder, lineOf, multiline, range, recordOf } from './followed-folder.js';

const numRuns = caseCount(25, 500);

/** Text in an encoding, with a byte order mark where that is asked for. */
function encoded(text: string, encoding: Encoding, isMarked: boolean): Buffer {
  const windows = new Map([...'€„–'].map((character, i) => [character, [0x80, 0x84, 0x96][i]!]));
  const eightBits = (): Buffer =>
    Buffer.from([...text].map((each) => windows.get(each) ?? each.charCodeAt(0)));
  if (encoding === 'latin1' || encoding === 'windows-1252') return eightBits();
  const little = Buffer.from((isMarked ? '\ufeff' : '') + text, 'utf16le');
  return encoding === 'utf-16le' ? little : little.swap16();
}

const charactersOf: Record<Encoding, string[]> = {
  'utf-16le': ['a', 'é', '€', '🦊', '\u0a0a', '\u0a00', '\u000b', '\ud800'],
  'utf-16be': ['a', 'é', '€', '🦊', '\u0a0a', '\u0a00', '\u000b', '\udc00'],
  latin1: ['a', 'é', 'ÿ', '\u0080', '\u009f'],
  'windows-1252': ['a', 'é', 'ÿ', '€', '„', '–'],
};

async function textsOf(followed: FollowedFolder): Promise<string[]> {
  return (await followed.records()).map(({ text }) => text);
}

/** What is kept of rejected lines. */
async function keptOf({ store }: FollowedFolder): Promise<string[]> {
  const kept: string[] = [];
  for (const entry of await store.rejectedFiles())
    for await (const lines of store.rejectedLines(entry))
      kept.push(...lines.map(({ line }) => Buffer.from(line).toString()));
  return kept;
}

const log = fc.constantFrom<Encoding>('utf-16le', 'utf-16be', 'latin1', 'windows-1252').chain((encoding) =>
  fc.record({
    encoding: fc.constant(encoding),
    isMarked: fc.boolean().map((marked) => marked && encoding.startsWith('utf-16')),
    texts: fc.array(
      fc
        .array(fc.constantFrom(...charactersOf[encoding]), { minLength: 1, maxLength: 9 })
        .map((all) => `x${all.join('')}x`),
      {
        minLength: 1,
        maxLength: 6,
      },
    ),
    end: fc.constantFrom('\n', '\r\n'),
    cuts: fc.array(fc.nat(), { maxLength: 6 }),
  }),
);

describe('text that is not UTF-8', () => {
  it(`is the same when it is loaded, and when it is followed, cut at any byte and through crashes (seed ${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(log, async ({ encoding, isMarked, texts, end, cuts }) => {
        const lines = texts.map((text, n) => `2026-11-20T10:00:00Z ${n} ${text}${end}`);
        const bytes = encoded(lines.join(''), encoding, isMarked);
        const expected = texts.map((text) => text.replaceAll(/\p{Surrogate}/gu, '\ufffd'));
        const replacedBytes = texts.join('').match(/\p{Surrogate}/gu)?.length ?? 0;
        const file: Partial<FileInput> = isMarked ? {} : { encoding };
        const followed = await follow({ file });
        const path = followed.path('web.log');
        let from = 0;
        for (const to of [...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length]) {
          appendFileSync(path, bytes.subarray(from, to));
          from = to;
          await followed.collect();
          await followed.crash();
          await followed.start();
        }
        await followed.settle();
        expect(await textsOf(followed)).toEqual(expected);
        renameSync(path, `${path}.1`);
        await followed.settle();
        expect(await textsOf(followed)).toEqual(expected);
        for (const content of [bytes, gzipSync(bytes)]) {
          const loaded = await follow({ file });
          writeFileSync(loaded.path('web.log'), content);
          expect(await loaded.load('web.log')).toMatchObject({ exitCode: 0, rejected: 0, replacedBytes });
          await loaded.settle();
          expect(await textsOf(loaded)).toEqual(expected);
        }
        const piped = await follow({ file });
        const { store, definition } = piped;
        await pour(store, { input: Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]), definition });
        expect(await textsOf(piped)).toEqual(expected);
      }),
      { numRuns, seed },
    );
  });

  it('may have records of several lines, and values of JSON', async () => {
    for (const encoding of ['utf-16le', 'utf-16be', 'latin1'] as const) {
      const followed = await follow({ file: { encoding, multiline } });
      const path = followed.path('web.log');
      for (const n of range(0, 5)) {
        appendFileSync(path, encoded(`${recordOf(n)} é\n`, encoding, false));
        // A pause ends a record as well.
        await (n % 2 === 0 ? followed.collectAll() : followed.collect());
      }
      await followed.collectAll();
      expect(await textsOf(followed)).toEqual(range(0, 5).map((n) => `${recordOf(n)} é`.slice(23)));
      const json = await follow({ file: { format: 'json', encoding, values: { records: [] } } });
      const values = range(0, 4).map((n) => ({ time: '2026-11-20T10:00:00Z', n, text: `é${n}` }));
      writeFileSync(json.path('web.log'), encoded(JSON.stringify(values, null, 1), encoding, false));
      expect(await json.load('web.log')).toMatchObject({ exitCode: 0, rejected: 0 });
      expect(await textsOf(json)).toEqual(['é0', 'é1', 'é2', 'é3']);
    }
  });

  it('may have a line that is too long, behind which reading goes on', async () => {
    for (const encoding of ['utf-16le', 'utf-16be', 'latin1'] as const) {
      const bytes = encoded(
        `${lineOf(1)}\n${(encoding === 'latin1' ? 'éa' : 'é\u010a').repeat(lineBytesMax)}\n${lineOf(2)}\n`,
        encoding,
        false,
      );
      const followed = await follow({ file: { encoding } });
      writeFileSync(followed.path('web.log'), bytes);
      await followed.settle();
      expect(await followed.numbers()).toEqual([1, 2]);
      const loaded = await follow({ file: { encoding } });
      writeFileSync(loaded.path('web.log'), bytes);
      expect(await loaded.load('web.log')).toMatchObject({
        records: 2,
        rejected: 1,
      });
    }
  });

  it(`may be a table, whose header is known wherever it is read on (seed ${seed})`, async () => {
    const columns = { csv: 'time,n,text', w3c: '#Fields: time n text' } as const;
    const form = fc.constantFrom('csv', 'w3c');
    await fc.assert(
      fc.asyncProperty(
        log,
        form,
        fc.nat(),
        async ({ encoding, isMarked, texts, end, cuts }, format, turn) => {
          const [separator, mark] = format === 'csv' ? [',', '"'] : [' ', ''];
          const values = texts.map((text) => `${mark}${text}${mark}`);
          const row = (n: number, value: string): string =>
            [`2026-11-20T10:00:0${n}Z`, String(n), value].join(separator) + end;
          const rows = values.map((value, n) => row(n, value));
          rows.splice(turn % rows.length, 0, columns[format] + end);
          const lines = [columns[format] + end, ...rows, row(9, `x${separator}é${separator}x`)];
          const bytes = encoded(lines.join(''), encoding, isMarked);
          const expected = texts.map((text) => text.replaceAll(/\p{Surrogate}/gu, '\ufffd'));
          const file: Partial<FileInput> = isMarked ? { format } : { format, encoding };
          const followed = await follow({ file });
          let from = 0;
          for (const to of [...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length]) {
            appendFileSync(followed.path('web.log'), bytes.subarray(from, to));
            from = to;
            await followed.collect();
            await followed.crash();
            await followed.start();
          }
          await followed.settle();
          const loaded = await follow({ file });
          writeFileSync(loaded.path('web.log'), bytes);
          expect(await loaded.load('web.log')).toMatchObject({ exitCode: 0, rejected: 1 });
          const rejected = `${columns[format]}\n2026-11-20T10:00:09Z 9 x é x`;
          for (const each of [followed, loaded]) {
            expect(await textsOf(each)).toEqual(expected);
            expect(await keptOf(each)).toEqual([
              rejected.replaceAll(' ', format === 'csv' ? ',' : ' ').replace('#Fields:,', '#Fields: '),
            ]);
          }
        },
      ),
      { numRuns, seed },
    );
  });

  it('is read from its last lines, which end with whole characters', async () => {
    for (const encoding of ['utf-16le', 'utf-16be', 'latin1'] as const) {
      const followed = await follow({ file: { encoding }, limitLines: 2 });
      const text = encoding === 'latin1' ? 'é' : '\u0a0a\u0a00é\u000b';
      const rows = range(0, 5).map((n) => `2026-11-20T10:00:00Z ${n} ${text}\n`);
      const path = followed.path('web.log');
      writeFileSync(path, encoded(rows.slice(0, 4).join(''), encoding, false));
      await followed.collect();
      appendFileSync(path, encoded(rows[4]!, encoding, false));
      await followed.settle();
      expect(await textsOf(followed)).toEqual([text, text, text]);
      expect(followed.collector.status()).toMatchObject({ rejected: 0 });
    }
  });

  it('is read on behind half a character that was its end', async () => {
    const bytes = encoded(`${lineOf(1)}\n${lineOf(2)}\n${lineOf(3)}\n`, 'utf-16le', true);
    const lineBytes = 2 * (lineOf(1).length + 1);
    for (const cut of [2 + lineBytes + 1, 2 + 2 * lineBytes - 1, bytes.length - 1]) {
      const loaded = await follow();
      writeFileSync(loaded.path('web.log'), bytes.subarray(0, cut));
      await loaded.load('web.log');
      writeFileSync(loaded.path('web.log'), bytes);
      expect(await loaded.load('web.log')).toMatchObject({ failed: 0, rejected: 0 });
      expect([cut, await loaded.numbers()]).toEqual([cut, [1, 2, 3]]);
    }
  });

  it('goes on with its next line where a compressed copy was made too early', async () => {
    for (const encoding of ['utf-16le', 'utf-16be'] as const) {
      const followed = await follow({ file: { encoding } });
      const path = followed.path('web.log');
      const text = (to: number): Buffer =>
        encoded(
          range(0, to)
            .map((n) => `${lineOf(n)}\n`)
            .join(''),
          encoding,
          false,
        );
      writeFileSync(path, text(30));
      await followed.settle();
      rmSync(path);
      await followed.settle();
      writeFileSync(`${path}.1.gz`, gzipSync(text(20)));
      await followed.settle();
      // The copy is the beginning of the log; its checkpoint is that of a whole line.
      for (const { path: name, endsInLine } of await followed.store.checkpoints())
        expect([name, endsInLine]).toEqual([name, false]);
      expect(await followed.numbers()).toEqual(range(0, 30));
    }
  });

  it('is refused as UTF-16 only where nothing says that it is', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), encoded(`${lineOf(1)}\n`, 'utf-16le', false));
    expect(await followed.load('web.log')).toMatchObject({ exitCode: 1, files: [{ outcome: 'failed' }] });
  });

  it('is kept as UTF-8 where it is rejected, and becomes records later', async () => {
    const followed = await follow({ file: { encoding: 'utf-16le' } });
    writeFileSync(followed.path('web.log'), encoded(`${lineOf(1)}\nno-é\n`, 'utf-16le', false));
    await followed.settle();
    expect(await keptOf(followed)).toEqual(['no-é']);
  });
});
