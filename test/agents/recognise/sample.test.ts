import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { linesOf, readSample, sampleBytes, sampleLinesMax } from '../../../agents/recognise/trial.js';

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
      'begins with a line of 2097152 bytes: it is not a text log',
    );
    await expect(readSample([folder])).rejects.toThrow('is a folder');
    const empty = join(folder, 'empty.log');
    await writeFile(empty, '');
    expect(await readSample([empty])).toEqual({ pieces: [], isWhole: true });
  });
});
