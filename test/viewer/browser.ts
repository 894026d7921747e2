import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { browserPath } from '../../bench/viewer/chromium.js';

/** Set where a machine without a browser is a mistake: what a continuous integration runs must not pass for want of one. */
const isRequired = process.env['LOGSTRATA_BROWSER'] === 'required';

/** Tests in a real browser. Where there is none, one test stands for them and says so. */
export function describeInBrowser(title: string, tests: () => void): void {
  if (browserPath !== undefined || isRequired) describe(title, tests);
  else
    it(`${title}: not tried, since there is no Chromium here (LOGSTRATA_CHROMIUM names one)`, () => {
      expect(browserPath).toBeUndefined();
    });
}

/** What a page says that it should not: errors, and what the policy of the page has refused. */
export const complaints = new WeakMap<Page, string[]>();

/** A window of its own, as somebody has it who comes for the first time. */
export async function openPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    timezoneId: 'Europe/Oslo',
    locale: 'en-GB',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  const page = await context.newPage();
  const said: string[] = [];
  complaints.set(page, said);
  page.on('pageerror', (error) => said.push(String(error.stack ?? error)));
  // A response that is no success is told of as an error, and tests ask for some.
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      said.push(message.text());
  });
  return page;
}

/** Closes a page and its window, and fails where it has complained. */
export async function closePage(page: Page): Promise<void> {
  await page.context().close();
  expect(complaints.get(page)).toEqual([]);
}

/** The cursors of all rows that the table holds, from above. */
export function rowCursors(page: Page): Promise<string[]> {
  return page.$$eval('.row', (rows) => rows.map((row) => (row as HTMLElement).dataset['cursor']!));
}

/** The cursors of the rows in sight, from above. */
export function cursorsInSight(page: Page): Promise<string[]> {
  return page.$$eval('.row', (rows) => {
    const box = document.querySelector('.scroller')!.getBoundingClientRect();
    const head = document.querySelector('.head-row')!.getBoundingClientRect().bottom;
    return rows
      .filter((row) => {
        const { top, bottom } = row.getBoundingClientRect();
        return bottom > Math.max(box.top, head) + 1 && top < box.bottom - 1;
      })
      .map((row) => (row as HTMLElement).dataset['cursor']!);
  });
}

/** The address behind `#`, decoded. */
export function addressIn(page: Page): string {
  return decodeURIComponent(new URL(page.url()).hash);
}

/** Waits until the rows in sight are some of these, one after another. */
export async function expectRun(page: Page, cursors: readonly string[]): Promise<void> {
  await expect
    .poll(async () => {
      const shown = await cursorsInSight(page);
      const at = cursors.indexOf(shown[0] ?? '');
      return at >= 0 && shown.every((cursor, i) => cursors[at + i] === cursor);
    })
    .toBe(true);
}

/** How far the table is scrolled down, and how much further it can be, in pixels. */
function scrollOf(page: Page): Promise<{ readonly top: number; readonly below: number }> {
  return page.$eval('.scroller', ({ scrollTop, scrollHeight, clientHeight }) => ({
    top: scrollTop,
    below: scrollHeight - clientHeight - scrollTop,
  }));
}

/**
 * Turns the wheel by so many pixels at a time until something holds of the cursors in sight; gives every cursor that the table held on
 * the way. A wheel that is turned where rows are still awaited moves nothing, so there has to be room first.
 */
export async function wheelUntil(
  page: Page,
  by: number,
  holds: (inSight: readonly string[]) => boolean,
): Promise<Set<string>> {
  const seen = new Set<string>();
  const isThere = async (): Promise<boolean> => holds(await cursorsInSight(page));
  const hasRoom = async (): Promise<boolean> => {
    const { top, below } = await scrollOf(page);
    return (by < 0 ? top : below) >= 1;
  };
  await page.mouse.move(700, 600);
  for (;;) {
    const held = await rowCursors(page);
    expect(held).toEqual([...held].sort());
    for (const cursor of held) seen.add(cursor);
    if (await isThere()) return seen;
    await expect.poll(async () => (await hasRoom()) || (await isThere())).toBe(true);
    const { top } = await scrollOf(page);
    await page.mouse.wheel(0, by);
    await expect.poll(async () => (await scrollOf(page)).top !== top || (await isThere())).toBe(true);
  }
}
