import { appendFileSync, copyFileSync, truncateSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
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

  it('counts what was written behind the copy and could not be read', async () => {
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
      message: 'a log was cut off before all of it was read',
    });
  });

  it('is counted where nothing was stored yet, until a copy gives what was there', async () => {
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

  it('counts nothing of new content that is longer already when it is looked at', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 10));
    await followed.collect();
    truncateSync(path);
    appendFileSync(path, lines(10, 50));
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 50));
    expect(followed.collector.status()).toMatchObject({ truncations: 1, truncatedBytes: 0 });
    // What had been read and waited for its end was there.
    const cut = lineOf(50);
    appendFileSync(path, cut);
    await followed.collect();
    truncateSync(path);
    appendFileSync(path, lines(51, 200));
    await followed.settle();
    expect(await followed.numbers()).toEqual([...range(0, 50), ...range(51, 200)]);
    expect(followed.collector.status()).toMatchObject({ truncations: 2, truncatedBytes: cut.length });
  });

  it('does not take a copy for new that ends before what was read', async () => {
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
});
