import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { cursorsInSight, rowCursors, wheelUntil } from './browser.js';
import type { Visit } from './visit.js';

/** Records as they arrive. */
export function liveVisits(visit: Visit): void {
  const { served } = visit;
  let page: Page;
  let written = 0;

  beforeEach(() => void ({ page } = visit));

  const write = (count: number): void => {
    const lines = Array.from({ length: count }, () => ({
      time: Date.now(),
      message: `live ${(written += 1)}`,
    }));
    served.write('live', lines);
  };
  const lastMessage = (): Promise<string | null> => page.locator('.row .for-text').last().textContent();
  const stored = (): Promise<string[]> => served.cursors('live');

  it('appear by themselves, wait for a user who has scrolled away, and none is lost', async () => {
    await visit.go('#/live');
    expect(await page.textContent('.notice-title')).toBe('Nothing is stored for live yet');
    await page.keyboard.press('l');
    await page.waitForSelector('.live.is-open');
    write(150);
    await expect.poll(lastMessage).toBe('live 150');
    // The counts are updated too.
    await expect.poll(() => page.textContent('.match-count')).toBe('150 records');

    const away = (await stored()).at(-20)!;
    const seen = await wheelUntil(page, -300, (inSight) => inSight.at(-1)! < away);
    const stays = (await cursorsInSight(page))[3]!;
    const place = async (): Promise<number> => (await page.locator(`#r${stays}`).boundingBox())!.y;
    const before = await place();
    write(1000);
    await expect.poll(() => page.textContent('.held')).toBe('1,000 new');
    expect(Math.abs((await place()) - before)).toBeLessThan(2);
    // On the way down, each appears once, in its place.
    const all = await stored();
    for (const cursor of await wheelUntil(page, 900, (inSight) => inSight.at(-1) === all.at(-1)))
      seen.add(cursor);
    expect([...seen].sort()).toEqual(all);
    await expect.poll(lastMessage).toBe('live 1150');
    await expect.poll(() => page.textContent('.held')).toBe('');
    await page.keyboard.press('End');
    write(5);
    await expect.poll(lastMessage).toBe('live 1155');
    await page.keyboard.press('g');
    await expect.poll(async () => (await cursorsInSight(page))[0] === (await stored())[0]).toBe(true);
    write(7);
    await page.getByRole('button', { name: '7 new' }).click();
    await expect.poll(lastMessage).toBe('live 1162');
    await expect.poll(async () => (await cursorsInSight(page)).at(-1) === (await stored()).at(-1)).toBe(true);
  });

  it('continue after the last one when the server comes back, as does a page that polls', async () => {
    await visit.go('#/live?live=1');
    await page.waitForSelector('.live.is-open');
    const last = await lastMessage();
    await served.stop();
    await page.waitForSelector('.live.is-failed');
    expect(await page.textContent('.held-failure')).toContain('Going on from the last record');
    write(20);
    await served.start();
    await expect.poll(lastMessage).toBe(`live ${written}`);
    expect(Number(last!.slice(5))).toBe(written - 20);
    const all = await stored();
    const held = await rowCursors(page);
    expect(held).toEqual(all.slice(-held.length));

    await page.keyboard.press('l');
    await served.stop();
    await page.keyboard.press('r');
    await expect.poll(() => page.textContent('.notice-title')).toBe('The server does not answer');
    expect(await page.textContent('.notice')).toContain('The page retries by itself');
    await served.start();
    await expect.poll(lastMessage).toBe(`live ${written}`);
    expect(await page.locator('.notice').count()).toBe(0);
  });
}
