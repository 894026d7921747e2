import {
  appendFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { lineBytesMax } from '../../engine/core/limits.js';
import { gzip, zstd } from '../agents/load/compressed.js';
import { closeAtEnd, temporaryFolder } from '../agents/load/temporary.js';
import { follow, FollowedFolder, lineOf, lines, range } from './followed-folder.js';

function roleOf(followed: FollowedFolder, path: string): string | undefined {
  return followed.collector.status().files.find((file) => file.path === path)?.role;
}

describe('lines', () => {
  it('that are rejected without room to store them are counted, and that is logged', async () => {
    const followed = await follow({ rejectedBytesMax: 1000 });
    writeFileSync(followed.path('web.log'), `${lines(0, 1)}${'x\n'.repeat(100)}`);
    await followed.collect();
    const { linesRejected, bytesRejected } = await followed.store.stats();
    expect(bytesRejected).toBeLessThanOrEqual(1000);
    expect(linesRejected).toBeGreaterThan(2);
    const notKept = 100 - linesRejected;
    expect(followed.collector.status()).toMatchObject({ records: 1, rejected: 100, notKept });
    const told = followed.log.filter(({ message }) => message.includes('not kept'));
    expect(told).toMatchObject([{ level: 'warn', facts: { agent: 'app', rejected: 100, notKept } }]);
    appendFileSync(followed.path('web.log'), `${lines(1, 2)}x\n`);
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1]);
    expect(await followed.store.verify()).toMatchObject({ damages: [], records: 2 });
  });

  it('are read again after an interrupted commit', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), lines(0, 3));
    followed.collector.abandon();
    await expect(followed.collect()).rejects.toMatchObject({ code: 'cancelled' });
    expect(await followed.numbers()).toEqual([]);
    await followed.stop();
    await followed.start();
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1, 2]);
  });

  it('have the fields of the file name, and are stored once', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), lines(0, 3));
    writeFileSync(followed.path('db.log'), lines(3, 5));
    writeFileSync(followed.path('other.txt'), lines(5, 6));
    await followed.collect();
    await followed.collect();
    expect((await followed.records()).map(({ n, host }) => `${host} ${n}`).sort()).toEqual([
      'db 3',
      'db 4',
      'web 0',
      'web 1',
      'web 2',
    ]);
  });

  it('wait for their end, and are stored without one once the file is gone and unchanged for a while', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, `${lines(0, 1)}${lineOf(1)}`);
    await followed.settle();
    expect(await followed.numbers()).toEqual([0]);
    renameSync(path, followed.path('web.log.1'));
    await followed.collect();
    expect(await followed.numbers()).toEqual([0]);
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 1]);
    appendFileSync(followed.path('web.log.1'), ` that goes on\n${lines(2, 3)}`);
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 1, 2]);
    expect(followed.collector.status()).toMatchObject({ records: 3, rejected: 1 });
  });

  it('that are rejected are kept, also after a crash', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), `${lines(0, 1)}no record\n`);
    await followed.collect();
    for (let crash = 0; crash < 2; crash++) {
      await followed.crash();
      await followed.start();
      expect(await followed.store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
      const [kept] = (await followed.disk.list('app/rejected')).map((name) => `app/rejected/${name}`);
      const file = await followed.disk.openRead(kept!);
      expect(Buffer.from(await file.read(0, await file.size())).toString()).toContain('no record');
      await file.close();
    }
  });

  it('may end with CRLF, begin with a byte order mark, and contain NUL', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), `\uFEFF${lineOf(0)}\r\n${lineOf(1)}\0x\r\n\r\n`);
    await followed.collect();
    expect((await followed.records()).map(({ text }) => text)).toEqual([
      'some text of line 0',
      'some text of line 1\0x',
    ]);
    expect(followed.collector.status().rejected).toBe(0);
  });

  it.each([lineBytesMax - 40, lineBytesMax, lineBytesMax + 1, 5 * lineBytesMax])(
    'of %i more bytes are stored up to the maximum length, and kept with the reason beyond it',
    async (length) => {
      const followed = await follow();
      const path = followed.path('web.log');
      const long = `${lineOf(1)} ${'x'.repeat(length)}`;
      writeFileSync(path, `${lines(0, 1)}${long}`);
      await followed.collect();
      expect(await followed.numbers()).toEqual([0]);
      appendFileSync(path, `\n${lines(2, 4)}`);
      await followed.collect();
      const isTooLong = long.length > lineBytesMax;
      expect(await followed.numbers()).toEqual(isTooLong ? [0, 2, 3] : [0, 1, 2, 3]);
      expect(followed.collector.status().rejected).toBe(isTooLong ? 1 : 0);
      await followed.crash();
      await followed.start();
      appendFileSync(path, lines(4, 5));
      await followed.collect();
      expect(await followed.numbers()).toEqual(isTooLong ? [0, 2, 3, 4] : [0, 1, 2, 3, 4]);
    },
  );

  it('fill several commits if they exceed one', async () => {
    const followed = await follow();
    const count = 70_000;
    writeFileSync(followed.path('web.log'), lines(0, count));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, count));
    expect(followed.collector.status().commits).toBeGreaterThan(1);
  });

  it('are the same whether or not their log is the only one that grows', async () => {
    const timeBytes = '2026-11-20T00:00:00Z '.length;
    // Of all lengths, so that pieces end at many places of a line, and some lines are longer than a piece.
    const texts = Array.from({ length: 400 }, (_, n) => {
      const length = n % 100 === 50 ? lineBytesMax - 100 + n : (n * 7919) % (n % 9 === 0 ? 150_000 : 3000);
      return `${lineOf(n)} ${String.fromCharCode(97 + (n % 26)).repeat(length)}`;
    });
    const content = texts.map((text, n) => `${text}${n % 5 === 0 ? '\r' : ''}\n`).join('');
    const whole = texts.filter((text) => text.length <= lineBytesMax);
    expect(whole.length).toBeLessThan(texts.length);
    for (const names of [['web.log'], ['web.log', 'db.log']]) {
      const followed = await follow();
      for (const name of names) writeFileSync(followed.path(name), content.slice(0, 5_000_000));
      await followed.collect();
      for (const name of names) appendFileSync(followed.path(name), content.slice(5_000_000));
      await followed.collect();
      const records = (await followed.records()).filter(({ host }) => host === 'web');
      const found = records.map(({ n, text }) => `${n} ${text}`);
      expect(found.map((text) => text.length)).toEqual(whole.map((text) => text.length - timeBytes));
      expect(found.every((text, i) => whole[i]!.endsWith(text))).toBe(true);
      expect(followed.collector.status().rejected).toBe(names.length * (texts.length - whole.length));
    }
  });

  it('whose time cannot be read are placed with the line before them in their file', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), `2026-11-01T00:00:00Z 1 old\n`);
    writeFileSync(followed.path('db.log'), `2026-11-20T00:00:00Z 2 new\n`);
    await followed.collect();
    appendFileSync(followed.path('web.log'), `? 3 after the old\n`);
    appendFileSync(followed.path('db.log'), `? 4 after the new\n`);
    await followed.collect();
    const partitions = new Map((await followed.records()).map(({ n, _cursor }) => [n, _cursor.slice(0, 6)]));
    expect(partitions.get(4)).toBe(partitions.get(2));
    expect(partitions.get(3)! <= partitions.get(4)!).toBe(true);
  });
});

