import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { cursorBefore } from '../../server/viewer/state/record.js';
import { addressIn, cursorsInSight, expectRun } from './browser.js';
import { shop, type Visit } from './visit.js';

const dayMs = 86_400_000;
const endMs = shop.startMs + shop.days * dayMs;

/** Time ranges, filters, text search, recent queries, and downloads. */
export function askingVisits(visit: Visit): void {
  const { served } = visit;
  let page: Page;

  beforeEach(async () => {
    ({ page } = visit);
    await visit.go('#/shop');
  });

  /** The number of matching records that the page shows. */
  const expectCount = (count: number): Promise<void> =>
    expect
      .poll(() => page.textContent('.match-count'))
      .toBe(`${count.toLocaleString('en-US')} ${count === 1 ? 'record' : 'records'}`);
  const press = (name: string | RegExp): Promise<void> => page.getByRole('button', { name }).first().click();
  const inDialog = (name: string): Promise<void> =>
    page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
  const timeOf = async (cursor: string): Promise<number> => {
    const line = await served.ask(`/api/query/shop?limit=1&after=${cursorBefore(cursor)}`);
    return (JSON.parse(line) as { time: number }).time;
  };

  it('a range up to now is chosen or typed, and can be moved to the one before it', async () => {
    await page.keyboard.press('t');
    await press('Last 7 days');
    await expect.poll(() => addressIn(page)).toBe('#/shop?last=7d');
    const since = Date.now() - 7 * dayMs;
    const week = await served.cursors('shop', `time__since=${since + 60_000}`);
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(week.at(-1));
    await page.keyboard.press('g');
    await expect
      .poll(async () => Math.abs((await timeOf((await cursorsInSight(page))[0]!)) - since) < 600_000)
      .toBe(true);

    await page.keyboard.press('t');
    await page.getByPlaceholder('1d 12h').fill('soon');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('90s, 15m, 12h or 7d');
    await page.getByPlaceholder('1d 12h').fill('2d 6h');
    await page.keyboard.press('Enter');
    await expect.poll(() => addressIn(page)).toBe('#/shop?last=2d6h');
    await page.keyboard.press('[');
    await expect.poll(() => addressIn(page)).toContain('since=');
    const [, from, until] = /since=([^&]+)&until=(.+)$/.exec(addressIn(page))!;
    expect(Date.parse(until!) - Date.parse(from!)).toBe(54 * 3_600_000);
    await expectRun(page, await served.cursors('shop', `time__since=${from}&time__until=${until}`));
    await page.keyboard.press(']');
    await expect.poll(() => addressIn(page)).toContain(`since=${until}`);
  });

  it('a range between two times is typed, and an invalid one is refused', async () => {
    const text = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ');
    await page.keyboard.press('u');
    const from = endMs - 3 * dayMs;
    await page.keyboard.press('t');
    await page.getByLabel('From').fill('2026-02-30');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('"2026-02-30" is not a time');
    await page.getByLabel('From').fill(text(from));
    await page.getByLabel('Before').fill(text(from - 1000));
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('ends before it begins');
    await page.getByLabel('Before').fill(text(from + 7_200_000));
    await page.keyboard.press('Enter');
    const within = await served.cursors('shop', `time__since=${from}&time__until=${from + 7_200_000}`);
    await expectCount(within.length);
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(within.at(-1));
  });

  it('a range is selected on the bars by dragging, and a click on a bar selects its range', async () => {
    const plot = (await page.locator('.plot .u-over').boundingBox())!;
    const y = plot.y + plot.height / 2;
    await page.mouse.click(plot.x + plot.width * 0.5, y);
    await expect
      .poll(
        async () =>
          Math.abs((await timeOf((await cursorsInSight(page))[0]!)) - (shop.startMs + 5 * dayMs)) <
          8 * 3_600_000,
      )
      .toBe(true);
    expect(addressIn(page)).toBe('#/shop');
    await page.mouse.move(plot.x + plot.width * 0.3, y);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width * 0.5, y, { steps: 5 });
    await page.mouse.up();
    await expect.poll(() => addressIn(page)).toContain('since=');
    const [, from, until] = /since=([^&]+)&until=(.+)$/.exec(addressIn(page))!;
    expect((Date.parse(until!) - Date.parse(from!)) / dayMs).toBeCloseTo(2, 0);
    await expectCount((await served.cursors('shop', `time__since=${from}&time__until=${until}`)).length);
    // A menu that is open closes with the view that it is about.
    await page.keyboard.press('t');
    await page.waitForSelector('.popover');
    await page.goBack();
    await expect.poll(() => addressIn(page)).toBe('#/shop');
    await expectCount(shop.records);
    expect(await page.locator('.popover').count()).toBe(0);
  });

  it('filters offer the operators of their field, and their chips are edited, negated and removed', async () => {
    const add = async (field: string, comparison: string, value: string): Promise<void> => {
      await page.keyboard.press('f');
      await page.getByLabel('Field', { exact: true }).selectOption(field);
      await page.getByLabel('Comparison').selectOption(comparison);
      await page
        .getByRole('dialog')
        .getByLabel(/^Value/)
        .fill(value);
      await inDialog('Add');
    };
    const expectFilters = async (query: string): Promise<void> => {
      await expect.poll(() => addressIn(page)).toBe(query === '' ? '#/shop' : `#/shop?${query}`);
      const cursors = await served.cursors('shop', query);
      await expectCount(cursors.length);
      await expectRun(page, cursors);
    };
    await add('duration', 'gte', '100');
    await expectFilters('duration__gte=100');
    await add('message', 'not_like', 'order');
    await add('level', 'not_in', 'info\ndebug');
    await expectFilters('duration__gte=100&message__not_like=order&level__ne=info&level__ne=debug');

    await press('Change: duration ≥ 100');
    await page.getByLabel('Comparison').selectOption('lt');
    await page.getByRole('dialog').getByLabel('Value').fill('1');
    await inDialog('Change');
    await expectFilters('duration__lt=1&message__not_like=order&level__ne=info&level__ne=debug');
    await press('Negate: level is none of info, debug');
    await expectFilters('duration__lt=1&message__not_like=order&level__in=info&level__in=debug');
    await press('Remove: message does not contain order');
    await press('Negate: duration < 1');
    await expectFilters('duration__gte=1&level__in=info&level__in=debug');
    await press('Clear all');
    await expectFilters('');
  });

  it('a text is found in all string fields, or in the chosen field', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('KRAK');
    await page.keyboard.press('Enter');
    const anywhere = await served.cursors('shop', '*__like=krak');
    await expectCount(anywhere.length);
    await expectRun(page, anywhere);
    // Most records have the text in a field that is not a column.
    const inMessage = await served.cursors('shop', 'message__like=krak');
    expect(anywhere.length).toBeGreaterThan(inMessage.length + 1000);
    await page.locator('.row').last().click();
    await expect.poll(() => page.locator('.record-panel mark').first().textContent()).toBe('Krak');
    await page.keyboard.press('Escape');

    await page.getByLabel('Field that is searched').selectOption('message');
    await expectCount(inMessage.length);
    expect(addressIn(page)).toBe('#/shop?text=KRAK&in=message');
    await expect.poll(() => page.locator('.row mark').last().textContent()).toBe('Krak');
    await press('Clear the text');
    await expectCount(shop.records);
    await page.keyboard.press('Escape');
    await page.keyboard.press('f');
    await page.getByLabel('Field', { exact: true }).selectOption('*');
    await page.getByLabel('Comparison').selectOption('not_like');
    await page.getByRole('dialog').getByLabel('Value').fill('krak');
    await page.keyboard.press('Enter');
    await expectCount(shop.records - anywhere.length);
  });

  it('recent queries are listed, and views are saved in the browser', async () => {
    await visit.go('#/shop?level__exact=error');
    await visit.go('#/shop?text=receipt&in=message&last=30d');
    await page.keyboard.press('v');
    const history = page.locator('.view-list').last().getByRole('link');
    await expect
      .poll(async () => (await history.allTextContents()).slice(0, 3))
      .toEqual(['shop: message contains receipt · last 30d', 'shop: level is error', 'shop: everything']);
    await page.getByLabel('Save what is shown as').fill('receipts');
    await page.keyboard.press('Enter');
    await history.nth(1).click();
    await expect.poll(() => addressIn(page)).toBe('#/shop?level__exact=error');
    await visit.reload();
    await page.keyboard.press('v');
    await page.getByRole('link', { name: 'receipts', exact: true }).click();
    await expect.poll(() => addressIn(page)).toBe('#/shop?text=receipt&in=message&last=30d');
    await page.keyboard.press('v');
    await press('Remove receipts');
    await press('Clear the history');
    await expect.poll(() => page.locator('.view-list a').count()).toBe(0);
  });

  it('the address holds the whole view', async () => {
    const record = (await served.cursors('shop', 'service__exact=mailer')).at(-40)!;
    const address = `#/shop?service__exact=mailer&text=o&last=30d&columns=time,host:150,message&split=host&wrap=1&order=newest&record=${record}`;
    await visit.go(address);
    await expect.poll(() => page.textContent('.record-panel .cursor')).toBe(record);
    expect(addressIn(page)).toBe(address);
    await expect.poll(async () => (await cursorsInSight(page)).includes(record)).toBe(true);
    expect(
      await page.$$eval('.head-cell > .menu > button', (all) => all.map((one) => one.textContent)),
    ).toEqual(['time', 'host', 'message']);
    expect(await page.getByLabel('Field that the bars are split by').inputValue()).toBe('host');
    expect(await page.locator('.table.is-wrapped').count()).toBe(1);
    const shown = await cursorsInSight(page);
    expect(shown).toEqual([...shown].sort().reverse());
  });

  it('downloads contain the displayed records, as CSV and as JSON Lines', async () => {
    await visit.go('#/shop?level__exact=error&text=order&columns=time,host,message');
    const texts = await page.$$eval('.row', (rows) =>
      rows.map((row) => row.querySelector('.for-text')!.textContent),
    );
    const download = async (form: string, fields: string): Promise<string> => {
      await page.keyboard.press('d');
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Form').selectOption(form);
      await dialog.getByLabel('Fields').selectOption(fields);
      const saved = page.waitForEvent('download');
      await dialog.getByRole('button', { name: 'Download' }).click();
      const file = await saved;
      expect(file.suggestedFilename()).toBe(`shop.${form}`);
      return readFileSync(await file.path(), 'utf8');
    };
    const asked = '/api/query/shop?level__exact=error&*__like=order&limit=10000';
    const csv = await download('csv', 'shown');
    expect(csv).toBe(await served.ask(`${asked}&format=csv&fields=time,host,message`));
    const rows = csv.trimEnd().split('\r\n');
    expect(rows[0]).toBe('_cursor,time,host,message');
    const messages = rows
      .slice(-texts.length)
      .map((row) => row.slice(row.indexOf(',', 32) + 1).replaceAll('"', ''));
    expect(messages).toEqual(texts);
    const lines = await download('jsonl', 'all');
    expect(lines).toBe(await served.ask(asked));
  });
}
