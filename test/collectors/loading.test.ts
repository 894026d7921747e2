import { appendFileSync, copyFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { follow, lineOf, lines, range } from './followed-folder.js';

describe('loading', () => {
  it('a file and following it stores no line twice, in either order', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 50));
    expect((await followed.load('web.log')).records).toBe(50);
    appendFileSync(path, lines(50, 60));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 60));
    appendFileSync(path, lines(60, 70));
    expect((await followed.load('web.log')).records).toBe(10);
    appendFileSync(path, lines(70, 80));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 80));
    const again = await followed.load('web.log');
    expect(again.files[0]).toMatchObject({ outcome: 'known' });
  });

  it('a copy of a followed log with lines that were not read yet stores each line once', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 50));
    await followed.collect();
    appendFileSync(path, lines(50, 60));
    copyFileSync(path, followed.path('copy'));
    expect((await followed.load('copy')).records).toBe(10);
    await followed.collect();
    appendFileSync(path, lines(60, 70));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(0, 70));
  });

  it('a line that was being written stores it once, even if another log is found in the meantime', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lineOf(0));
    await followed.collect();
    appendFileSync(path, '\n');
    expect((await followed.load('web.log')).records).toBe(1);
    // The position of this log is newer than that of the other: their common commit relies on the older one.
    writeFileSync(followed.path('db.log'), lines(1, 2));
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1]);
  });

  it('the beginning of a log stores no line twice if a copy of the whole log appears and is removed', async () => {
    const followed = await follow();
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 40));
    await followed.load('web.log');
    appendFileSync(path, lines(40, 60));
    await followed.collect();
    copyFileSync(path, `${path}.1`);
    await followed.collect();
    unlinkSync(`${path}.1`);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 60));
  });
});
