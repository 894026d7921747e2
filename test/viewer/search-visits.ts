import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { addressIn, expectRun } from './browser.js';
import type { Visit } from './visit.js';

/** Searches of several terms, filters joined by "or", fields without a value, and queries that the server refuses. */
export function searchVisits(visit: Visit): void {
  const { served } = visit;
  let page: Page;

  beforeEach(async () => {
    ({ page } = visit);
    await visit.go('#/shop');
  });

  const words = (count: number): string =>
    `${count.toLocaleString('en-US')} ${count === 1 ? 'record' : 'records'}`;
  /** Waits until the page shows the records of a query, and has counted them. */
  const expectAnswer = async (agent: string, query: string): Promise<void> => {
    const cursors = await served.cursors(agent, query);
    await expect.poll(() => page.textContent('.match-count')).toBe(words(cursors.length));
    await expectRun(page, cursors);
  };
  const search = async (text: string): Promise<void> => {
    await page.locator('#search').fill(text);
    await page.locator('#search').press('Enter');
    await expect.poll(() => addressIn(page).replaceAll('+', ' ')).toContain(`text=${text}`);
  };
  const button = (name: string) => page.getByRole('button', { name, exact: true });

  it('a search finds records with all its terms, and without the excluded ones', async () => {
    await search('order placed -"in Oslo" -Gent');
    await expectAnswer('shop', '*__like=order&*__like=placed&*__not_like=in Oslo&*__not_like=gent');
    await search('receipt or "no space" Zoë');
    await expectAnswer('shop', 'any=*__like%3Dreceipt&any=*__like%3Dno space&*__like=zoë');
    const marks = new Set(await page.locator('.row mark').allTextContents());
    expect([...marks].sort()).toEqual(['Zoë', 'receipt']);
    await search('order -placed or "in Lyon"');
    await expectAnswer('shop', '*__like=order&any=*__not_like%3Dplaced&any=*__like%3Din Lyon');
    await search('/slow query .\\d{4} ms/ or "no space" -/order [1-4]/');
    await expectAnswer(
      'shop',
      'any=*__regex%3Dslow query .\\d{4} ms&any=*__like%3Dno space&*__not_regex=order [1-4]',
    );
    await expect
      .poll(async () =>
        (await page.locator('.row mark').allTextContents()).some((mark) =>
          /^slow query .\d{4} ms$/.test(mark),
        ),
      )
      .toBe(true);
    await page.getByLabel('Field that is searched').selectOption('service');
    await search('mail or pay');
    await expectAnswer('shop', 'any=service__like%3Dmail&any=service__like%3Dpay');
  });

  it('filters are joined by "or", and split, with the keyboard', async () => {
    await visit.go('#/shop?level__exact=error&service__exact=mailer&host__prefix=web');
    await button('Or: add to level is error').press('Enter');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => addressIn(page))
      .toBe('#/shop?host__prefix=web&any=level__exact=error&any=service__exact=mailer');
    const group = page.getByRole('group', { name: 'level is error or service is mailer' });
    expect(await group.count()).toBe(1);
    await expectAnswer('shop', 'host__prefix=web&any=level__exact%3Derror&any=service__exact%3Dmailer');

    await button('Or: add to level is error or service is mailer').press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Field', { exact: true }).selectOption('duration');
    await dialog.getByLabel('Comparison').selectOption('gt');
    // What excludes several values is several filters, so it can't be one of a group.
    expect(await dialog.getByLabel('Comparison').locator('option[value=not_in]').count()).toBe(0);
    await dialog.getByLabel('Value').fill('200');
    await page.keyboard.press('Enter');
    const three = 'any=level__exact%3Derror&any=service__exact%3Dmailer&any=duration__gt%3D200';
    await expectAnswer('shop', `host__prefix=web&${three}`);
    await button('Negate: duration > 200').press('Enter');
    await button('Remove: level is error').press('Enter');
    await expectAnswer('shop', 'host__prefix=web&any=service__exact%3Dmailer&any=duration__lte%3D200');
    await button('or: split before duration ≤ 200').press('Enter');
    await expect
      .poll(() => addressIn(page))
      .toBe('#/shop?host__prefix=web&service__exact=mailer&duration__lte=200');
    await page.goBack();
    await expect
      .poll(() => page.getByRole('group', { name: 'service is mailer or duration ≤ 200' }).count())
      .toBe(1);
  });

  it('records with or without a value of a field are found from its list and from the menu of filters', async () => {
    await visit.go('#/clocks');
    await button('time time').click();
    const time = page.getByRole('group', { name: 'time' });
    await time.getByRole('button', { name: 'has none' }).click();
    await expect.poll(() => addressIn(page)).toBe('#/clocks?time__exists=false');
    await expectAnswer('clocks', 'time__exists=false');
    await time.getByRole('button', { name: 'has a value' }).click();
    await expectAnswer('clocks', 'time__exists=true');
    await time.getByRole('button', { name: 'has a value' }).click();
    await expect.poll(() => addressIn(page)).toBe('#/clocks');
    await page.keyboard.press('f');
    await page.getByLabel('Field', { exact: true }).selectOption('one');
    await page.getByLabel('Comparison').selectOption('not_exists');
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
    await expect.poll(() => page.textContent('.notice-title')).toBe('Nothing matches');
    await button('Negate: one has no value').click();
    await expectAnswer('clocks', 'one__exists=true');
  });

  it('a refused query is reported, beside no figure of the query before it', async () => {
    const figures = (): Promise<number> =>
      page
        .locator('.row, .legend li, .facet-value, .density rect, .thumb:not([hidden]), .visible-mark, .plot')
        .count();
    const refusals: readonly (readonly [hash: string, detail: string])[] = [
      ['#/shop?nothing__eq=1', 'unknown field "nothing"'],
      ['#/shop?duration__gt=soon', 'duration__gt'],
      ['#/shop?level__gt=1', 'has no operator "gt"'],
      ['#/shop?any=duration__gt%3Dsoon&any=level__exact%3Derror', 'any'],
      [`#/shop?text=${'a or b '.repeat(10)}`, 'at most 9 groups'],
      ['#/shop?text=order+/a(b/', 'at character 4: missing closing )'],
      [`#/shop?text=/${'a'.repeat(1001)}/`, 'too long: 1001 characters'],
      ['#/nobody', 'nobody'],
    ];
    for (const [hash, detail] of refusals) {
      await visit.go('#/shop?level__exact=error');
      await expectAnswer('shop', 'level__exact=error');
      await page.waitForSelector('.facet-values:not(.is-stale)');
      await page.waitForSelector('.legend li');
      await page.waitForSelector('.thumb');
      await page.evaluate((to) => (location.hash = to), hash);
      await expect.poll(() => page.locator('.notice-detail').textContent()).toContain(detail);
      await expect.poll(figures).toBe(0);
      expect(await page.textContent('.match-count')).toBe('not counted');
      expect(await page.textContent('.status-cost')).toBe('');
      await page.keyboard.press('d');
      expect(await page.getByRole('dialog').textContent()).not.toMatch(/\d records match/);
      await page.keyboard.press('Escape');
    }
  });
}
