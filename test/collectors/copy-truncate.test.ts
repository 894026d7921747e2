import { appendFileSync, copyFileSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { realLogFiles, type LogFiles, type LogHandle } from '../../agents/collect/logs/log-files.js';
import { follow, lineOf, lines, range } from './followed-folder.js';

describe('copy and truncate', () => {
  it('loses nothing that was copied, and repeats nothing', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 10));
    await followed.collect();
    appendFileSync(path, lines(10, 20));
    copyFileSync(path, `${path}.1`);
    await followed.settle();
    appendFileSync(path, '');
    truncateSync(path);
    appendFileSync(path, lines(20, 25));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 25));
    expect(followed.collector.status()).toMatchObject({ truncations: 1, truncatedBytes: 0 });
  });

  it('repeats nothing if the log is as long again, and waits for the one before it that began alike', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    const banner = `${'='.repeat(1100)}\n`;
    writeFileSync(path, `${banner}${lines(10, 11)}`);
    await followed.collect();
    unlinkSync(path);
    writeFileSync(path, `${banner}${lines(20, 21)}`);
    await followed.collect();
    await followed.collect();
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
    appendFileSync(path, `${banner}${lines(30, 31)}`);
    await followed.settle();
    expect(await followed.numbers()).toEqual([10, 20, 30]);
  });

  it('counts lines that were written after the copy and could not be read', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 10));
    await followed.collect();
    copyFileSync(path, `${path}.1`);
    appendFileSync(path, lines(10, 12));
    await followed.collector.survey();
    truncateSync(path);
    appendFileSync(path, lines(12, 14));
    await followed.settle();
    expect(await followed.numbers()).toEqual([...range(0, 10), 12, 13]);
    expect(followed.collector.status()).toMatchObject({
      truncations: 1,
      truncatedBytes: lines(10, 12).length,
    });
    expect(followed.log).toContainEqual({
      level: 'warn',
      facts: expect.objectContaining({ file: path, unread: lines(10, 12).length }) as object,
      message: 'a log was truncated before all of it was read',
    });
  });

  it('is counted even if nothing was stored yet, until a copy supplies the content', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lineOf(0));
    await followed.collect();
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
    await followed.collect();
    const counts = () => followed.collector.status();
    expect(counts()).toMatchObject({ truncations: 1, truncatedBytes: 0, records: 0 });
    await followed.settle();
    expect(await followed.numbers()).toEqual([0]);
    const cut = `${lineOf(1)} ${'x'.repeat(200)}`;
    appendFileSync(path, cut);
    await followed.collect();
    truncateSync(path);
    appendFileSync(path, lines(2, 4));
    await followed.settle();
    expect(counts()).toMatchObject({ truncations: 2, truncatedBytes: cut.length });
    expect(await followed.numbers()).toEqual([0, 2, 3]);
  });

  it('does not count new content that is already longer when the log is read again', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 10));
    await followed.collect();
    truncateSync(path);
    appendFileSync(path, lines(10, 50));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 50));
    expect(followed.collector.status()).toMatchObject({ truncations: 1, truncatedBytes: 0 });
    // A line that was read and waited for its end is lost.
    const cut = lineOf(50);
    appendFileSync(path, cut);
    await followed.collect();
    truncateSync(path);
    appendFileSync(path, lines(51, 200));
    await followed.settle();
    expect(await followed.numbers()).toEqual([...range(0, 50), ...range(51, 200)]);
    expect(followed.collector.status()).toMatchObject({ truncations: 2, truncatedBytes: cut.length });
  });

  it('does not treat a copy as new that ends before the last read position', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 10));
    await followed.collect();
    copyFileSync(path, `${path}.1`);
    appendFileSync(path, lines(10, 12));
    await followed.collect();
    truncateSync(path);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 12));
  });

  it('is noticed although nothing was written since', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    // So few lines that the log is identified by all of them.
    writeFileSync(path, lines(0, 3));
    await followed.collect();
    truncateSync(path);
    await followed.collect();
    expect(followed.collector.status()).toMatchObject({ truncations: 1, truncatedBytes: 0 });
  });

  it('counts the missing part of a long line without an end that begins as before', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, `${lineOf(0)} ${'x'.repeat(3000)}`);
    await followed.collect();
    truncateSync(path, 2000);
    await followed.collect();
    const unread = lineOf(0).length + 1 + 3000;
    expect(followed.collector.status()).toMatchObject({ truncations: 1, truncatedBytes: unread });
    appendFileSync(path, `\n${lines(1, 2)}`);
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1]);
  });

  it('reduces the count by lines from a copy of the same log only', async () => {
    const followed = await follow();
    const cut = { web: lines(100, 102), db: lines(200, 205) };
    const [web, db] = [followed.path('web.log'), followed.path('db.log')];
    writeFileSync(web, lines(0, 10));
    writeFileSync(db, lines(10, 20));
    await followed.collect();
    appendFileSync(web, cut.web);
    await followed.collector.survey();
    truncateSync(web);
    await followed.collect();
    appendFileSync(db, cut.db);
    copyFileSync(db, `${db}.1`);
    await followed.collector.survey();
    truncateSync(db);
    await followed.settle();
    expect(await followed.numbers()).toEqual([...range(0, 20), ...range(200, 205)]);
    expect(followed.collector.status()).toMatchObject({ truncations: 2, truncatedBytes: cut.web.length });
  });

  it('reduces the previous count if the same lines were cut off before', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    for (let i = 0; i < 2; i++) {
      writeFileSync(path, lines(0, 1));
      await followed.collect();
      if (i === 0) truncateSync(path);
      await followed.collect();
    }
    appendFileSync(path, lines(1, 4));
    copyFileSync(path, `${path}.1`);
    await followed.collector.survey();
    truncateSync(path);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 4));
    expect(followed.collector.status()).toMatchObject({ truncations: 2, truncatedBytes: 0 });
  });

  it('stores read lines first when a log is cut off between two reads', async () => {
    let reads = 0;
    let path = '';
    const open = async (name: string): Promise<LogHandle> => {
      const handle = await realLogFiles.open(name);
      const read: LogHandle['read'] = (...where) => {
        // The first read identifies the file, and the second returns its first piece.
        if (++reads === 3) truncateSync(path);
        return handle.read(...where);
      };
      return { read, status: () => handle.status(), close: () => handle.close() };
    };
    const files: LogFiles = { ...realLogFiles, open };
    const followed = await follow({ files });
    path = followed.path('web.log');
    const text = 'x'.repeat(100_000);
    writeFileSync(path, lines(0, 20).replaceAll('\n', ` ${text}\n`));
    await followed.collect();
    const stored = await followed.numbers();
    expect(stored.length).toBeGreaterThan(5);
    expect(stored).toEqual(range(0, stored.length));
    expect(followed.collector.status()).toMatchObject({ truncations: 1, records: stored.length });
    appendFileSync(path, lines(20, 22));
    await followed.settle();
    expect(await followed.numbers()).toEqual([...stored, 20, 21]);
  });
});

it.each([
  { how: 'copied and truncated', isCopied: true, isDown: false },
  { how: 'copied and truncated while the server is down', isCopied: true, isDown: true },
  { how: 'truncated', isCopied: false, isDown: false },
])('a log that is $how, and so far has only what every log begins with, lost no end', async (how) => {
  const banner = `${'='.repeat(1100)}\n`;
  const followed = await follow();
  const log = followed.path('web.log');
  writeFileSync(log, `${banner}${lines(0, 3)}`);
  await followed.collect();
  if (how.isDown) await followed.stop();
  if (how.isCopied) copyFileSync(log, `${log}.1`);
  const line = `${lineOf(3)}\n`;
  writeFileSync(log, `${banner}${line.slice(0, 3)}`);
  if (how.isDown) await followed.start();
  await followed.settle();
  appendFileSync(log, line.slice(3));
  await followed.settle();
  expect(await followed.numbers()).toEqual(range(0, 4));
});
