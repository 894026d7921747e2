import {
  appendFileSync,
  copyFileSync,
  openSync,
  closeSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Collection } from '../../agents/collect/collection.js';
import { silentLog } from '../../agents/collect/logs/collect-log.js';
import { realLogFiles, type Allocation, type LogFiles } from '../../agents/collect/logs/log-files.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { follow, FollowedFolder, lineOf, lines, multiline, range } from './followed-folder.js';

const giga = 2 ** 30;
const tera = 2 ** 40;

/** Adds a hole to the end of a file. */
function addHole(path: string, bytes: number): void {
  truncateSync(path, statSync(path).size + bytes);
}

/** Writes text into a file, whose size does not change. */
function fillIn(path: string, position: number, text: string): void {
  const handle = openSync(path, 'r+');
  writeSync(handle, text, position);
  closeSync(handle);
}

/**
 * The real files, of which the blocks are known that have data, whatever the file system tells: those with the given ranges
 * of bytes. Counts their reads.
 */
function filesWithData(
  data: () => readonly (readonly [from: number, to: number])[],
): LogFiles & { reads: number } {
  const blockBytes = 4096;
  const counted = {
    ...realLogFiles,
    reads: 0,
    open: async (path: string) => {
      const handle = await realLogFiles.open(path);
      const read: typeof handle.read = (...where) => {
        counted.reads++;
        return handle.read(...where);
      };
      const allocation = async (): Promise<Allocation> => {
        const blocks = new Set<number>();
        for (const [from, to] of data())
          for (let at = from; at < to; at++) blocks.add(Math.floor(at / blockBytes));
        const { sizeBytes } = await handle.status();
        return { sizeBytes, allocatedBytes: blocks.size * blockBytes, blockBytes };
      };
      return { read, allocation, status: () => handle.status(), close: () => handle.close() };
    },
  };
  return counted;
}

/**
 * The real files as those of a file system that does not tell its holes, and counts of their reads. All of a large file but
 * its beginning and its end is `filler`, so that a test need not wait for a disk.
 */
function slowFiles(filler: number): LogFiles & { reads: number } {
  const counted = {
    ...realLogFiles,
    reads: 0,
    open: async (path: string) => {
      const handle = await realLogFiles.open(path);
      const read: typeof handle.read = async (bytes, at, length, position) => {
        counted.reads++;
        const { sizeBytes } = await handle.status();
        const [from, to] = [4096, sizeBytes - 4096];
        if (position < from || position + length > to) {
          const read = await handle.read(bytes, at, length, position);
          for (let i = 0; i < read; i++)
            if (position + i >= from && position + i < to) bytes[at + i] = filler;
          return read;
        }
        bytes.fill(filler, at, at + length);
        return length;
      };
      return { read, status: () => handle.status(), close: () => handle.close() };
    },
  };
  return counted;
}

