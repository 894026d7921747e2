import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { closeAtEnd } from '../agents/load/temporary.js';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import { changedStatus, faultyFiles } from './faulty-files.js';
import { gzip, zstd } from '../agents/load/compressed.js';
import { follow, type FollowedFolder, lineOf, lines, range } from './followed-folder.js';

const hourMs = 3_600_000;

/** The hour of the position of each record, by its number. */
async function hoursOf(followed: FollowedFolder): Promise<Map<number, number>> {
  const records = await followed.records();
  return new Map(records.map(({ n, _cursor }) => [n, parseInt(_cursor.slice(0, 6), 16)]));
}

describe('a log that is created after another was removed', () => {
  /** A log of `count` records that was removed and released before `content` appeared under the name `name`. */
  async function madeAgain(count: number, content: string, name = 'web.log'): Promise<FollowedFolder> {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, count));
    // The new file is created before the other is removed, so that it cannot get the same inode number.
    writeFileSync(followed.path('next'), content);
    await followed.collect();
    unlinkSync(path);
    await followed.settle();
    expect(followed.collector.status().files).toEqual([]);
    renameSync(followed.path('next'), followed.path(name));
    await followed.settle();
    return followed;
  }

  it('is new although it begins with the same few lines', async () => {
    const followed = await madeAgain(1, lines(0, 2));
    expect(await followed.numbers()).toEqual([0, 0, 1]);
  });

  it('continues the removed log if it has the same long beginning', async () => {
    const followed = await madeAgain(100, lines(0, 110));
    expect(await followed.numbers()).toEqual(range(0, 110));
  });

  it('is the removed log if it has the name of its older generation', async () => {
    const followed = await madeAgain(1, lines(0, 2), 'web.log.1');
    expect(await followed.numbers()).toEqual([0, 1]);
  });
});

describe('a log that appears while the service is down', () => {
  it('is new if it begins with the whole content of its older generation', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 1));
    await followed.collect();
    await followed.stop();
    renameSync(path, `${path}.1`);
    writeFileSync(path, lines(0, 2));
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 0, 1]);
  });

  it('is placed among the newest as an older generation, and by its times as a current log', async () => {
    const followed = await follow();
    const nowMs = followed.now();
    const lineAt = (timeMs: number, n: number): string => `${new Date(timeMs).toISOString()} ${n} text\n`;
    writeFileSync(followed.path('web.log'), lineAt(nowMs, 0));
    await followed.collect();
    await followed.stop();
    const lateMs = nowMs - 10 * hourMs;
    writeFileSync(followed.path('web.log.1'), lineAt(lateMs, 1));
    writeFileSync(followed.path('db.log'), lineAt(lateMs, 2));
    await followed.start();
    await followed.collect();
    const hours = await hoursOf(followed);
    expect(hours.get(1)).toBe(hours.get(0));
    expect(hours.get(2)).toBe(Math.floor(lateMs / hourMs));
  });
});

it.each(['db.log.1', 'db.log.1.gz'])(
  '%s of a log that was not followed begins like another log, and does not affect it',
  async (name) => {
    const followed = await follow();
    const web = followed.path('web.log');
    writeFileSync(web, lines(0, 1));
    await followed.collect();
    const content = lines(0, 2);
    writeFileSync(followed.path(name), name.endsWith('.gz') ? gzipSync(content) : content);
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 0, 1]);
    appendFileSync(web, lines(2, 4));
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 0, 1, 2, 3]);
  },
);

it.each(['web.log.1.gz', 'web.log.2'])(
  '%s waits until the generation can be read that it may be a copy of',
  async (name) => {
    let isForbidden = false;
    const files = faultyFiles(({ operation, path }) =>
      isForbidden && operation === 'open' && path.endsWith('web.log.1') ? 'EACCES' : null,
    );
    const followed = await follow({ files });
    const first = followed.path('web.log.1');
    writeFileSync(first, lines(0, 5));
    await followed.settle();
    await followed.stop();
    const content = readFileSync(first);
    writeFileSync(followed.path(name), name.endsWith('.gz') ? gzipSync(content) : content);
    isForbidden = true;
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 5));
    isForbidden = false;
    await followed.settle();
    unlinkSync(first);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 5));
  },
);

