import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { addressIn, cursorsInSight, expectRun } from './browser.js';
import type { Visit } from './visit.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeWindow {
  readonly axe: {
    run(
      within: string,
      options: { readonly runOnly?: readonly string[] },
    ): Promise<{
      readonly violations: readonly {
        readonly id: string;
        readonly nodes: readonly { readonly html: string }[];
      }[];
    }>;
  };
}

/** Themes, keyboard, narrow screens, and accessibility for users who cannot see or point. */
export function lookVisits(visit: Visit): void {
  let page: Page;

  beforeEach(async () => {
    ({ page } = visit);
    await visit.go('#/shop');
  });

  const violations = (part: string, rules: readonly string[]): Promise<string[]> =>
    page.evaluate(
      async ([within, runOnly]) => {
        const options = runOnly.length === 0 ? {} : { runOnly };
        const found = await (window as unknown as AxeWindow).axe.run(within, options);
        return found.violations.map(
          ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`,
        );
      },
      [part, rules] as const,
    );
  /** The colours in both themes, and everything else in one: themes differ only in colours. */
  const expectAccessible = async (part = 'html'): Promise<void> => {
    if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
    expect(await violations(part, [])).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(groundOf).toBe(dark);
    expect(await violations(part, ['color-contrast'])).toEqual([]);
    await page.emulateMedia({ colorScheme: 'light' });
    await expect.poll(groundOf).toBe(light);
  };
  const groundOf = (): Promise<string> =>
    page.evaluate(() => getComputedStyle(document.querySelector('.viewer')!).backgroundColor);
  const dark = 'rgb(18, 22, 27)';
  const light = 'rgb(255, 255, 255)';

  it("follow the system's light or dark theme, or the chosen one", async () => {
    expect(await groundOf()).toBe(light);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(groundOf).toBe(dark);
    await page.getByRole('button', { name: 'Display' }).click();
    await page.getByLabel('Colours').selectOption('light');
    await expect.poll(groundOf).toBe(light);
    await visit.reload();
    expect(await groundOf()).toBe(light);
  });

  it('have no violation that axe finds, in both themes, whatever is open', async () => {
    await visit.go(
      '#/shop?level__exact=error&text=order&any=service__ne%3Dmailer&any=host__exact%3Dweb-1&line=duration:avg',
    );
    await page.locator('.row').last().click();
    await page.waitForSelector('.record-panel .record-fields');
    await page.waitForSelector('.legend li');
    await page.waitForSelector('.facet-values:not(.is-stale)');
    await expectAccessible();
    await page.keyboard.press('c');
    await page.waitForSelector('.context-line');
    for (const key of ['t', 'a', 'f', 'v', 'd', '?']) {
      await page.keyboard.press(key);
      await expectAccessible(key === '?' ? 'dialog[open]' : '.menu:has(.popover)');
      await page.keyboard.press('Escape');
    }
    await page.getByRole('button', { name: 'Or: add to level is error', exact: true }).click();
    await expectAccessible('.menu:has(.popover)');
    for (const hash of ['#/empty', '#/east,west', '#/shop?level__exact=nobody', '#/damaged']) {
      await visit.go(hash);
      await expectAccessible('main');
    }
  });

  it('can be used with the keyboard alone', async () => {
    const focused = (): Promise<string | null> =>
      page.evaluate(() => document.activeElement!.getAttribute('aria-label'));
    await page.keyboard.press('/');
    expect(await focused()).toBe('Text in any field');
    await page.keyboard.type('order');
    await page.keyboard.press('Enter');
    await expect.poll(() => addressIn(page)).toBe('#/shop?text=order');
    await page.keyboard.press('Escape');
    // Earlier rows stay until the matching ones have arrived, and have the text marked at once.
    await expectRun(page, await visit.served.cursors('shop', '*__like=order'));
    await page.waitForSelector('.row mark');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    const [last, before] = (await cursorsInSight(page)).reverse();
    await expect.poll(() => page.textContent('.record-panel .cursor')).toBe(before);
    await page.keyboard.press('j');
    await expect.poll(() => page.textContent('.record-panel .cursor')).toBe(last);
    await page.keyboard.press('c');
    await expect.poll(() => addressIn(page)).toContain('context=1');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await expect.poll(() => addressIn(page)).toBe('#/shop?text=order');
    await page.keyboard.press('y');
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());

    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys' });
    await expect.poll(() => help.isVisible()).toBe(true);
    for (const key of ['/', 'j', 'k', '[', ']', 't', '?'])
      expect(await help.locator('kbd').allTextContents()).toContain(key);
    await page.keyboard.press('Escape');
    await expect.poll(() => help.isVisible()).toBe(false);
    await page.keyboard.press('t');
    await expect.poll(() => page.getByRole('dialog').getAttribute('aria-label')).toContain('Time range');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => addressIn(page)).toBe('#/shop?text=order&last=5m');
    await page.keyboard.press('s');
    expect(await page.locator('.fields-pane').count()).toBe(0);
    await page.keyboard.press('h');
    expect(await page.locator('.plot').count()).toBe(0);
  });

  it('apply each key that is pressed before the page is drawn to the result of the previous one', async () => {
    const { keyboard } = page;
    /** Types like a user who knows what will open: none of these keys waits for a frame. */
    const type = (keys: readonly string[]): Promise<unknown> =>
      Promise.all(keys.map((key) => keyboard.press(key)));
    const session = await page.context().newCDPSession(page);
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 });
    await type(['t', 'Tab', 'Enter']);
    await expect.poll(() => addressIn(page)).toBe('#/shop?last=5m');
    await type(['t', 'Enter', '/', 'o', 'r', 'Enter', 'd', 'e']);
    await expect.poll(() => addressIn(page)).toBe('#/shop?text=or');
    expect(await page.locator('#search').inputValue()).toBe('orde');
    await type(['Enter', 'Escape', '?', 'Escape', '?', 'Escape', '?']);
    const help = page.getByRole('dialog', { name: 'Keys' });
    await expect.poll(() => help.isVisible()).toBe(true);
    await type(['Escape', 'v', 'n', 'e', 'w', 'Enter', 'Escape', 'Escape', 'h']);
    await expect.poll(() => page.locator('.plot').count()).toBe(0);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.keyboard.press('v');
    await expect.poll(() => page.locator('.view-list').first().locator('a').count()).toBe(1);
  });

  it('are complete on a phone: records first, everything else on top of them', async () => {
    page = await visit.open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    await visit.go('#/shop');
    expect(await page.locator('.fields-pane').count()).toBe(0);
    const widthOf = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth);
    expect(await widthOf()).toBe(390);
    await page.waitForSelector('.plot .u-over');
    expect((await cursorsInSight(page)).length).toBeGreaterThan(6);
    const plot = (await page.locator('.plot .u-over').boundingBox())!;
    const finger = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...places: number[]) =>
      finger.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: places.map((place) => ({
          x: plot.x + plot.width * place,
          y: plot.y + plot.height / 2,
        })),
      });
    await touch('touchStart', 0.5);
    for (const place of [0.45, 0.4, 0.3]) await touch('touchMove', place);
    await touch('touchEnd');
    await expect.poll(() => addressIn(page)).toContain('since=');
    await page.goBack();
    await expect.poll(() => addressIn(page)).toBe('#/shop');
    // Each row shows its whole message, or three lines of it.
    const row = page.locator('.row').last();
    await expect
      .poll(async () => (await row.locator('.for-text').boundingBox())?.width ?? 0)
      .toBeGreaterThan(300);
    await expectAccessible();
    // Nothing is cut off at the edge, whatever the length of the values.
    await visit.go('#/clocks');
    const edges = await page.$$eval('.row:last-child .cell', (cells) =>
      cells.map((cell) => cell.getBoundingClientRect().right),
    );
    expect(edges).toHaveLength(5);
    expect(Math.max(...edges)).toBeLessThanOrEqual((await page.locator('.table-body').boundingBox())!.width);
    await visit.go('#/shop');

    await page.getByRole('button', { name: 'Fields' }).tap();
    await page
      .getByRole('list', { name: 'Values of level' })
      .getByRole('button', { name: 'warn' })
      .first()
      .tap();
    await expect.poll(() => addressIn(page)).toBe('#/shop?level__exact=warn');
    await page.getByRole('button', { name: 'Close the fields' }).tap();
    await expect.poll(async () => (await cursorsInSight(page)).length).toBeGreaterThan(5);
    await row.tap();
    const panel = page.locator('.record-panel');
    await expect.poll(async () => (await panel.boundingBox())!.width).toBe(390);
    await panel.getByRole('button', { name: 'Without this host' }).tap();
    await expect.poll(() => addressIn(page)).toContain('host__ne=');
    await expectAccessible();
    await panel.getByRole('button', { name: 'Close the record' }).tap();
    await page.locator('.range button').first().tap();
    const menu = (await page.getByRole('dialog').boundingBox())!;
    expect(menu.x).toBeGreaterThanOrEqual(0);
    expect(menu.x + menu.width).toBeLessThanOrEqual(390);
    await page.keyboard.press('Escape');
    // Turned to landscape and back, or a window that is made narrow.
    await page.setViewportSize({ width: 1000, height: 700 });
    await page.waitForSelector('.fields-pane');
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => page.locator('.fields-pane').count()).toBe(0);
    await expect.poll(widthOf).toBe(390);
  });
}
