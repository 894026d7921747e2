import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recognise } from '../../../agents/recognise/recognise.js';
import { recordsOf, settings } from './recognised.js';
import { linesOf, readSample, sampleBytes, sampleLinesMax } from '../../../agents/recognise/log-sample.js';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-sample-'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Lines of 100 bytes, which contain their number. */
const lines = (count: number): string =>
  Array.from({ length: count }, (_, i) => `${String(i).padEnd(99, '.')}\n`).join('');

describe('a sample', () => {
  it('is all of a small file, compressed or not', async () => {
    const path = join(folder, 'small.log');
    await writeFile(path, lines(30));
    await writeFile(`${path}.gz`, gzipSync(lines(30)));
    for (const file of [path, `${path}.gz`]) {
      const sample = await readSample([file]);
      expect(sample.isWhole).toBe(true);
      expect(Buffer.concat(sample.pieces.map(({ bytes }) => bytes)).toString()).toBe(lines(30));
    }
  });

  it('is the beginning and the end of a large file, in whole lines', async () => {
    const path = join(folder, 'large.log');
    const text = lines(20_000);
    await writeFile(path, text);
    await appendFile(path, 'no end yet');
    const { pieces, isWhole } = await readSample([path]);
    expect(isWhole).toBe(false);
    for (const { bytes } of pieces) expect(bytes.length).toBeLessThanOrEqual(sampleBytes);
    const texts = pieces.map(({ bytes }) => Buffer.from(bytes).toString());
    expect(text.startsWith(texts[0]!)).toBe(true);
    expect(`${text}no end yet`.endsWith(texts[1]!)).toBe(true);
    for (const each of texts) expect(each).toMatch(/^\d+\.+\n/);
    expect(linesOf({ pieces, isWhole }).length).toBe(sampleLinesMax);
  });

  it('is only the beginning of a compressed file', async () => {
    const path = join(folder, 'large.log.gz');
    await writeFile(path, gzipSync(lines(100_000)));
    const { pieces, isWhole } = await readSample([path]);
    expect(isWhole).toBe(false);
    expect(pieces.length).toBe(1);
    expect(pieces[0]!.bytes.length).toBeLessThanOrEqual(sampleBytes);
  });

  it('is refused for a file that is not a log', async () => {
    const path = join(folder, 'long.log');
    await writeFile(path, 'x'.repeat(2 * 1024 * 1024));
    await expect(readSample([path])).rejects.toThrow(
      'begins with a line of more than 1048576 bytes: it is not a text log',
    );
    await expect(readSample([folder])).rejects.toThrow('is a folder');
    await writeFile(path, `[${'x'.repeat(2 * 1024 * 1024)}`);
    expect(recognise(await readSample([path]), settings)?.candidate.isLastResort).toBe(true);
    const empty = join(folder, 'empty.log');
    await writeFile(empty, '');
    expect(await readSample([empty])).toEqual({ pieces: [], isWhole: true });
  });

  it('begins behind a hole', async () => {
    const path = join(folder, 'hole.log');
    await writeFile(path, Buffer.concat([Buffer.alloc(2 * 1024 * 1024), Buffer.from(lines(5000))]));
    const { pieces } = await readSample([path]);
    expect(Buffer.from(pieces.at(-1)!.bytes).toString().endsWith(lines(5000).slice(-1000))).toBe(true);
  });
});

