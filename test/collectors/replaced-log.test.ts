import {
  appendFileSync,
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { closeAtEnd } from '../agents/load/temporary.js';
import { follow, type FollowedFolder, lineOf, lines, range, type FollowOptions } from './followed-folder.js';

const warningsOf = ({ log }: FollowedFolder): string[] =>
  log.filter(({ level }) => level === 'warn').map(({ message }) => message);

/** A stored log with this content. */
async function stored(content: string, options: FollowOptions = {}): Promise<FollowedFolder> {
  const followed = await follow({ startMs: Date.UTC(2026, 10, 25), ...options });
  writeFileSync(followed.path('web.log'), content);
  await followed.collect();
  return followed;
}

/** Puts a new file in the place of the log, as rsync and editors do. */
function replace(followed: FollowedFolder, content: string): void {
  writeFileSync(followed.path('next'), content);
  renameSync(followed.path('next'), followed.path('web.log'));
}

const isRunning = [
  { when: 'while the server runs', isDown: false },
  { when: 'while it is down', isDown: true },
];

/** Changes the log. */
async function change(followed: FollowedFolder, isDown: boolean, what: () => void): Promise<void> {
  if (isDown) await followed.stop();
  what();
  if (isDown) await followed.start();
  await followed.settle();
}

describe.each(isRunning)('a log that is replaced by a longer copy of itself $when', ({ isDown }) => {
  it.each([1, 40, 3000])('repeats and loses nothing (%d lines)', async (count) => {
    const followed = await stored(lines(0, count));
    await change(followed, isDown, () => replace(followed, lines(0, count + 1)));
    expect(await followed.numbers()).toEqual(range(0, count + 1));
    appendFileSync(followed.path('web.log'), lines(count + 1, count + 3));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, count + 3));
    expect(warningsOf(followed)).toEqual([]);
  });

  it('is one source, however often it is replaced', async () => {
    const followed = await stored(lines(0, 40));
    for (let count = 41; count < 46; count++)
      await change(followed, isDown, () => replace(followed, lines(0, count)));
    expect(await followed.numbers()).toEqual(range(0, 45));
    const { checkpoints } = await followed.store.sources();
    expect(checkpoints.filter(({ headBytes }) => headBytes > 0)).toHaveLength(1);
  });

  it.each([1, 40])('is one source, also if the copies have nothing new (%d lines)', async (count) => {
    const followed = await stored(lines(0, count));
    const steps = [count, count, count + 1, count + 1];
    await change(followed, isDown, () => {});
    for (const lineCount of steps) {
      if (isDown) await followed.stop();
      replace(followed, lines(0, lineCount));
      if (isDown) await followed.start();
      // The files before it are still open.
      await followed.collectAll();
    }
    expect(await followed.numbers()).toEqual(range(0, count + 1));
  });

  it('is read on in the line in which the copy before it ended', async () => {
    const followed = await stored(`${lines(0, 40)}${lineOf(40).slice(0, 30)}`);
    await change(followed, isDown, () => replace(followed, lines(0, 42)));
    expect(await followed.numbers()).toEqual(range(0, 42));
  });
});

it('lines that both the replaced log and the copy have are stored once', async () => {
  const followed = await stored(lines(0, 40));
  appendFileSync(followed.path('web.log'), lines(40, 50));
  replace(followed, lines(0, 60));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 60));
});

it('lines that both the replaced log and its end have are stored once', async () => {
  const followed = await stored(lines(0, 40));
  appendFileSync(followed.path('web.log'), lines(40, 50));
  replace(followed, lines(20, 60));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 60));
});

it('lines of both are stored once if nothing was stored before', async () => {
  const followed = await stored('');
  appendFileSync(followed.path('web.log'), lines(0, 1));
  replace(followed, lines(0, 2));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 2));
});

it('a record that waits for its end in both is stored once', async () => {
  const file = { multiline: { start: '^2026-', timeoutMs: 20_000, linesMax: 50, bytesMax: 64 * 1024 } };
  const followed = await stored(lines(0, 1), { file });
  replace(followed, lines(0, 2));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 2));
});

it('a record that waits for its end in both is stored once if the copy is loaded', async () => {
  const file = { multiline: { start: '^2026-', timeoutMs: 20_000, linesMax: 50, bytesMax: 64 * 1024 } };
  const followed = await stored(lines(0, 40), { file });
  replace(followed, lines(0, 40));
  await followed.load('web.log');
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 40));
});

describe.each([
  { what: 'stays', rotate: () => {} },
  { what: 'is renamed', rotate: (log: string) => renameSync(log, `${log}.1`) },
  {
    what: 'is compressed',
    rotate: (log: string) => {
      writeFileSync(`${log}.1.gz`, gzipSync(readFileSync(log)));
      unlinkSync(log);
    },
  },
])('lines that were not read before a load stored them from a copy, which then $what,', ({ rotate }) => {
  it.each([
    { readBytes: 30, added: 0 },
    { readBytes: 30, added: 5 },
    { readBytes: 100, added: 0 },
    { readBytes: 100, added: 5 },
  ])('are stored once ($readBytes bytes read before, $added lines more in the copy)', async (which) => {
    const followed = await stored(lines(0, 40).slice(0, which.readBytes));
    const log = followed.path('web.log');
    appendFileSync(log, lines(0, 40).slice(which.readBytes));
    const writer = openSync(log, 'a');
    closeAtEnd(() => Promise.resolve(closeSync(writer)));
    replace(followed, lines(0, 40 + which.added));
    await followed.load('web.log');
    rotate(log);
    await followed.collect();
    // What its program still writes to the replaced log is in no copy.
    writeSync(writer, lines(90, 92));
    await followed.settle();
    expect(await followed.numbers()).toEqual([...range(0, 40 + which.added), 90, 91]);
  });
});

