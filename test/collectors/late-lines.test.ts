import {
  mkdirSync,
  appendFileSync,
  copyFileSync,
  readFileSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import { zstd } from '../agents/load/compressed.js';
import { changedStatus } from './faulty-files.js';
import { follow, type FollowedFolder, lines, range } from './followed-folder.js';

/** What makes the copy of a rotated log that replaces it: the name and the content of the copy. */
const copies = [
  { by: 'gzip', name: 'web.log.1.gz', pack: (content: Buffer) => gzipSync(content) },
  { by: 'zstd', name: 'web.log.1.zst', pack: (content: Buffer) => zstd(content) },
  { by: 'cp', name: 'web.log.1-20261120', pack: (content: Buffer) => content },
];

/** Content of a few lines, and of more than the bytes by which a source is looked up. */
const counts = [1, 8, 20, 23, 200, 5000];

describe.each(copies)('a line that is written after $by has read the log', ({ name, pack }) => {
  /** A rotated log of `count` lines that is copied; two more lines, which are stored; then the log is removed. */
  async function copiedTooEarly(count: number): Promise<FollowedFolder> {
    const followed = await follow();
    const log = followed.path('web.log');
    writeFileSync(log, lines(0, count));
    await followed.collect();
    renameSync(log, `${log}.1`);
    await followed.collect();
    const copy = pack(readFileSync(`${log}.1`));
    appendFileSync(`${log}.1`, lines(count, count + 2));
    await followed.collect();
    writeFileSync(followed.path(name), copy);
    unlinkSync(`${log}.1`);
    return followed;
  }

  it.each(counts)('does not have the log stored again once it is closed (%d lines)', async (count) => {
    const followed = await copiedTooEarly(count);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, count + 2));
  });

  it.each(counts)('does not have the log stored again after a crash (%d lines)', async (count) => {
    const followed = await copiedTooEarly(count);
    await followed.crash();
    await followed.start();
    await followed.settle();
    await followed.stop();
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, count + 2));
  });
});

it.each(copies)('a load of the copy that $by made too early stores nothing', async ({ name, pack }) => {
  const followed = await follow();
  const log = followed.path('web.log.1');
  writeFileSync(log, lines(0, 30));
  await followed.collect();
  mkdirSync(followed.path('away'));
  writeFileSync(followed.path(`away/${name}`), pack(Buffer.from(lines(0, 20))));
  const summary = await followed.load(`away/${name}`);
  expect(summary).toMatchObject({ records: 0, rejected: 0 });
  expect(await followed.numbers()).toEqual(range(0, 30));
});

describe('a compressed log of which only the beginning was copied', () => {
  async function known(): Promise<FollowedFolder> {
    const followed = await follow();
    const log = followed.path('web.log.1');
    writeFileSync(log, lines(0, 42));
    await followed.collect();
    writeFileSync(`${log}.gz`, gzipSync(lines(0, 40)));
    unlinkSync(log);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 42));
    return followed;
  }

  it('is not decompressed again after a restart', async () => {
    const followed = await known();
    const { checkpoints } = await followed.store.sources();
    const bytes = readFileSync(followed.path('web.log.1.gz')).length;
    expect(checkpoints.filter(({ packedBytes }) => packedBytes === bytes)).toHaveLength(1);
  });

  it('leaves the longer log known, which may return', async () => {
    const followed = await known();
    writeFileSync(followed.path('web.log.2.gz'), gzipSync(lines(0, 44)));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 44));
  });
});

it.each([1, 8, 200])('a compressed log is known in another compression (%d lines)', async (count) => {
  const followed = await follow();
  writeFileSync(followed.path('web.log'), lines(900, 901));
  await followed.collect();
  const path = followed.path('web.log.1');
  writeFileSync(`${path}.gz`, gzipSync(lines(0, count), { level: 1 }));
  await followed.settle();
  // The old file is still there when the new one is read.
  writeFileSync(`${path}.zst`, zstd(lines(0, count)));
  await followed.settle();
  unlinkSync(`${path}.gz`);
  await followed.settle();
  writeFileSync(`${path}.zst`, gzipSync(lines(0, count), { level: 9 }));
  await followed.settle();
  expect(await followed.numbers()).toEqual([...range(0, count), 900]);
});

it('two compressions of a log that was still open are known once it is closed', async () => {
  const followed = await follow();
  const path = followed.path('web.log.1');
  writeFileSync(path, lines(0, 20));
  await followed.settle();
  writeFileSync(`${path}.gz`, gzipSync(lines(0, 20)));
  writeFileSync(`${path}.zst`, zstd(lines(0, 20)));
  await followed.collect();
  unlinkSync(path);
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 20));
});

it('two compressions of a log that was never read are read once', async () => {
  const followed = await follow();
  await followed.collect();
  const path = followed.path('web.log.1');
  writeFileSync(`${path}.gz`, gzipSync(lines(0, 20)));
  writeFileSync(`${path}.zst`, zstd(lines(0, 20)));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 20));
});

it('a copy that was made before the last lines is known after a restart, however short', async () => {
  const followed = await follow();
  const log = followed.path('web.log');
  writeFileSync(log, lines(0, 8));
  await followed.collect();
  copyFileSync(log, `${log}.1`);
  appendFileSync(log, lines(8, 10));
  await followed.collect();
  await followed.stop();
  truncateSync(log);
  await followed.start();
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 10));
});

it('a copy that lacks the last lines is known although a load had stored only its first line', async () => {
  const followed = await follow();
  const log = followed.path('web.log.1');
  writeFileSync(log, lines(0, 1));
  await followed.load('web.log.1');
  appendFileSync(log, lines(1, 3));
  await followed.collect();
  writeFileSync(followed.path('web.log.2'), lines(0, 2));
  unlinkSync(log);
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 3));
});

it('a generation that only begins like a longer one that is gone is read', async () => {
  const banner = `${'='.repeat(1500)}\n`;
  const followed = await follow();
  const log = followed.path('web.log.1');
  writeFileSync(log, `${banner}${lines(0, 60)}`);
  await followed.collect();
  unlinkSync(log);
  await followed.settle();
  writeFileSync(`${log}.gz`, gzipSync(`${banner}${lines(60, 61)}`));
  writeFileSync(followed.path('web.log.2'), `${banner}${lines(61, 63)}`);
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 63));
});

it.each([1, 20, 200])(
  'a copy that lacks the last line is known if it has the number of the log (%d lines)',
  async (count) => {
    const inodes = new Map<string, string>();
    // Without the time of creation, only the content shows that it is another file.
    const files = changedStatus(({ inode }) => ({ inode: inodes.get(inode) ?? inode, bornMs: null }));
    const followed = await follow({ files });
    const log = followed.path('web.log.1');
    writeFileSync(log, lines(0, count));
    await followed.settle();
    const { inode } = await realLogFiles.status(log);
    writeFileSync(followed.path('copy'), gzipSync(readFileSync(log)));
    inodes.set((await realLogFiles.status(followed.path('copy'))).inode, inode);
    appendFileSync(log, lines(count, count + 1));
    await followed.settle();
    await followed.stop();
    unlinkSync(log);
    renameSync(followed.path('copy'), `${log}.gz`);
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, count + 1));
  },
);
