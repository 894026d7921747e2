import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { addressIn, cursorsInSight, expectRun, rowCursors, wheelUntil } from './browser.js';
import { shop, tieCount, type Visit } from './visit.js';

/** The table as a user scrolls it, and one record of it. */
export function tableVisits(visit: Visit): void {
  const { served } = visit;
  let page: Page;
  let all: readonly string[];

  beforeEach(async () => {
    ({ page, all } = visit);
    await visit.go('#/shop');
  });

  it('begins with the newest records, the newest at the bottom', async () => {
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(all.at(-1));
    const shown = await cursorsInSight(page);
    expect(shown).toEqual(all.slice(-shown.length));
    expect(addressIn(page)).toBe('#/shop');
    await expect.poll(() => page.textContent('.edge-line:last-of-type')).toBe('No newer records');
  });

  it('requests the first rows before all else, and nothing twice', async () => {
    const asked: string[] = [];
    page.on('request', (request) => {
      // What the page before this one still requests while it is left does not count.
      if (request.isNavigationRequest()) asked.length = 0;
      asked.push(request.url().slice(served.address.length));
    });
    const isAsked = (route: string) => asked.some((path) => path.startsWith(`/api/${route}`));
    for (const [hash, first] of [
      ['#/shop?text=krak', '/api/query/shop?*__like=krak&limit=50'],
      ['#/shop?last=30d', '/api/schema/shop'],
      ['', '/api/agents'],
    ] as const) {
      await visit.go(hash);
      await expect.poll(() => isAsked('count') && isAsked('agents')).toBe(true);
      const routes = asked.filter((path) => path.startsWith('/api/'));
      expect(routes.slice(0, 2).map(decodeURIComponent)).toContain(first);
      expect(routes.length).toBe(new Set(routes).size);
    }
  });

  it('scrolls back and forward again with the wheel, with every record in its place and none twice', async () => {
    // Twice as many records as the window holds.
    const far = all.length - 1300;
    const back = await wheelUntil(page, -1800, (inSight) => all.indexOf(inSight[0]!) < far);
    const first = all.indexOf([...back].sort()[0]!);
    expect([...back].sort()).toEqual(all.slice(first));
    expect(back.size).toBeGreaterThan(1250);
    expect((await rowCursors(page)).length).toBeLessThanOrEqual(600);
    const forward = await wheelUntil(page, 1800, (inSight) => inSight.at(-1) === all.at(-1));
    expect([...forward].sort()).toEqual(all.slice(all.indexOf([...forward].sort()[0]!)));
  });

  it('jumps to both ends, and moves from row to row with keys', async () => {
    await page.keyboard.press('g');
    await expect.poll(async () => (await cursorsInSight(page))[0]).toBe(all[0]);
    expect(await page.textContent('.edge-line')).toBe('No older records');
    await page.keyboard.press('G');
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(all.at(-1));
    const current = (): Promise<string | null> => page.getAttribute('.row.is-current', 'data-cursor');
    for (const key of ['k', 'k', 'k', 'j']) await page.keyboard.press(key);
    expect(await current()).toBe(all.at(-2));
    await page.keyboard.press('Enter');
    await expect.poll(() => page.textContent('.record-panel .cursor')).toBe(all.at(-2));
    await page.keyboard.press('k');
    await expect.poll(() => page.textContent('.record-panel .cursor')).toBe(all.at(-3));
    expect(addressIn(page)).toContain(`record=${all.at(-3)}`);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.record-panel').count()).toBe(0);
  });

  it('scrolls by time: a click on the time bar jumps to its place', async () => {
    await page.waitForSelector('.density rect', { state: 'attached' });
    const bar = (await page.locator('.time-bar').boundingBox())!;
    await page.mouse.click(bar.x + bar.width / 2, bar.y + bar.height * 0.4);
    // The bar covers the time from the first record to the last.
    const target = shop.startMs + 0.4 * shop.days * 86_400_000;
    const since = await served.cursors(
      'shop',
      `time__since=${target - 3_600_000}&time__until=${target + 3_600_000}`,
    );
    await expect.poll(async () => since.includes((await cursorsInSight(page))[0]!)).toBe(true);
    const shown = await cursorsInSight(page);
    expect(shown).toEqual(all.slice(all.indexOf(shown[0]!), all.indexOf(shown[0]!) + shown.length));
    // Until the next frame, it describes the rows that were visible before.
    await expect
      .poll(async () => Math.abs(Number(await page.getAttribute('.time-bar', 'aria-valuenow')) - 400))
      .toBeLessThan(20);
    // The visible row stays in place while rows are added around it.
    const stays = shown[3]!;
    const place = async (): Promise<number> => (await page.locator(`#r${stays}`).boundingBox())!.y;
    const before = await place();
    await expect.poll(async () => (await rowCursors(page))[0]! < shown[0]!).toBe(true);
    expect(Math.abs((await place()) - before)).toBeLessThan(2);
  });

  it('can be reversed, with the newest first', async () => {
    await page.keyboard.press('n');
    await expect.poll(async () => (await cursorsInSight(page))[0]).toBe(all.at(-1));
    const shown = await cursorsInSight(page);
    expect(shown).toEqual(all.slice(-shown.length).reverse());
    await page.keyboard.press('G');
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(all[0]);
    expect(addressIn(page)).toBe('#/shop?order=newest');
    await visit.reload();
    await expect.poll(async () => (await cursorsInSight(page))[0]).toBe(all.at(-1));
  });

  it('columns are added, moved, resized and removed, and lines wrapped, and the address holds that', async () => {
    const heads = (): Promise<string[]> =>
      page.$$eval('.head-cell > .menu > button', (all) => all.map((one) => one.textContent));
    expect(await heads()).toEqual(['time', 'level', 'service', 'host', 'message']);
    await page.getByRole('button', { name: 'Column trace_id' }).click();
    await expect.poll(heads).toEqual(['time', 'level', 'service', 'host', 'trace_id', 'message']);
    await page
      .locator('.head-cell', { hasText: 'trace_id' })
      .dragTo(page.locator('.head-cell', { hasText: 'level' }));
    await expect.poll(heads).toEqual(['time', 'trace_id', 'level', 'service', 'host', 'message']);
    await page.getByRole('button', { name: 'Column host', exact: true }).first().click();
    await page.locator('.head-cell', { hasText: 'service' }).getByRole('button').click();
    await page.getByRole('button', { name: 'Move left' }).click();
    await page.keyboard.press('Escape');
    const expected = ['time', 'trace_id', 'service', 'level', 'message'];
    await expect.poll(heads).toEqual(expected);
    const edge = (await page
      .locator('.head-cell', { hasText: 'service' })
      .locator('.width-edge')
      .boundingBox())!;
    await page.mouse.move(edge.x + 4, edge.y + 10);
    await page.mouse.down();
    await page.mouse.move(edge.x + 64, edge.y + 10, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => addressIn(page)).toContain('service:188');
    await page.keyboard.press('w');
    await expect.poll(() => page.locator('.table.is-wrapped').count()).toBe(1);
    await visit.reload();
    await expect.poll(heads).toEqual(expected);
    expect(await page.locator('.table.is-wrapped').count()).toBe(1);
    const width = (await page.locator('.head-cell', { hasText: 'service' }).boundingBox())!.width;
    expect(Math.round(width)).toBe(188);
  });

  it('a text takes one line, whatever its length and number of lines, unless lines are wrapped', async () => {
    await visit.go('#/texts');
    const heights = (): Promise<number[]> =>
      page.$$eval('.row', (rows) => rows.map((row) => row.clientHeight));
    const isWide = (): Promise<boolean> =>
      page.$eval('.scroller', (all) => all.scrollWidth > all.clientWidth);
    const [one] = await heights();
    expect(await heights()).toEqual([one, one]);
    expect(await page.locator('.row .for-text').first().textContent()).toBe(
      'it failed ↵ at the pool ↵ at the store',
    );
    await page.keyboard.press('w');
    await expect.poll(async () => (await heights())[0]).toBe(3 * one!);
    expect((await heights())[1]).toBeGreaterThan(3 * one!);
    expect(await isWide()).toBe(false);
  });

  it('a record shows every field completely, an id with all its digits, and JSON in lines', async () => {
    await page.locator('.row').last().click();
    const line = (await served.ask('/api/query/shop?limit=1')).trim();
    const id = /"trace_id":(\d+)/.exec(line)![1]!;
    expect(id.length).toBeGreaterThan(16);
    const panel = page.locator('.record-panel');
    await expect.poll(() => panel.textContent()).toContain(id);
    expect(await panel.locator('dt').allTextContents()).toEqual([
      'time',
      'level',
      'service',
      'host',
      'trace_id',
      'duration',
      'context',
      'message',
    ]);
    const { context } = JSON.parse(line) as { context: string };
    expect(await panel.locator('pre.json').textContent()).toBe(JSON.stringify(JSON.parse(context), null, 2));

    const copied = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
    await panel.locator('.record-actions').getByRole('button', { name: 'Copy JSON' }).click();
    await expect.poll(copied).toBe(line);
    await panel.getByRole('button', { name: 'Copy curl command' }).click();
    await expect.poll(copied).toMatch(/^curl 'http/);
    const [, url] = /^curl '([^']+)'$/.exec(await copied())!;
    expect((await (await fetch(url!)).text()).trim()).toBe(line);
    await panel.getByRole('button', { name: 'Copy link' }).click();
    await expect.poll(copied).toBe(page.url());
    await panel.locator('.pane-head').getByRole('button', { name: 'As JSON' }).click();
    await expect.poll(() => panel.locator('pre.json').textContent()).toContain(`"trace_id": ${id}`);
  });

  it('a link to a record opens it among its neighbours, and context shows those that the filters exclude', async () => {
    const errors = await served.cursors('shop', 'level__exact=error');
    const linked = errors[Math.floor(errors.length / 2)]!;
    await visit.go(`#/shop?level__exact=error&record=${linked}`);
    await expect.poll(() => page.textContent('.record-panel .cursor')).toBe(linked);
    await expect.poll(async () => (await cursorsInSight(page)).includes(linked)).toBe(true);
    const shown = await cursorsInSight(page);
    const at = errors.indexOf(shown[0]!);
    expect(shown).toEqual(errors.slice(at, at + shown.length));

    await page.keyboard.press('c');
    await expect.poll(() => page.locator('.context-line').count()).toBe(1);
    await expect
      .poll(
        async () => (await cursorsInSight(page)).length > 5 && (await cursorsInSight(page)).includes(linked),
      )
      .toBe(true);
    await expectRun(page, all);
    expect(addressIn(page)).toContain('context=1');
    expect(await page.locator('.row.is-current').getAttribute('data-cursor')).toBe(linked);
    await page.getByRole('button', { name: 'Back to the matching records' }).click();
    await expect
      .poll(async () => (await cursorsInSight(page)).every((cursor) => errors.includes(cursor)))
      .toBe(true);
  });

  it('a field of a record can be used to filter for or exclude its value', async () => {
    await page.locator('.row').last().click();
    await page.getByRole('button', { name: 'Only this service' }).click();
    await page.getByRole('button', { name: 'Without this host' }).click();
    const { service, host } = JSON.parse(await served.ask('/api/query/shop?limit=1')) as Record<
      string,
      string
    >;
    const query = `service__exact=${service}&host__ne=${host}`;
    await expect.poll(() => addressIn(page)).toContain(query);
    await expectRun(page, await served.cursors('shop', query));
  });

  it('leaves out no record of one instant, and shows none twice', async () => {
    await visit.go('#/ties');
    const ties = await served.cursors('ties');
    expect(ties).toHaveLength(tieCount);
    const up = await wheelUntil(page, -1800, (inSight) => inSight[0] === ties[0]);
    expect([...up].sort()).toEqual(ties);
    const down = await wheelUntil(page, 1800, (inSight) => inSight.at(-1) === ties.at(-1));
    expect([...down].sort()).toEqual(ties);
    const messages = await page.locator('.row .for-text').allTextContents();
    expect(messages).toEqual(messages.map((_, i) => `line ${tieCount - messages.length + i}`));
  });
}
