import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { caseCount, fc, seed } from '../cases.js';
import { lineBytesMax } from '../../engine/core/limits.js';
import { follow, type FollowedFolder, range } from './followed-folder.js';

const values = { format: 'json', values: { records: [] } } as const;
const cloudTrail = { format: 'json', values: { records: ['Records'] } } as const;

const time = '2026-11-20T10:00:00Z';
const recordOf = (n: number, text = `}" ],{\\ ${n}`): object => ({ time, n, text });

/** Values one after another, some over lines, and some in arrays. */
const content = fc
  .array(fc.tuple(fc.constantFrom(0, 1, 4), fc.constantFrom(0, 2), fc.constantFrom('', '\n', '\r\n')), {
    minLength: 1,
    maxLength: 8,
  })
  .map((parts) => {
    let n = 0;
    const texts = parts.map(([elements, by, end]) => {
      const next = elements === 0 ? recordOf(n++) : range(0, elements).map(() => recordOf(n++));
      return `${JSON.stringify(next, null, by)}${end}`;
    });
    return { bytes: Buffer.from(texts.join('')), count: n };
  });

async function numbers(followed: FollowedFolder): Promise<number[]> {
  return (await followed.records()).map(({ n }) => n);
}

describe('values of JSON', () => {
  it(`are the same records when a file is loaded, and when it is followed as it grows, through crashes (seed ${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.array(fc.nat(), { maxLength: 6 }), async ({ bytes, count }, cuts) => {
        const expected = range(0, count);
        const followed = await follow({ file: values });
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
        expect(await numbers(followed)).toEqual(expected);
        renameSync(path, `${path}.1`);
        await followed.settle();
        expect(followed.collector.status()).toMatchObject({ rejected: 0 });
        expect(await numbers(followed)).toEqual(expected);
        for (const whole of [bytes, gzipSync(bytes)]) {
          const loaded = await follow({ file: values });
          writeFileSync(loaded.path('web.log'), whole);
          expect(await loaded.load('web.log')).toMatchObject({ exitCode: 0, rejected: 0 });
          await loaded.settle();
          expect(await numbers(loaded)).toEqual(expected);
        }
      }),
      { numRuns: caseCount(20, 500), seed },
    );
  });

  it('may lie on one line that is far longer than a record, of which one is too long', async () => {
    const count = 60_000;
    const long = JSON.stringify(recordOf(-1, '}]" '.repeat(lineBytesMax / 2)));
    const records = range(0, count).map((n) => JSON.stringify(recordOf(n)));
    const first = records.slice(0, 30_000);
    const text = `{"a":{"Records":[1]},"Records":[${[...first, long, ...records.slice(30_000)].join(',')}],"b":"]}"}`;
    const bytes = Buffer.from(`${text}{"Records":[${JSON.stringify(recordOf(count))}]}`);
    expect(bytes.length).toBeGreaterThan(6 * lineBytesMax);
    for (const door of ['load', 'gzip', 'follow', 'follow gzip']) {
      const followed = await follow({ file: cloudTrail });
      const path = followed.path(door === 'follow gzip' ? 'web.log.gz' : 'web.log');
      writeFileSync(path, door.includes('gzip') ? gzipSync(bytes) : bytes);
      if (!door.startsWith('follow'))
        expect(await followed.load('web.log')).toMatchObject({ exitCode: 0, rejected: 1 });
      await followed.settle();
      if (door === 'follow') appendFileSync(path, `{"Records":[${JSON.stringify(recordOf(count + 1))}`);
      await followed.settle();
      const found = await numbers(followed);
      expect(found.length).toBe(door === 'follow' ? count + 2 : count + 1);
      expect(found).toEqual(range(0, found.length));
      const kept: string[] = [];
      for (const entry of await followed.store.rejectedFiles())
        for await (const lines of followed.store.rejectedLines(entry))
          kept.push(...lines.map(({ reason }) => reason));
      expect(kept).toEqual([expect.stringContaining(`the line has ${long.length}`) as string]);
    }
  });
});
