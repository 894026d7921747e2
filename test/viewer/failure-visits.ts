import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { addressIn, cursorsInSight } from './browser.js';
import { ServedViewer } from './served-viewer.js';
import { shop, type Visit } from './visit.js';

/** What a page shows when there are no records to show, and which actions it offers. */
export function failureVisits(visit: Visit): void {
  /** A server that requires tokens, and limits how much a query may read. */
  const guarded = new ServedViewer();
  let token = '';
  let page: Page;

  beforeAll(async () => {
    await guarded.loadShop('shop', { ...shop, records: 20_000 });
    await guarded.loadShop('other', { ...shop, records: 10 });
    guarded.configure('server:\n  query_bytes_max: 400kb\n');
    token = (await guarded.command('token', 'new', '--name', 'page', '--agent', 'shop'))
      .trim()
      .split('\n')[0]!;
    await guarded.start('--no-follow');
  });
  afterAll(() => guarded.remove());
  beforeEach(() => void ({ page } = visit));

  const title = (): Promise<string | null> => page.textContent('.notice-title');

  it('an archive without records explains how to load some', async () => {
    await visit.go('#/empty');
    expect(await title()).toBe('Nothing is stored for empty yet');
    expect(await page.textContent('.notice')).toContain('logstrata load empty');
    await expect.poll(() => page.textContent('.match-count')).toBe('0 records');
  });

  it('a query without matches can be widened, step by step', async () => {
    await visit.go('#/shop?level__exact=error&service__exact=nobody&text=zzz&last=1h');
    expect(await title()).toBe('Nothing matches');
    // The page requests the time range of the existing records separately.
    await expect.poll(() => page.textContent('.notice')).toMatch(/There are records from \d{4}-\d\d-\d\d/);
    await page.getByRole('button', { name: 'All time' }).click();
    await page.getByRole('button', { name: 'Without the text' }).click();
    await page.getByRole('button', { name: 'Without the last filter' }).click();
    await page.waitForSelector('.row');
    expect(addressIn(page)).toBe('#/shop?level__exact=error');
  });

  it('a missing agent or field is named', async () => {
    await visit.go('#/nobody');
    expect(await title()).toBe('There is no such agent');
    await visit.go('#/shop?nothing__eq=1');
    expect(await title()).toBe('The server did not understand the query');
    expect(await page.textContent('.notice-detail')).toContain('unknown field "nothing"');
    await page.getByRole('button', { name: /^Remove: nothing/ }).click();
    await page.waitForSelector('.row');
  });

  it('damage is reported, with the commands that find and repair it', async () => {
    await visit.go('#/damaged');
    expect(await title()).toBe('Records needed for this answer are damaged');
    expect(await page.textContent('.notice')).toContain('logstrata verify');
  });

  it('a token is requested, sent with all requests, and a wrong one is reported as wrong', async () => {
    page = await visit.open({}, guarded.address);
    await visit.go('#/shop');
    expect(await title()).toBe('The server requires a token');
    const give = async (text: string): Promise<void> => {
      await page.locator('.notice').getByLabel('Token').fill(text);
      await page.keyboard.press('Enter');
    };
    await give('logstrata_00000000_wrong');
    await expect.poll(title).toBe('The server does not accept this token');
    expect(await page.textContent('.notice-detail')).toContain('not known');
    await give(token);
    await page.waitForSelector('.row');
    await page.keyboard.press('l');
    await page.waitForSelector('.live.is-open');
    await page.keyboard.press('l');
    await page.keyboard.press('d');
    const saved = page.waitForEvent('download');
    await page.getByRole('dialog').getByRole('button', { name: 'Download' }).click();
    expect(await (await saved).failure()).toBeNull();
    await visit.go('#/other');
    expect(await title()).toBe('This token does not allow that');
    await visit.go('#/shop');
    const newest = (await guarded.ask('/api/query/shop?limit=1', token)).slice(12, 28);
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(newest);
  });

  it('a query that a limit stops names the limit, and how to read less', async () => {
    page = await visit.open({}, guarded.address);
    await visit.go('#/shop');
    await page.locator('.notice').getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.row');
    await page.keyboard.press('/');
    await page.keyboard.type('nobody wrote this');
    await page.keyboard.press('Enter');
    await expect.poll(title).toBe('The query would have to read too much');
    expect(await page.textContent('.notice')).toMatch(/shorter time range.*server\.query_bytes_max/);

    await guarded.stop();
    guarded.configure('server:\n  query_timeout: 1ms\n');
    await guarded.start('--no-follow');
    await page.keyboard.press('Escape');
    await page.keyboard.press('r');
    await expect.poll(title).toBe('The query exceeded its time limit');
    expect(await page.textContent('.notice')).toMatch(/shorter time range.*server\.query_timeout/);
  });
}
