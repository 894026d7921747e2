import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { addressIn, cursorsInSight, expectRun, rowCursors } from './browser.js';
import { ServedViewer } from './served-viewer.js';
import { severalCount, type Visit } from './visit.js';

/** Records of several agents in one table. */
export function severalVisits(visit: Visit): void {
  const { served } = visit;
  /** A server with as many agents as a large company has services. */
  const crowd = new ServedViewer();
  const crowdCount = 1000;
  const nameOf = (i: number): string => `service-${String(i).padStart(4, '0')}`;
  let page: Page;
  let all: readonly string[] = [];

  beforeAll(async () => {
    all = await served.cursors('east,west');
    for (let i = 1; i <= crowdCount; i += 1)
      crowd.addAgent(nameOf(i), 'fields:\n  - name: message\nfile: { path: "../logs/none", format: json }\n');
    await crowd.loadLines(nameOf(777), [{ message: 'of the 777th' }]);
    await crowd.start('--no-follow');
  });
  afterAll(() => crowd.remove());
  beforeEach(() => void ({ page } = visit));

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const heads = (): Promise<string[]> =>
    page.$$eval('.head-cell > .menu > button', (cells) => cells.map((cell) => cell.textContent));
  const recordsOf = async (query: string): Promise<Readonly<Record<string, unknown>>[]> =>
    (await served.ask(`/api/query/east,west?${query}`))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

  it('are picked from a list, each with a colour, and the address keeps them', async () => {
    await visit.go('#/east?text=line');
    await page.keyboard.press('a');
    await page.keyboard.type('wes');
    await page.getByLabel('Show west with others').press('Space');
    await button('Show 2 together').press('Enter');
    await expect.poll(() => addressIn(page)).toBe('#/east,west?text=line');
    await expectRun(page, all);
    expect(await heads()).toEqual(['time', '_agent', 'level', 'message']);
    const rows = await page.$$eval('.row', (shown) =>
      shown.slice(-40).map((row) => ({
        cursor: (row as HTMLElement).dataset['cursor'],
        agent: row.children[1]!.textContent,
        colour: getComputedStyle(row.querySelector('.swatch')!).backgroundColor,
      })),
    );
    const records = await recordsOf('limit=40');
    expect(rows.map(({ cursor, agent }) => [cursor, agent])).toEqual(
      records.map((record) => [record['_cursor'], record['_agent']]),
    );
    const colours = new Map(rows.map(({ agent, colour }) => [agent, colour]));
    expect(new Set(colours.values()).size).toBe(2);
    expect(new Set(rows.map(({ agent, colour }) => `${agent} ${colour}`)).size).toBe(2);
    // A click on a name shows this agent alone.
    await page.keyboard.press('a');
    await button('west').click();
    await expect.poll(() => addressIn(page)).toBe('#/west');
    await expectRun(page, await served.cursors('west'));
    expect(await heads()).not.toContain('_agent');
  });

  it('are one list from the first record to the last, in pages of which none is repeated or left out', async () => {
    await visit.go('#/east,west');
    await expectRun(page, all);
    const seen = new Set<string>();
    /** Scrolls by keys until a record is in sight. */
    const scrollTo = async (key: 'PageUp' | 'PageDown', goal: string): Promise<void> => {
      await page.locator('#rows').focus();
      await expect
        .poll(
          async () => {
            const held = await rowCursors(page);
            const at = all.indexOf(held[0]!);
            expect(held).toEqual(all.slice(at, at + held.length));
            for (const cursor of held) seen.add(cursor);
            if ((await cursorsInSight(page)).includes(goal)) return true;
            await page.keyboard.press(key);
            return false;
          },
          { interval: 20 },
        )
        .toBe(true);
    };
    await scrollTo('PageUp', all[0]!);
    expect([...seen].sort()).toEqual([...all].sort());
    await scrollTo('PageDown', all.at(-1)!);
    // The time bar is about all of them.
    const bar = (await page.locator('.time-bar').boundingBox())!;
    await page.mouse.click(bar.x + 5, bar.y + bar.height / 2);
    await expect
      .poll(async () => all.indexOf((await cursorsInSight(page))[0]!))
      .toBeLessThan(1.2 * severalCount);
    await expectRun(page, all);
  });

  it('have the fields of all, where those that an agent lacks are empty', async () => {
    await visit.go('#/east,west?columns=_agent,ms,region,message');
    await expectRun(page, all);
    const cells = await page.$$eval('.row', (rows) =>
      rows.slice(-40).map((row) => [...row.children].map((cell) => cell.textContent)),
    );
    const records = await recordsOf('limit=40&fields=ms,region,message');
    const text = (record: Readonly<Record<string, unknown>>, name: string): string =>
      String(record[name] ?? '');
    expect(cells).toEqual(
      records.map((record) => ['_agent', 'ms', 'region', 'message'].map((name) => text(record, name))),
    );
    await page.keyboard.press('d');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Form').selectOption('csv');
    const saved = page.waitForEvent('download');
    await dialog.getByRole('button', { name: 'Download' }).click();
    const csv = readFileSync(await (await saved).path(), 'utf8');
    expect(csv).toBe(
      await served.ask('/api/query/east,west?format=csv&limit=10000&fields=ms,region,message'),
    );
  });

  it('are counted together, by time, by value and as a line', async () => {
    await visit.go('#/east,west?line=ms:sum');
    await expect.poll(() => page.textContent('.match-count')).toBe(`${2 * severalCount} records`);
    await expect
      .poll(() => page.locator('.plot-canvas').getAttribute('aria-label'))
      .toBe(`Histogram of ${2 * severalCount} records over time, with sum of ms from 60 to 60`);
    await expect
      .poll(() => page.getByRole('group', { name: 'region' }).textContent())
      .toContain(`has none${severalCount}`);
    await page
      .getByRole('list', { name: 'Values of level' })
      .getByRole('button', { name: 'error' })
      .first()
      .click();
    await expectRun(page, await served.cursors('east,west', 'level__exact=error'));
  });

  it('open a record with its own fields, and among its neighbours of its own agent', async () => {
    await visit.go('#/east,west');
    await expectRun(page, all);
    const record = (await recordsOf('limit=60')).find((one) => one['_agent'] === 'west')!;
    const cursor = String(record['_cursor']);
    await page.locator(`[data-cursor="${cursor}"]`).click();
    const panel = page.locator('.record-panel');
    await expect.poll(() => panel.locator('h2').textContent()).toMatch(/^west [0-9a-f]{16}$/);
    expect(addressIn(page)).toBe(`#/east,west?record=${cursor}`);
    expect(await panel.locator('dt').allTextContents()).toEqual(['time', 'message', 'level', 'region']);
    await visit.reload();
    await expect.poll(() => panel.locator('dl').textContent()).toContain(String(record['message']));
    await expect.poll(async () => (await cursorsInSight(page)).includes(cursor)).toBe(true);
    await expectRun(page, all);

    await page.keyboard.press('c');
    const west = await served.cursors('west');
    await expectRun(page, west);
    expect(await heads()).toEqual(['time', 'level', 'message']);
    const own = cursor.split('.')[3]!;
    await expect.poll(() => page.locator(`.row.is-current[data-cursor="${own}"]`).count()).toBe(1);
    await page.keyboard.press('Escape');
    await expectRun(page, all);
    await expect.poll(() => page.locator(`.row.is-current[data-cursor="${cursor}"]`).count()).toBe(1);
    // A neighbour that is opened there is found again among the records of all.
    await page.keyboard.press('c');
    await expectRun(page, west);
    const other = west[west.indexOf(own) - 3]!;
    await page.locator(`[data-cursor="${other}"]`).click();
    await expect.poll(() => panel.locator('.cursor').textContent()).toBe(other);
    await page.keyboard.press('c');
    await expectRun(page, all);
    await expect.poll(() => page.locator('.row.is-current').getAttribute('data-cursor')).toContain(other);
  });

  it('arrive live from each of them', async () => {
    await visit.go('#/live-one,live-two?live=1');
    await page.waitForSelector('.live.is-open');
    const messages = (count: number): Promise<string[]> =>
      page
        .$$eval('.row .for-text', (cells) => cells.map((cell) => cell.textContent))
        .then((all) => all.slice(-count));
    served.write('live-one', [{ time: Date.now(), message: 'first of several' }]);
    await expect.poll(() => messages(1)).toEqual(['first of several']);
    served.write('live-two', [{ time: Date.now(), message: 'second of several' }]);
    await expect.poll(() => messages(2)).toEqual(['first of several', 'second of several']);
    served.write('live-one', [{ time: Date.now(), message: 'third of several' }]);
    await expect
      .poll(() => messages(3))
      .toEqual(['first of several', 'second of several', 'third of several']);
    expect(await page.locator('.row').last().locator('.for-other').first().textContent()).toBe('live-one');
  });

  it('are found among a thousand by a part of the name, and are at most sixteen', async () => {
    page = await visit.open({}, crowd.address);
    await visit.go(`#/${nameOf(1)}`);
    await page.keyboard.press('a');
    await expect.poll(() => page.locator('.agent-list li').count()).toBe(100);
    expect(await page.locator('.views-menu').textContent()).toContain('900 more');
    await page.keyboard.type('777');
    await expect.poll(() => page.locator('.agent-list li').allTextContents()).toEqual([nameOf(777)]);
    await page.keyboard.press('Enter');
    await expect.poll(() => addressIn(page)).toBe(`#/${nameOf(777)}`);
    await expect.poll(() => page.locator('.row .for-text').allTextContents()).toEqual(['of the 777th']);
    await page.keyboard.press('a');
    for (let i = 1; i <= 15; i += 1) await page.getByLabel(`Show ${nameOf(i)} with others`).check();
    expect(await page.getByLabel(`Show ${nameOf(16)} with others`).isDisabled()).toBe(true);
    await button('Show 16 together').click();
    await expect.poll(() => page.locator('.row .for-text').allTextContents()).toEqual(['of the 777th']);
    expect(addressIn(page).split(',')).toHaveLength(16);
  });
}
