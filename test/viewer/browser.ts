import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import { browserPath } from '../../bench/viewer/chromium.js';
import { describeUnless, unlessRequired } from '../needs.js';

const missingBrowser =
  browserPath === undefined ? 'there is no Chromium here, and LOGSTRATA_CHROMIUM names none' : null;

/** Tests in a real browser. */
export function describeInBrowser(title: string, tests: () => void): void {
  describeUnless(unlessRequired('chromium', missingBrowser), title, tests);
}

/** Messages that a page should not log: errors, and violations of its content security policy. */
export const complaints = new WeakMap<Page, string[]>();

/** A new browser window, as a first-time visitor has it. */
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
  // A response with an error status is logged as an error, and tests request some.
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      said.push(message.text());
  });
  return page;
}

/** Closes a page and its window, and fails if it has logged an error. */
export async function closePage(page: Page): Promise<void> {
  await page.context().close();
  expect(complaints.get(page)).toEqual([]);
}

/** The cursors of all rows that the table holds, from top to bottom. */
export function rowCursors(page: Page): Promise<string[]> {
  return page.$$eval('.row', (rows) => rows.map((row) => (row as HTMLElement).dataset['cursor']!));
}

/** The cursors of the visible rows, from top to bottom. */
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

/** The address after `#`, decoded. */
export function addressIn(page: Page): string {
  return decodeURIComponent(new URL(page.url()).hash);
}

/** Waits until the visible rows are some of these, in consecutive order. */
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
 * Turns the wheel by `pixels` at a time until the visible cursors satisfy a condition; returns every cursor that the table held on
 * the way. The wheel moves nothing where rows are still being loaded, so this waits for room first.
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