describe('a hole of NULs in a log', () => {
  it.each([
    [1, 0],
    [200, 0],
    [200, 5],
    [3_000_000, 0],
    [3_000_000, 5],
    [20 * giga, 0],
    [20 * giga, 5],
    [tera, 0],
    [tera, 5],
  ])('of %i bytes behind %i lines is left out and counted', async (holeBytes, count) => {
    const before = lines(0, count).length;
    let data: [number, number][] = [[0, before]];
    const files = filesWithData(() => data);
    const followed = await follow({ files });
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, count));
    await followed.collect();
    addHole(path, holeBytes);
    await followed.collect();
    data = [...data, [before + holeBytes, before + holeBytes + lines(count, 12).length]];
    appendFileSync(path, lines(count, 12));
    await followed.collect();
    expect(files.reads).toBeLessThan(60);
    const texts = range(0, 12).map((n) => `some text of line ${n}`);
    expect((await followed.records()).map(({ text }) => text)).toEqual(texts);
    expect(followed.collector.status()).toMatchObject({ nulBytes: holeBytes, rejected: 0, lagBytes: 0 });
    const told = followed.log.filter(({ message }) => message.includes('NUL bytes'));
    expect(told).toMatchObject([{ level: 'warn', facts: { nulBytes: holeBytes } }]);
    await followed.crash();
    await followed.start();
    appendFileSync(path, lines(12, 14));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 14));
    expect(followed.collector.status().nulBytes).toBe(0);
  });

  it('is not searched to its other end for the last lines', async () => {
    const files = slowFiles(0);
    const followed = await follow({ files, limitLines: 20 });
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 2));
    addHole(path, tera);
    appendFileSync(path, lines(2, 4));
    await followed.collector.survey();
    expect(await followed.round()).toBe('more');
    expect(files.reads).toBeLessThan(5000);
    expect(await followed.numbers()).toEqual([0, 1]);
  });

  it('does not hide lines between it and another one', async () => {
    const data: [number, number][] = [[0, lines(0, 2).length]];
    const followed = await follow({ files: filesWithData(() => data) });
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 2));
    for (let n = 2; n < 6; n++) {
      addHole(path, 70_000_000);
      data.push([statSync(path).size, statSync(path).size + lines(n, n + 1).length]);
      appendFileSync(path, lines(n, n + 1));
    }
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 6));
    expect(followed.collector.status().nulBytes).toBe(4 * 70_000_000);
  });

  it('that blocks were allocated in meanwhile is read', async () => {
    const before = lines(0, 2).length;
    let calls = 0;
    // Each time another block has data, as where a program writes in between.
    const files = filesWithData(() => [[0, before + 4096 * calls++]]);
    const followed = await follow({ files });
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 2));
    addHole(path, 300_000_000);
    appendFileSync(path, lines(2, 4));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 4));
    expect(files.reads).toBeGreaterThan(280);
  });

  it('ends a line that was being written, and the next line is whole', async () => {
    const data: [number, number][] = [];
    const followed = await follow({ files: filesWithData(() => data) });
    const path = followed.path('web.log');
    const add = (text: string): void => {
      appendFileSync(path, text);
      data.push([statSync(path).size - text.length, statSync(path).size]);
    };
    for (const holeBytes of [3_000_000, tera]) {
      add(lineOf(7).slice(0, 30));
      addHole(path, holeBytes);
      add(lines(8, 9));
      await followed.collect();
    }
    expect((await followed.records()).map(({ text }) => text)).toEqual([
      'some te',
      'some text of line 8',
      'some te',
      'some text of line 8',
    ]);
  });

  it.each([200, 3_000_000, tera])(
    'of %i bytes at the end waits, since a program may write into what it has allocated',
    async (holeBytes) => {
      let position = lines(0, 2).length;
      const followed = await follow({ files: filesWithData(() => [[0, position]]) });
      const path = followed.path('web.log');
      writeFileSync(path, lines(0, 2));
      addHole(path, holeBytes);
      for (let n = 2; n < 5; n++) {
        await followed.settle();
        expect(followed.collector.status().lagBytes).toBe(statSync(path).size - position);
        fillIn(path, position, lines(n, n + 1));
        position += lines(n, n + 1).length;
      }
      await followed.settle();
      expect(await followed.numbers()).toEqual(range(0, 5));
      truncateSync(path, position);
      await followed.settle();
      expect(await followed.numbers()).toEqual(range(0, 5));
      expect(followed.collector.status()).toMatchObject({ nulBytes: 0, lagBytes: 0, truncations: 0 });
    },
  );

  it('is known by the blocks of the file where the file system has as many as there is data', async () => {
    const path = join(await temporaryFolder(), 'web.log');
    writeFileSync(path, lines(0, 2));
    addHole(path, giga);
    const handle = await realLogFiles.open(path);
    const allocation = (await handle.allocation?.()) ?? null;
    await handle.close();
    if (allocation === null) return;
    const { sizeBytes, allocatedBytes, blockBytes } = allocation;
    expect(sizeBytes).toBe(lines(0, 2).length + giga);
    expect(allocatedBytes).toBeGreaterThan(0);
    expect(allocatedBytes).toBeLessThan(giga / 100);
    expect(allocatedBytes % blockBytes).toBe(0);
  });

  it.each([200, 3_000_000])(
    'of %i bytes is the same when the log is loaded, plain or compressed',
    async (bytes) => {
      const hole = '\0'.repeat(bytes);
      for (const file of [{}, { multiline }]) {
        const followed = await follow({ file });
        const content = `${hole}${lines(0, 3)}${hole}\ufeff${lines(3, 4)}${lineOf(4)}${hole}${lines(5, 7)}`;
        writeFileSync(followed.path('elsewhere'), content);
        writeFileSync(followed.path('elsewhere.gz'), gzipSync(content));
        copyFileSync(followed.path('elsewhere'), followed.path('web.log'));
        await followed.collectAll();
        const expected = (await followed.records()).map(({ text }) => text);
        // A short run inside a line is part of it.
        if (bytes === 200) expect(expected.length).toBe(6);
        else expect(expected).toEqual(range(0, 7).map((n) => `some text of line ${n}`));
        for (const name of ['elsewhere', 'elsewhere.gz']) {
          const loading = await follow({ file });
          writeFileSync(loading.path(name), readFileSync(followed.path(name)));
          expect(await loading.load(name)).toMatchObject({
            rejected: 0,
            nulBytes: (bytes === 200 ? 2 : 3) * bytes,
          });
          expect((await loading.records()).map(({ text }) => text)).toEqual(expected);
        }
      }
    },
  );
});