describe('a compressed generation', () => {
  it('is not read while it is being written', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), lines(900, 901));
    await followed.collect();
    const content = range(0, 100).map((n) => `${lineOf(n)} ${randomBytes(4000).toString('hex')}\n`);
    const bytes = gzipSync(content.join(''));
    const path = followed.path('web.log.1.gz');
    const pieceBytes = 200_000;
    expect(bytes.length).toBeGreaterThan(pieceBytes);
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      appendFileSync(path, bytes.subarray(from, from + pieceBytes));
      await followed.collect();
      followed.pass(1900);
      await followed.collect();
    }
    await followed.settle();
    expect(followed.log.filter(({ level }) => level !== 'info')).toEqual([]);
    expect(await followed.numbers()).toEqual([...range(0, 100), 900]);
  });

  it('is read if it only has the number, the length and the beginning of a removed one', async () => {
    const banner = `${'='.repeat(2000)}\n`;
    const pack = (n: number): Buffer => gzipSync(`${banner}${lineOf(n)}\n`);
    const others = range(2, 1000).filter((n) => pack(n).length === pack(1).length);
    let bornMs = 1;
    const files = changedStatus(({ inode }) => ({ inode: inode === first ? inode : '7:7', bornMs }));
    let first = '';
    const followed = await follow({ files });
    writeFileSync(followed.path('web.log'), lines(900, 901));
    first = (await realLogFiles.status(followed.path('web.log'))).inode;
    const packed = followed.path('web.log.1.gz');
    writeFileSync(packed, pack(1));
    await followed.settle();
    unlinkSync(packed);
    await followed.stop();
    bornMs = 2;
    writeFileSync(packed, pack(others[0]!));
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual([1, others[0], 900]);
  });

  it.each([
    ['gzip', 'gz', gzip, 100],
    ['gzip', 'gz', gzip, 4000],
    ['zstd', 'zst', zstd, 4000],
  ])(
    'of %s (%s) is read to its end once, however long its writer pauses in between',
    async (_name, ending, pack, textBytes) => {
      const followed = await follow();
      writeFileSync(followed.path('web.log'), lines(9000, 9001));
      await followed.collect();
      const content = range(0, 600).map((n) => `${lineOf(n)} ${randomBytes(textBytes).toString('hex')}\n`);
      const bytes = pack(content.join(''));
      const path = followed.path(`web.log.1.${ending}`);
      // The first piece is shorter than what is needed to decompress the beginning.
      for (const [from, to] of [
        [0, 60],
        [60, 0.5 * bytes.length],
        [0.5 * bytes.length, bytes.length - 4],
        [bytes.length - 4, bytes.length],
      ] as const) {
        appendFileSync(path, bytes.subarray(from, to));
        await followed.collect();
        followed.pass(2500);
        await followed.collect();
        const reads = followed.log.length;
        followed.pass(60_000);
        await followed.collect();
        // As long as it does not change, the same failure is not looked for again.
        expect(followed.log.length).toBe(reads);
      }
      expect(await followed.numbers()).toEqual([...range(0, 600), 9000]);
      expect(followed.log.at(-1)).toMatchObject({
        message: 'a log can be read again',
        facts: { file: path },
      });
    },
  );

  it('adds nothing if its content also exists as another file, compressed or not', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), lines(900, 901));
    const packed = followed.path('web.log.1.gz');
    writeFileSync(packed, gzipSync(lines(0, 100)));
    await followed.settle();
    copyFileSync(packed, followed.path('web.log.2.gz'));
    writeFileSync(followed.path('web.log.3'), gunzipSync(readFileSync(packed)));
    await followed.settle();
    expect(await followed.numbers()).toEqual([...range(0, 100), 900]);
  });
});

it('a file without a name adds nothing once a copy has continued its content', async () => {
  const followed = await follow();
  const web = followed.path('web.log');
  const away = followed.path('away');
  /** Makes a commit fail, after which everything is checked again, the current logs first. */
  const failOnce = async (): Promise<void> => {
    appendFileSync(followed.path('db.log'), lines(900, 901));
    followed.disk.setFaults({ failAtOperation: followed.disk.mutations + 1 });
    await expect(followed.collect()).rejects.toMatchObject({ code: 'io' });
  };
  writeFileSync(web, lines(0, 40));
  const writer = openSync(web, 'a');
  closeAtEnd(() => Promise.resolve(closeSync(writer)));
  await followed.collect();
  renameSync(web, `${web}.1`);
  await followed.collect();
  renameSync(`${web}.1`, away);
  await followed.collect();
  writeSync(writer, lines(40, 42));
  await followed.collect();
  expect(await followed.numbers()).toEqual(range(0, 42));
  await failOnce();
  writeFileSync(followed.path('copy.log'), `${readFileSync(away, 'utf8')}${lines(42, 44)}`);
  await followed.collect();
  expect(await followed.numbers()).toEqual([...range(0, 44), 900]);
  await failOnce();
  await followed.collect();
  expect(await followed.numbers()).toEqual([...range(0, 44), 900, 900]);
});

