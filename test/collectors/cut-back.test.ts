import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { caseCount, seed } from '../cases.js';
import { seededRandom } from '../model/random.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { between } from '../model/random.js';
import { FollowedFolder, lineOf, multiline, recordOf, type FollowOptions } from './followed-folder.js';

type LineOf = (n: number) => string;

const lines = (from: number, to: number, make: LineOf = lineOf): string =>
  Array.from({ length: to - from }, (_, i) => `${make(from + i)}\n`).join('');

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** A stored log of `count` records; then the service and the machine crash, and the log keeps only what `cut` leaves of it. */
async function storedAndCut(
  count: number,
  cut: (path: string) => void,
  { make = lineOf, ...options }: FollowOptions & { readonly make?: LineOf } = {},
): Promise<FollowedFolder> {
  const followed = new FollowedFolder(await temporaryFolder(), options);
  await followed.start();
  const path = followed.path('web.log');
  writeFileSync(path, lines(0, count, make));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, count));
  await followed.stop();
  cut(path);
  await followed.start();
  await followed.settle();
  return followed;
}

const warningsOf = ({ log }: FollowedFolder): readonly unknown[] =>
  log.filter(({ level }) => level === 'warn').map(({ facts, message }) => ({ ...facts, message }));

describe('a log that has lost stored lines at its end', () => {
  it('is reported with its positions, and read on from its new lines', async () => {
    const left = lines(0, 150).length;
    const followed = await storedAndCut(200, (path) => {
      truncateSync(path, left);
      appendFileSync(path, lines(200, 210));
    });
    expect(await followed.numbers()).toEqual(range(0, 210));
    const path = followed.path('web.log');
    const facts = { file: path, bytes: readFileSync(path).length, stored: lines(0, 200).length, from: left };
    expect(warningsOf(followed)).toEqual([expect.objectContaining(facts)]);
    appendFileSync(path, lines(210, 220));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 220));
    await followed.stop();
    // From now on the loss is known, and not reported again.
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 220));
    expect(warningsOf(followed)).toHaveLength(1);
    await followed.stop();
  });

  it('is recognised also if it has become longer since', async () => {
    const followed = await storedAndCut(100, (path) => {
      truncateSync(path, lines(0, 60).length);
      appendFileSync(path, lines(100, 300));
    });
    expect(await followed.numbers()).toEqual(range(0, 300));
    expect(warningsOf(followed)).toHaveLength(1);
    await followed.stop();
  });

  it.each([
    // Nothing shows which record these bytes belong to, so they are read together with the text written after them.
    { bytes: 10, rejected: 0 },
    // These bytes belong to a stored record, so the text after them is the rest of its line.
    { bytes: 30, rejected: 1 },
  ])('keeps a line that was written after the first $bytes bytes of another', async ({ bytes, rejected }) => {
    const followed = await storedAndCut(100, (path) => truncateSync(path, lines(0, 60).length + bytes));
    expect(await followed.numbers()).toEqual(range(0, 100));
    appendFileSync(followed.path('web.log'), lines(100, 105));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 105).filter((n) => rejected === 0 || n !== 100));
    expect((await followed.store.stats()).linesRejected).toBe(rejected);
    await followed.stop();
  });

  it('is read on at its end if no time shows which lines are new', async () => {
    const file = { regex: '^(?P<when>\\S+) (?P<n>\\S+) (?P<text>.*)$' };
    const followed = new FollowedFolder(await temporaryFolder(), { file });
    const path = followed.path('web.log');
    await followed.start();
    writeFileSync(path, lines(0, 100));
    await followed.settle();
    await followed.stop();
    truncateSync(path, lines(0, 60).length);
    await followed.start();
    await followed.settle();
    appendFileSync(path, lines(100, 110));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 110));
    expect(warningsOf(followed)).toHaveLength(1);
    await followed.stop();
  });

  it('repeats nothing that has the time of the last stored record', async () => {
    const make = (n: number): string => lineOf(n).replace(/^\S+/, '2026-11-20T10:00:00Z');
    const followed = await storedAndCut(100, (path) => truncateSync(path, lines(0, 60, make).length), {
      make,
    });
    expect(await followed.numbers()).toEqual(range(0, 100));
    appendFileSync(followed.path('web.log'), lines(100, 105));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 105));
    expect(warningsOf(followed)).toHaveLength(1);
    await followed.stop();
  });

  it('continues with a whole record of several lines', async () => {
    const followed = await storedAndCut(
      100,
      (path) => {
        truncateSync(path, lines(0, 63, recordOf).length);
        appendFileSync(path, lines(100, 110, recordOf));
      },
      { make: recordOf, file: { multiline } },
    );
    expect(await followed.numbers()).toEqual(range(0, 110));
    expect((await followed.store.stats()).linesRejected).toBe(0);
    await followed.stop();
  });

  it('is not assumed if only the beginning of the log is the same', async () => {
    const banner = `${'='.repeat(2000)}\n`;
    const followed = await storedAndCut(100, (path) => writeFileSync(path, `${banner}${lines(100, 120)}`), {
      make: (n) => (n === 0 ? `${banner}${lineOf(0)}` : lineOf(n)),
    });
    expect(await followed.numbers()).toEqual(range(0, 120));
    expect(warningsOf(followed)).toEqual([]);
    await followed.stop();
  });

  it(`loses and repeats nothing wherever it is cut (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const followed = new FollowedFolder(await temporaryFolder());
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 40));
    let written = 40;
    await followed.start();
    for (let i = 0; i < caseCount(12, 200); i++) {
      await followed.settle();
      await followed.stop();
      const bytes = readFileSync(path);
      // At least the bytes that identify the log are left.
      const from = between(random, Math.min(1100, bytes.length - 1), bytes.length);
      truncateSync(path, bytes.lastIndexOf(10, from) + 1);
      const added = between(random, 0, 60);
      appendFileSync(path, lines(written, written + added));
      written += added;
      await followed.start();
    }
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, written));
    await followed.stop();
  });
});