describe('files', () => {
  it('take turns if they grow by more than a commit holds', async () => {
    const followed = await follow();
    const names = [...'abcdefghijklmnopqrst'].map((letter) => `${letter}.log`);
    const text = 'x'.repeat(64 * 1024);
    const gain = Array.from({ length: 8 }, (_, n) => `${lineOf(n)} ${text}\n`).join('');
    // A commit holds 4 MiB of the 10 MiB that they have grown by.
    for (let i = 0; i < 9; i++) {
      for (const name of names) appendFileSync(followed.path(name), gain);
      await followed.collector.survey();
      expect(await followed.round()).toBe('more');
    }
    const unread = followed.collector.status().files.filter(({ offset }) => offset === 0);
    expect(unread.map(({ path }) => path)).toEqual([]);
  });

  it('leave room for the others although one of them fills every commit', async () => {
    const followed = await follow();
    const gain = Array.from({ length: 80 }, (_, n) => `${lineOf(n)} ${'x'.repeat(64 * 1024)}\n`).join('');
    for (const name of ['a.log', 'c.log']) writeFileSync(followed.path(name), `${lineOf(1)}\n`);
    writeFileSync(followed.path('b.log'), gain);
    for (let i = 0; i < 3; i++) {
      await followed.collector.survey();
      expect(await followed.round()).toBe('more');
      appendFileSync(followed.path('b.log'), gain);
    }
    const unread = followed.collector.status().files.filter(({ offset }) => offset === 0);
    expect(unread.map(({ path }) => path)).toEqual([]);
  });

  it('with the same beginning are distinguished', async () => {
    const followed = await follow();
    const banner = lines(0, 1);
    for (const name of ['web', 'db', 'mail']) writeFileSync(followed.path(`${name}.log`), banner);
    await followed.collect();
    await followed.stop();
    await followed.start();
    appendFileSync(followed.path('db.log'), lines(1, 2));
    await followed.collect();
    await followed.crash();
    await followed.start();
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 0, 0, 1]);
  });

  it('that are created with the same first line as a removed one are new', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 1));
    // Without another file, the new one would get the inode number of the old one.
    writeFileSync(followed.path('web.log.tmp'), '');
    await followed.collect();
    unlinkSync(path);
    await followed.collect();
    writeFileSync(path, lines(0, 2));
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 0, 1]);
  });

  it('are read to their end under the old name, and through their handle once they have none', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 2));
    await followed.collect();
    linkSync(path, followed.path('kept'));
    unlinkSync(path);
    appendFileSync(followed.path('kept'), lines(2, 4));
    writeFileSync(path, lines(4, 6));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 6));
  });

  it('are followed through a symbolic link that changes its target', async () => {
    const followed = await follow();
    const folder = await temporaryFolder();
    writeFileSync(join(folder, 'a'), lines(0, 2));
    writeFileSync(join(folder, 'b'), lines(2, 4));
    const link = followed.path('web.log');
    symlinkSync(join(folder, 'a'), link);
    await followed.collect();
    appendFileSync(join(folder, 'a'), lines(4, 6));
    rmSync(link);
    symlinkSync(join(folder, 'b'), link);
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 6));
    expect(followed.collector.hasLinks).toBe(true);
  });

  it('are ignored and named once if they are in the data folder, through any link', async () => {
    const dataFolder = await temporaryFolder();
    const rejected = join(dataFolder, 'app/rejected');
    mkdirSync(rejected, { recursive: true });
    writeFileSync(join(rejected, 'a.jsonl'), lines(10, 12));
    const followed = await follow({ dataFolder });
    writeFileSync(followed.path('web.log'), lines(0, 2));
    symlinkSync(join(rejected, 'a.jsonl'), followed.path('own.log'));
    await followed.collect();
    appendFileSync(followed.path('web.log'), lines(2, 3));
    appendFileSync(join(rejected, 'a.jsonl'), lines(12, 13));
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1, 2]);
    const told = (): string[] =>
      followed.log.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(told()).toEqual([expect.stringContaining('own.log is inside the data folder')]);
    // The folder itself may become such a link while it is followed.
    rmSync(followed.directory, { recursive: true });
    symlinkSync(rejected, followed.directory);
    await expect(followed.collector.survey()).rejects.toThrow('is inside the data folder');
  });

  it('that are not regular files are ignored and named once, and block nothing', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), lines(0, 2));
    expect(spawnSync('mkfifo', [followed.path('pipe.log')]).status).toBe(0);
    mkdirSync(followed.path('folder.log'));
    symlinkSync('/dev/zero', followed.path('device.log'));
    const server = createServer();
    await new Promise<void>((done) => server.listen(followed.path('socket.log'), done));
    closeAtEnd(() => new Promise<void>((done) => void server.close(() => done())));
    await followed.collect();
    // A pipe that replaces a followed log is ignored too.
    rmSync(followed.path('web.log'));
    expect(spawnSync('mkfifo', [followed.path('web.log')]).status).toBe(0);
    writeFileSync(followed.path('db.log'), lines(2, 4));
    await followed.collect();
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1, 2, 3]);
    const named = followed.log
      .filter(({ message }) => message.includes('is skipped: it is a folder'))
      .map(({ facts }) => String(facts['file']).replace(/^.*\//, ''));
    expect(named.sort()).toEqual(['device.log', 'folder.log', 'pipe.log', 'socket.log', 'web.log']);
  });

  it('that are older generations when following starts are ignored; later ones are read', async () => {
    const followed = new FollowedFolder(await temporaryFolder());
    const old = followed.path('web.log.2.gz');
    writeFileSync(old, gzipSync(lines(100, 110)));
    followed.pass(60_000);
    await followed.start();
    closeAtEnd(() => followed.stop());
    writeFileSync(followed.path('web.log'), lines(0, 3));
    await followed.settle();
    await followed.stop();
    appendFileSync(followed.path('web.log'), lines(3, 5));
    renameSync(followed.path('web.log'), followed.path('web.log.1'));
    writeFileSync(followed.path('web.log-20261121.gz'), gzipSync(lines(5, 9)));
    writeFileSync(followed.path('web.log'), lines(9, 11));
    await followed.start();
    followed.pass(-60_000);
    await followed.settle();
    const records = await followed.records();
    expect(records.map(({ n }) => n).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 9, 10]);
  });

  it.each([
    ['gzip', 'gz', gzip],
    ['zstd', 'zst', zstd],
  ])(
    'that are compressed with %s are not unpacked again after a restart, unless they have grown',
    async (_name, ending, pack) => {
      const followed = await follow();
      const packed = followed.path(`web.log.1.${ending}`);
      writeFileSync(followed.path('web.log'), lines(900, 901));
      // Long enough that its beginning can be read without its end.
      let content = '';
      for (let n = 0; n < 300; n++) content += `${lineOf(n)} ${randomBytes(4000).toString('hex')}\n`;
      writeFileSync(packed, pack(content));
      await followed.settle();
      await followed.stop();
      // Reading it now detects the damage.
      const bytes = readFileSync(packed);
      const damaged = Buffer.from(bytes);
      damaged.fill(0xff, bytes.length - 40, bytes.length - 20);
      writeFileSync(packed, damaged);
      followed.log.length = 0;
      await followed.start();
      await followed.settle();
      expect(followed.log.filter(({ level }) => level !== 'info')).toEqual([]);
      expect(roleOf(followed, packed)).toBe('done');
      writeFileSync(packed, Buffer.concat([bytes, pack(lines(300, 302))]));
      await followed.settle();
      expect(await followed.numbers()).toEqual([...range(0, 302), 900]);
    },
  );

  it('are forgotten long after they were removed, and not before, nor while the folder is missing', async () => {
    const followed = await follow();
    const log = followed.path('web.log');
    const path = followed.path('web.log.1');
    const away = followed.path('elsewhere');
    const known = async (): Promise<string[]> =>
      (await followed.store.checkpoints()).filter(({ headBytes }) => headBytes > 0).map((each) => each.path);
    const days = async (count: number): Promise<void> => {
      followed.pass(count * 24 * 3_600_000);
      await followed.collect();
      await followed.collect();
    };
    writeFileSync(path, lines(0, 5));
    writeFileSync(log, lines(5, 6));
    await followed.settle();
    await days(100);
    expect((await known()).sort()).toEqual([log, path]);
    renameSync(path, away);
    renameSync(log, `${away}2`);
    await followed.settle();
    for (let i = 0; i < 2; i++) await days(2);
    expect((await known()).sort()).toEqual([log, path]);
    renameSync(`${away}2`, log);
    await followed.settle();
    renameSync(away, path);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 6));
    renameSync(path, away);
    await followed.settle();
    await days(0.9);
    expect((await known()).sort()).toEqual([log, path]);
    await days(0.2);
    expect(await known()).toEqual([log]);
    await followed.crash();
    await followed.start();
    expect(await known()).toEqual([log]);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 6));
  });

  it('are recognised after they were compressed, whether or not the service was running', async () => {
    const followed = await follow();
    const first = followed.path('web.log.1');
    writeFileSync(followed.path('web.log'), lines(0, 300));
    await followed.collect();
    renameSync(followed.path('web.log'), first);
    appendFileSync(first, lines(300, 310));
    writeFileSync(`${first}.gz`, gzipSync(readFileSync(first)));
    unlinkSync(first);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 310));
    await followed.stop();
    renameSync(`${first}.gz`, followed.path('web.log.2.gz'));
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 310));
    expect(followed.collector.status().bytes).toBe(0);
  });

  it('supply only their last lines if that is configured, and everything that is written later', async () => {
    const followed = new FollowedFolder(await temporaryFolder(), { limitLines: 3 });
    writeFileSync(followed.path('web.log'), `${lines(0, 5000)}2026`);
    await followed.start();
    closeAtEnd(() => followed.stop());
    await followed.collect();
    expect(await followed.numbers()).toEqual([4997, 4998, 4999]);
    writeFileSync(followed.path('db.log'), lines(6000, 6010));
    await followed.collect();
    await followed.stop();
    await followed.start();
    await followed.collect();
    expect(await followed.numbers()).toEqual([4997, 4998, 4999, ...range(6000, 6010)]);
  });

  it('that are empty, cut off or unreadable at first supply everything that is written later, whatever is configured', async () => {
    const followed = new FollowedFolder(await temporaryFolder(), { limitLines: 3 });
    for (const name of ['empty.log', 'short.log', 'cut.log']) writeFileSync(followed.path(name), '');
    writeFileSync(followed.path('cut.log'), lines(0, 500));
    writeFileSync(followed.path('short.log'), `${lines(1000, 1010)}${lineOf(1010)}`);
    await followed.start();
    closeAtEnd(() => followed.stop());
    await followed.collector.survey();
    appendFileSync(followed.path('short.log'), `\n${lines(1011, 1050)}`);
    await followed.collect();
    const before = [497, 498, 499, ...range(1007, 1050)];
    expect(await followed.numbers()).toEqual(before);
    appendFileSync(followed.path('empty.log'), lines(2000, 2050));
    writeFileSync(followed.path('cut.log'), lines(3000, 3050));
    await followed.collect();
    await followed.collect();
    expect(await followed.numbers()).toEqual([...before, ...range(2000, 2050), ...range(3000, 3050)]);
  });

  it('in a missing folder are followed once it exists', async () => {
    const followed = await follow();
    rmSync(followed.directory, { recursive: true });
    await followed.collect();
    mkdirSync(followed.directory);
    writeFileSync(followed.path('web.log'), lines(0, 2));
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1]);
  });
});
