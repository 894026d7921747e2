import { appendFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { caseCount, fc, seed } from '../cases.js';
import { contentOf, joined, recordsIn } from '../agents/decode/multiline-model.js';
import { follow, type FollowedFolder, lineOf, multiline, recordOf } from './followed-folder.js';

const numRuns = caseCount(25, 500);

async function texts(followed: FollowedFolder): Promise<string[]> {
  return (await followed.records()).map(({ text }) => text);
}

/** An agent that turns any text into records. */
const lax = {
  regex: '(?s)^(?P<text>.*)$',
  multiline: { start: '^\\d\\d ', timeoutMs: 1000, linesMax: 5, bytesMax: 60 },
} as const;

describe('records of several lines', () => {
  it(`are the same when a file is loaded, plain or compressed, and when it is followed as it grows (seed ${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(contentOf, fc.array(fc.nat(), { maxLength: 6 }), async (content, cuts) => {
        const expected = recordsIn(content, lax.multiline).map(joined);
        const filled = expected.filter((text) => text !== '');
        fc.pre(filled.length > 0);
        const places = cuts.map((cut) => cut % content.length).sort((a, b) => a - b);
        const followed = await follow({ file: lax });
        const path = followed.path('web.log');
        let from = 0;
        for (const [i, to] of [...places, content.length].entries()) {
          appendFileSync(path, content.subarray(from, to));
          from = to;
          await followed.collect();
          if (i % 2 === 0) continue;
          await followed.crash();
          await followed.start();
        }
        renameSync(path, `${path}.1`);
        await followed.settle();
        expect(await texts(followed)).toEqual(filled);
        for (const bytes of [content, gzipSync(content)]) {
          const loaded = await follow({ file: lax });
          writeFileSync(loaded.path('web.log'), bytes);
          expect(await loaded.load('web.log')).toMatchObject({ exitCode: 0 });
          expect(await texts(loaded)).toEqual(filled);
          await loaded.settle();
          expect(await texts(loaded)).toEqual(filled);
        }
      }),
      { numRuns, seed },
    );
  });

  it('wait for the next record, or for a pause', async () => {
    const followed = await follow({ file: { multiline } });
    const path = followed.path('web.log');
    writeFileSync(path, `${recordOf(3)}\n${lineOf(4)}\n`);
    await followed.collect();
    expect(await followed.numbers()).toEqual([3]);
    expect(followed.collector.recordDueInMs).toBeGreaterThan(0);
    appendFileSync(path, '  at more\n');
    followed.pass(900);
    await followed.collect();
    followed.pass(900);
    await followed.collect();
    expect(await followed.numbers()).toEqual([3]);
    followed.pass(100);
    expect(followed.collector.recordDueInMs).toBeLessThanOrEqual(0);
    await followed.collect();
    expect(await texts(followed)).toEqual([recordOf(3).slice(23), `${lineOf(4)}\n  at more`.slice(23)]);
    expect(followed.collector.recordDueInMs).toBe(Infinity);
  });

  it('are never split at a line that is being written', async () => {
    const followed = await follow({ file: { multiline } });
    const path = followed.path('web.log');
    writeFileSync(path, `${lineOf(1)}\n  at `);
    await followed.settle();
    expect(await followed.numbers()).toEqual([]);
    appendFileSync(path, 'x\n');
    await followed.collectAll();
    expect(await texts(followed)).toEqual([`${lineOf(1)}\n  at x`.slice(23)]);
  });

  it('rely on the clock, also when it is put back', async () => {
    const followed = await follow({ file: { multiline } });
    writeFileSync(followed.path('web.log'), `${lineOf(1)}\n`);
    await followed.collect();
    followed.pass(-3_600_000);
    await followed.collect();
    expect(await followed.numbers()).toEqual([1]);
  });

  it('end at their limits, and lines before the first record are kept', async () => {
    const followed = await follow({ file: { multiline: { ...multiline, linesMax: 3 } } });
    const path = followed.path('web.log');
    writeFileSync(path, `no start\n  at all\n${lineOf(1)}\n${'  at x\n'.repeat(6)}${lineOf(2)}\n`);
    await followed.collectAll();
    expect(await texts(followed)).toEqual([`${lineOf(1)}\n  at x\n  at x`.slice(23), lineOf(2).slice(23)]);
    expect(followed.collector.status()).toMatchObject({ records: 2, rejected: 3 });
    truncateSync(path);
    appendFileSync(path, `${lineOf(3)}\n`);
    await followed.collectAll();
    await followed.collectAll();
    expect(await followed.numbers()).toEqual([1, 2, 3]);
  });
});