describe('the encoding of a sample', () => {
  const line = (i: number): string => `2026-11-17 10:00:00 INFO Größe ${i}: 5 €, „gut“ 𝄞`;
  const text = (count: number): string => Array.from({ length: count }, (_, i) => `${line(i)}\r\n`).join('');
  const wide = (count: number): Buffer => Buffer.from(text(count), 'utf16le');
  const western = (count: number): Buffer =>
    Buffer.from(
      text(count)
        .replaceAll(' 𝄞', '')
        .replaceAll('€', '\x80')
        .replaceAll('„', '\x84')
        .replaceAll('“', '\x93'),
      'latin1',
    );
  const marked = (mark: number[], bytes: Buffer): Buffer => Buffer.concat([Buffer.from(mark), bytes]);

  it.each<[name: string, encoding: string | undefined, bytes: (count: number) => Buffer]>([
    ['utf-8', undefined, (count) => Buffer.from(text(count))],
    ['utf-8 with a mark', undefined, (count) => marked([0xef, 0xbb, 0xbf], Buffer.from(text(count)))],
    ['utf-16le with a mark', 'utf-16le', (count) => marked([0xff, 0xfe], wide(count))],
    ['utf-16be with a mark', 'utf-16be', (count) => marked([0xfe, 0xff], wide(count).swap16())],
    ['utf-16le without a mark', 'utf-16le', wide],
    ['utf-16be without a mark', 'utf-16be', (count) => wide(count).swap16()],
    ['windows-1252', 'windows-1252', western],
  ])('is told by its bytes: %s', async (name, encoding, bytes) => {
    for (const count of [20, 12_000]) {
      const path = join(folder, `${name} ${count}.log`);
      await writeFile(path, bytes(count));
      const sample = await readSample([path]);
      const trial = recognise(sample, settings)!;
      expect([trial.definition.file?.encoding, trial.unmatchedLines, trial.replacedBytes]).toEqual([
        encoding,
        0,
        0,
      ]);
      const expected = line(0).slice(25);
      expect(recordsOf(trial)[0]).toEqual({
        time: '2026-11-17T10:00:00.000Z',
        level: 'INFO',
        message: encoding === 'windows-1252' ? expected.replace(' 𝄞', '') : expected,
      });
      const texts = linesOf(sample).map((each) => each.text);
      expect(texts.filter((each) => !each.startsWith('2026-11-17 10:00:00 INFO '))).toEqual([]);
    }
  });

  it('is UTF-8 also if a few bytes of it are broken, which are counted', async () => {
    const path = join(folder, 'broken.log');
    await writeFile(path, Buffer.from(text(20)).fill(0xff, 25, 26));
    const trial = recognise(await readSample([path]), settings)!;
    expect([trial.definition.file?.encoding, trial.replacedBytes]).toEqual([undefined, 1]);
  });

  it('is written for a table, too', async () => {
    const path = join(folder, 'table.csv');
    await writeFile(path, Buffer.from('\ufeffDatum;Name;Wert\r\n28.11.2026 05:00:00;Zoë;3,5\r\n', 'utf16le'));
    const { candidate, definition } = recognise(await readSample([path]), settings)!;
    expect([candidate.format, definition.file?.encoding]).toEqual(['csv', 'utf-16le']);
  });
});

describe('a sample of JSON that has no line end', () => {
  const value = (i: number): object => ({
    eventTime: '2026-11-28T05:00:00Z',
    eventVersion: '1.08',
    n: i,
    text: '}]"'.repeat(99),
  });
  const values = Array.from({ length: 5000 }, (_, i) => value(i));

  it.each<[name: string, records: string[] | undefined, text: string]>([
    ['an array', [], JSON.stringify(values)],
    ['an array over lines', [], JSON.stringify(values, null, 1)],
    ['records', ['Records'], JSON.stringify({ Records: values })],
    [
      'a long first line',
      undefined,
      values
        .map((each, i) => JSON.stringify({ ...each, text: 'x'.repeat(i === 0 ? 500_000 : 1) }))
        .join('\n'),
    ],
  ])('is read up to a whole value: %s', async (name, records, text) => {
    const path = join(folder, `${name}.json`);
    await writeFile(path, text);
    const trial = recognise(await readSample([path]), settings)!;
    expect(trial.definition.file?.values?.records).toEqual(records);
    expect([trial.unmatchedLines, trial.unreadableValues, trial.untimed]).toEqual([0, 0, 0]);
    expect(recordsOf(trial)[1]).toMatchObject({
      time: '2026-11-28T05:00:00.000Z',
      event_version: '1.08',
      n: 1,
    });
  });
});