it.each(['settle', 'collectAll'] as const)(
  'a short log that only a load has stored is one log, however often it is replaced (%s)',
  async (wait) => {
    const followed = await follow({ startMs: Date.UTC(2026, 10, 25) });
    writeFileSync(followed.path('web.log'), lines(0, 1));
    await followed.load('web.log');
    for (const count of [1, 1, 2, 2, 3]) {
      // With `settle`, the file before is closed.
      await followed[wait]();
      replace(followed, lines(0, count));
    }
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 3));
  },
);

it('a log that only a load has stored is read on after its beginning was removed', async () => {
  const followed = await follow({ startMs: Date.UTC(2026, 10, 25) });
  writeFileSync(followed.path('web.log'), lines(0, 100));
  await followed.load('web.log');
  await followed.collect();
  replace(followed, lines(50, 110));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 110));
});

it('a line that is completed after the log was renamed is stored, although the new log begins alike', async () => {
  const followed = await stored('');
  const log = followed.path('web.log');
  appendFileSync(log, lines(0, 1).slice(0, 3));
  await followed.collect();
  appendFileSync(log, lines(0, 1).slice(3));
  renameSync(log, `${log}.1`);
  writeFileSync(log, lines(1, 2));
  await followed.settle();
  expect(await followed.numbers()).toEqual([0, 1]);
});

it('lines that were written anew to both, unnoticed, are stored once', async () => {
  const followed = await stored(lines(0, 1));
  writeFileSync(followed.path('web.log'), lines(1, 2));
  replace(followed, lines(1, 2));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 2));
});

it('lines of a copy that is replaced before it could be read are stored once', async () => {
  const followed = await stored(lines(0, 40));
  replace(followed, lines(0, 50));
  await followed.collect();
  writeFileSync(followed.path('db.log'), lines(90, 91));
  // After a commit that failed, everything is identified again: the copy after the log itself.
  followed.disk.setFaults({ failAtOperation: followed.disk.mutations + 1 });
  await expect(followed.collect()).rejects.toMatchObject({ code: 'io' });
  replace(followed, lines(0, 60));
  await followed.settle();
  expect(await followed.numbers()).toEqual([...range(0, 60), 90]);
});

it('lines of both that follow loaded ones are stored once', async () => {
  const followed = await follow();
  writeFileSync(followed.path('web.log'), lines(0, 40));
  await followed.load('web.log');
  await followed.collect();
  appendFileSync(followed.path('web.log'), lines(40, 50));
  replace(followed, lines(0, 60));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 60));
});

it('lines that a program still writes to the replaced log are stored', async () => {
  const followed = await stored(lines(0, 40));
  const writer = openSync(followed.path('web.log'), 'a');
  closeAtEnd(() => Promise.resolve(closeSync(writer)));
  replace(followed, lines(0, 50));
  await followed.collect();
  await followed.collect();
  writeSync(writer, lines(50, 55));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 55));
});

const long = (n: number): string => `${lineOf(n)} ${'x'.repeat(900)}`;
const longLines = (from: number, to: number): string =>
  range(from, to)
    .map((n) => `${long(n)}\n`)
    .join('');

describe.each(isRunning)('a log whose beginning is removed $when', ({ isDown }) => {
  describe.each([
    { how: 'by another file', put: replace },
    {
      how: 'in place',
      put: (followed: FollowedFolder, content: string) => writeFileSync(followed.path('web.log'), content),
    },
  ])('$how', ({ put }) => {
    it.each([
      { content: lines, from: 0, to: 100 },
      { content: lines, from: 0, to: 30_000 },
      { content: longLines, from: 0, to: 100 },
    ])('is read on after the last stored line ($to lines)', async ({ content, from, to }) => {
      const followed = await stored(content(from, to));
      await change(followed, isDown, () => put(followed, content(to - 50, to + 20)));
      expect(await followed.numbers()).toEqual(range(0, to + 20));
      appendFileSync(followed.path('web.log'), content(to + 20, to + 25));
      await followed.settle();
      expect(await followed.numbers()).toEqual(range(0, to + 25));
      await followed.stop();
      await followed.start();
      await followed.settle();
      expect(await followed.numbers()).toEqual(range(0, to + 25));
      expect(warningsOf(followed)).toEqual([]);
    });

    it('is read as a whole, and reported, if the last stored line is gone too', async () => {
      const followed = await stored(lines(0, 100));
      await change(followed, isDown, () => put(followed, `${lines(50, 90)}${lines(100, 110)}`));
      expect(await followed.numbers()).toEqual([...range(0, 110), ...range(50, 90)].sort((a, b) => a - b));
      expect(warningsOf(followed)).toEqual([expect.stringContaining('lines of it may be stored twice')]);
    });

    it('is a new log, about which nothing is said, if all its lines are later', async () => {
      const followed = await stored(lines(0, 100));
      await change(followed, isDown, () => put(followed, lines(100, 130)));
      expect(await followed.numbers()).toEqual(range(0, 130));
      expect(warningsOf(followed)).toEqual([]);
    });
  });
});