describe('a line of any length', () => {
  it.each([
    ['a hole that the file system does not tell', 0],
    ['a line without an end', 0x78],
  ])('gives up its turn, keeps its progress, and shows its lag: %s', async (_what, filler) => {
    const files = slowFiles(filler);
    const followed = await follow({ files });
    const path = followed.path('web.log');
    writeFileSync(path, filler === 0 ? '' : '2026-11-20T10:00:00Z 7 ');
    const longBytes = 0.75 * giga;
    addHole(path, longBytes);
    appendFileSync(path, `${filler === 0 ? '' : '\n'}${lines(1, 2)}`);
    await followed.collector.survey();
    let rounds = 0;
    let mostReads = 0;
    for (let round = 'more'; round === 'more'; rounds++) {
      appendFileSync(followed.path('db.log'), lines(100 + rounds, 101 + rounds));
      await followed.collector.survey();
      const before = files.reads;
      round = await followed.round();
      mostReads = Math.max(mostReads, files.reads - before);
      // The other log has its turn in each of the rounds.
      expect((await followed.numbers()).at(-1)).toBe(100 + rounds);
      const { offset, lagBytes } = followed.collector.status().files.find((file) => file.path === path)!;
      expect(offset + lagBytes).toBe(statSync(path).size);
    }
    expect(rounds).toBeGreaterThan(10);
    expect(mostReads).toBeLessThan(100);
    // All of it is read, and no part again and again.
    expect(files.reads).toBeGreaterThan(longBytes / 2 ** 20);
    expect(files.reads).toBeLessThan(2 * (longBytes / 2 ** 20));
    await followed.collect();
    expect((await followed.numbers())[0]).toBe(1);
    expect(followed.collector.status()).toMatchObject({ rejected: filler === 0 ? 0 : 1, lagBytes: 0 });
  });

  it('in a compressed log gives up its turn too', async () => {
    const followed = await follow();
    writeFileSync(followed.path('web.log'), lines(900, 901));
    const long = Buffer.alloc(110_000_000, 0x78);
    const content = Buffer.concat([Buffer.from(lines(0, 2)), long, Buffer.from(`\n${lines(3, 4)}`)]);
    writeFileSync(followed.path('web.log.1.gz'), gzipSync(content, { level: 1 }));
    await followed.collector.survey();
    await followed.round();
    followed.pass(3000);
    let rounds = 0;
    for (let round = 'more'; round === 'more'; rounds++) {
      appendFileSync(followed.path('db.log'), lines(1000 + rounds, 1001 + rounds));
      await followed.collector.survey();
      round = await followed.round();
      expect((await followed.numbers()).at(-1)).toBe(1000 + rounds);
    }
    expect(rounds).toBeGreaterThan(2);
    await followed.settle();
    expect((await followed.numbers()).filter((n) => n < 1000)).toEqual([0, 1, 3, 900]);
    expect(followed.collector.status().rejected).toBe(1);
  });

  it.each([
    ['a hole', 0],
    ['a line without an end', 0x78],
  ])('does not delay a stop: %s', async (_what, filler) => {
    const files = slowFiles(filler);
    const followed = new FollowedFolder(await temporaryFolder());
    await followed.start();
    const path = followed.path('web.log');
    writeFileSync(path, filler === 0 ? '' : 'x');
    // Reading this to its end takes many minutes.
    addHole(path, 3 * tera);
    appendFileSync(path, lines(1, 2));
    const collection = new Collection({
      files,
      workers: new WorkerPool(0),
      log: silentLog,
      now: followed.now,
      timezone: 'UTC',
      limitLines: 0,
      flushMs: 10,
      tailTimeoutMs: 1000,
      redefine: () => Promise.resolve(),
    });
    await collection.add({ definition: followed.definition, store: followed.store });
    collection.start();
    await expect.poll(() => files.reads).toBeGreaterThan(100);
    expect(collection.status()['app']!.lagBytes).toBe(statSync(path).size);
    await collection.stop();
    expect(await followed.numbers()).toEqual([]);
    await followed.stop();
  });
});