describe('logs that all begin with the same banner', () => {
  const banner = `${'='.repeat(2000)}\n`;

  it.each([
    { name: 'web.log.1', pack: (content: string) => content },
    { name: 'web.log.1.gz', pack: (content: string) => gzipSync(content) },
  ])('are distinguished by what follows it: $name is read while the log is there', async ({ name, pack }) => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), `${banner}${lines(10, 20)}`);
    await followed.collect();
    writeFileSync(followed.path(name), pack(`${banner}${lines(0, 10)}`));
    for (let i = 0; i < 3; i++) {
      followed.pass(3000);
      await followed.collect();
    }
    expect(await followed.numbers()).toEqual(range(0, 20));
  });

  it.each([
    { name: 'web.log.1', pack: (content: string) => content },
    { name: 'web.log.1.gz', pack: (content: string) => gzipSync(content) },
  ])('do not keep $name waiting while the log has no more than the banner', async ({ name, pack }) => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), banner);
    await followed.collect();
    writeFileSync(followed.path(name), pack(`${banner}${lines(0, 10)}`));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 10));
    appendFileSync(followed.path('web.log'), lines(10, 20));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 20));
  });

  it('are not kept waiting by an older generation that waits', async () => {
    const followed = await follow();
    const log = followed.path('web.log');
    writeFileSync(log, banner);
    writeFileSync(`${log}.1`, banner);
    await followed.settle();
    renameSync(`${log}.1`, `${log}.2`);
    writeFileSync(`${log}.1`, `${banner}${lines(0, 10)}`);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 10));
  });

  it('do not hide a copy of the log that has the number of a removed one', async () => {
    const inodes = new Map<string, string>();
    const followed = await follow({
      files: changedStatus(({ inode }) => ({
        inode: inodes.get(inode) ?? inode,
        bornMs: null,
      })),
    });
    const log = followed.path('web.log.1');
    writeFileSync(`${log}.gz`, gzipSync(`${banner}${lines(0, 3)}`));
    await followed.settle();
    const { inode } = await realLogFiles.status(`${log}.gz`);
    // Both files exist before the first one is removed, so that neither gets its number.
    writeFileSync(log, `${banner}${lines(3, 4)}`);
    writeFileSync(followed.path('next'), gzipSync(`${banner}${lines(3, 4)}`));
    inodes.set((await realLogFiles.status(followed.path('next'))).inode, inode);
    unlinkSync(`${log}.gz`);
    await followed.settle();
    renameSync(followed.path('next'), `${log}.gz`);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 4));
  });
});

it('a log with the number of a removed one of another name does not hide what is stored of that', async () => {
  const inodes = new Map<string, string>();
  const followed = await follow({
    files: changedStatus(({ inode }) => ({ inode: inodes.get(inode) ?? inode })),
  });
  const db = followed.path('db.log');
  writeFileSync(db, lines(0, 1));
  const { inode } = await realLogFiles.status(db);
  await followed.load('db.log');
  // The copy exists before the log is removed, so that it cannot get the same number.
  writeFileSync(followed.path('next'), lines(0, 1));
  renameSync(followed.path('next'), db);
  writeFileSync(followed.path('web.log'), lines(1, 2));
  inodes.set((await realLogFiles.status(followed.path('web.log'))).inode, inode);
  await followed.settle();
  expect(await followed.numbers()).toEqual([0, 1]);
});

it.each([
  { name: 'web.log.1.gz', pack: (content: Buffer) => gzipSync(content) },
  { name: 'web.log.2', pack: (content: Buffer) => content },
])('a copy ($name) that has the number of a log that was loaded adds nothing', async ({ name, pack }) => {
  const inodes = new Map<string, string>();
  const followed = await follow({
    files: changedStatus(({ inode }) => ({ inode: inodes.get(inode) ?? inode })),
  });
  const log = followed.path('web.log');
  writeFileSync(log, lines(0, 1));
  const { inode } = await realLogFiles.status(log);
  await followed.load('web.log');
  const content = Buffer.from(lines(0, 2));
  // All files exist before the first one is removed, so that none gets its number.
  for (const [to, text] of [
    ['web.log.1', content],
    ['copy', pack(content)],
    ['next', ''],
  ] as const)
    writeFileSync(followed.path(to), text);
  inodes.set((await realLogFiles.status(followed.path('copy'))).inode, inode);
  renameSync(followed.path('next'), log);
  await followed.collect();
  expect(await followed.numbers()).toEqual([0, 1]);
  renameSync(followed.path('copy'), followed.path(name));
  await followed.settle();
  unlinkSync(followed.path('web.log.1'));
  await followed.settle();
  expect(await followed.numbers()).toEqual([0, 1]);
});
