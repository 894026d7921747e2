import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { LogFiles } from '../../agents/collect/logs/log-files.js';
import { caseCount, seed } from '../cases.js';
import { seededRandom } from '../model/random.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { between } from '../model/random.js';
import { changedStatus } from './faulty-files.js';
import { FollowedFolder, lineOf, multiline, recordOf, type FollowOptions } from './followed-folder.js';

type LineOf = (n: number) => string;

const lines = (from: number, to: number, make: LineOf = lineOf): string =>
  Array.from({ length: to - from }, (_, i) => `${make(from + i)}\n`).join('');

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** A file system that knows when files were created: all of them at the same time. */
const withBirths = changedStatus(() => ({ bornMs: 1 }));

/** A stored log of `count` records; then the service and the machine crash, and the log keeps only what `cut` leaves of it. */
async function storedAndCut(
  count: number,
  cut: (path: string) => void,
  { make = lineOf, ...options }: FollowOptions & { readonly make?: LineOf } = {},
): Promise<FollowedFolder> {
  const followed = new FollowedFolder(await temporaryFolder(), { files: withBirths, ...options });
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
  log
    .filter(({ level, message }) => level === 'warn' && !message.startsWith('lines of logs'))
    .map(({ facts, message }) => ({ ...facts, message }));

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

  it('is read again if it is longer, and nothing but its number shows that it is the same file', async () => {
    const followed = await storedAndCut(
      100,
      (path) => {
        truncateSync(path, lines(0, 60).length);
        appendFileSync(path, lines(100, 300));
      },
      { files: changedStatus(() => ({ bornMs: null })) },
    );
    expect(await followed.numbers()).toEqual([...range(0, 60), ...range(0, 300)].sort((a, b) => a - b));
    const message = expect.stringContaining('lines of it may be stored twice') as unknown;
    expect(warningsOf(followed)).toEqual([expect.objectContaining({ message })]);
    await followed.stop();
  });

  it(`loses and repeats nothing wherever it is cut (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const followed = new FollowedFolder(await temporaryFolder(), { files: withBirths });
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

describe('a new log with the number of a removed one, the same long beginning and no later times', () => {
  const banner = `${'='.repeat(1500)}\n`;
  const make = (n: number): string => lineOf(n).replace(/^\S+/, '2026-11-20T10:00:00Z');
  const files = (bornMs: () => number | null): LogFiles =>
    changedStatus(() => ({ inode: '7:7', bornMs: bornMs() }));

  /** A log of `count` lines that another log of `others` lines replaces, under the name `name`. */
  async function replaced(
    others: number,
    {
      births = [1, 2],
      name = 'web.log',
      content = lines(50, 50 + others, make),
    }: { births?: (number | null)[]; name?: string; content?: string } = {},
  ): Promise<FollowedFolder> {
    let [bornMs = null] = births;
    const followed = new FollowedFolder(await temporaryFolder(), { files: files(() => bornMs) });
    await followed.start();
    writeFileSync(followed.path('web.log'), `${banner}${lines(0, 50, make)}`);
    await followed.settle();
    await followed.stop();
    rmSync(followed.path('web.log'));
    writeFileSync(followed.path(name), `${banner}${content}`);
    bornMs = births[1] ?? null;
    await followed.start();
    await followed.settle();
    return followed;
  }

  it.each([1, 10, 49, 51, 200])('is read from its beginning (%d lines)', async (others) => {
    const followed = await replaced(others);
    expect(await followed.numbers()).toEqual(range(0, 50 + others));
    expect(warningsOf(followed)).toEqual([]);
    await followed.stop();
  });

  it.each([1, 10, 49, 51, 200])('is read if no file has a time of creation (%d lines)', async (others) => {
    const followed = await replaced(others, { births: [null, null] });
    expect(await followed.numbers()).toEqual(range(0, 50 + others));
    await followed.stop();
  });

  it.each([
    // Another log that was restored from an old copy, and went on differently.
    { births: [1, 2], name: 'web.log', content: `${lines(0, 40, make)}${lines(100, 105, make)}` },
    // A copy of the removed log's beginning under another name.
    { births: [null, null], name: 'db.log', content: lines(0, 40, make) },
  ])('is read in doubt although many of its lines are stored ($name)', async ({ births, name, content }) => {
    const followed = await replaced(0, { births, name, content });
    const added = content.split('\n').length - 1;
    expect(await followed.numbers()).toHaveLength(50 + added);
    expect(warningsOf(followed)).toEqual([]);
    await followed.stop();
  });

  it('is read if the same file was emptied', async () => {
    const followed = await replaced(10, { births: [1, 1] });
    expect(await followed.numbers()).toEqual(range(0, 60));
    await followed.stop();
  });
});

it('a log that is written anew from its beginning, and is longer then, repeats nothing', async () => {
  const followed = new FollowedFolder(await temporaryFolder(), { files: withBirths });
  await followed.start();
  const path = followed.path('web.log');
  writeFileSync(path, lines(0, 100));
  await followed.settle();
  const longer = lines(0, 130);
  for (const share of [0.2, 0.5, 0.7, 1]) {
    writeFileSync(path, longer.slice(0, longer.length * share));
    await followed.collect();
    followed.pass(1000);
  }
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 130));
  expect(warningsOf(followed)).toEqual([]);
  await followed.stop();
});
