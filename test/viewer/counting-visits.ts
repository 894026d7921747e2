import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { addressIn, expectRun, rowCursors } from './browser.js';
import { shop, tieCount, type Visit } from './visit.js';

interface Counted {
  readonly count: number;
  readonly values: { readonly top: readonly { readonly value: string | number; readonly count: number }[] };
}

/** The histogram, and the most frequent values of fields. */
export function countingVisits(visit: Visit): void {
  const { served } = visit;
  let page: Page;

  beforeEach(() => void ({ page } = visit));

  const counts = async (agent: string, query: string): Promise<Counted> =>
    JSON.parse(await served.ask(`/api/count/${agent}?${query}`)) as Counted;
  const legend = (): Promise<string[]> =>
    page.$$eval('.legend li', (items) => items.map((item) => item.textContent.trim().replace(/\s+/g, ' ')));
  const worstFirst = ['error', 'warn', 'info', 'debug'];

  it('the histogram is by level, counts all matching records, and can be split by another field', async () => {
    await visit.go('#/shop');
    const { values } = await counts('shop', 'by=level');
    const expected = worstFirst.map((level) => {
      const { count } = values.top.find(({ value }) => value === level)!;
      return `${level} ${count.toLocaleString('en-US')}`;
    });
    await expect.poll(legend).toEqual(expected);
    await expect
      .poll(() => page.textContent('.match-count'))
      .toBe(`${shop.records.toLocaleString('en-US')} records`);
    expect((await rowCursors(page)).length).toBeLessThanOrEqual(600);
    // The description of each bar does not depend on colours.
    const plot = (await page.locator('.plot .u-over').boundingBox())!;
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 10);
    await expect.poll(() => page.textContent('.step-tip')).toMatch(/\d records.*info [\d,]+/);

    await page.getByLabel('Field that the bars are split by').selectOption('host');
    await expect.poll(legend).toHaveLength(4);
    expect(addressIn(page)).toBe('#/shop?split=host');
    await page.locator('.legend').getByRole('button', { name: 'web-2' }).click();
    await expect.poll(() => addressIn(page)).toBe('#/shop?host__exact=web-2&split=host');
    await expectRun(page, await served.cursors('shop', 'host__exact=web-2'));
  });

  it('the histogram is by status if there is no level, and shows errors separately from other statuses', async () => {
    await visit.go('#/ties');
    await expect
      .poll(legend)
      .toEqual([`503 ${tieCount / 5}`, `404 ${tieCount / 5}`, `200 ${(3 * tieCount) / 5}`]);
  });

  it('one record far in the future leaves room for the others, and records without a bar are told', async () => {
    const head = page.locator('.histogram-head');
    const plot = page.locator('.plot-canvas');
    await visit.go('#/clocks?last=1h');
    await expect.poll(() => page.textContent('.match-count')).toBe('3 records');
    await expect.poll(() => head.textContent()).toContain('a bar is 2m');
    expect(await head.textContent()).toContain('1 record not in the bars');
    await expect.poll(() => plot.getAttribute('aria-label')).toBe('Histogram of 2 records over time');
    await visit.go('#/clocks');
    await expect.poll(() => page.textContent('.match-count')).toBe('4 records');
    await expect.poll(() => head.textContent()).toContain('1 record not in the bars');
    await visit.go('#/ties');
    await expect.poll(() => page.textContent('.match-count')).toBe('1,500 records');
    expect(await head.textContent()).not.toContain('not in the bars');
  });

  it('a number of a field is drawn as a line over the bars, with its own scale', async () => {
    await visit.go('#/shop');
    const of = page.getByLabel('Number that is drawn as a line');
    await of.selectOption('duration:p95');
    await expect.poll(() => addressIn(page)).toBe('#/shop?line=duration:p95');
    const plot = page.locator('.plot-canvas');
    const words = /^Histogram of [\d,]+ records over time, with p95 of duration from ([\d.]+) to ([\d.]+)$/;
    await expect.poll(() => plot.getAttribute('aria-label')).toMatch(words);
    const { time } = JSON.parse(
      await served.ask('/api/count/shop?by=time:3h&zone=Europe/Oslo&of=duration&fn=p95'),
    ) as {
      readonly time: {
        readonly buckets: readonly { readonly of: { readonly duration: { readonly p95: number } } }[];
      };
    };
    const numbers = time.buckets.map(({ of: { duration } }) => duration.p95);
    const shown = (value: number): string => String(Number(value.toPrecision(3)));
    const ends = [shown(Math.min(...numbers)), shown(Math.max(...numbers))];
    expect(words.exec((await plot.getAttribute('aria-label'))!)!.slice(1)).toEqual(ends);
    expect(await page.locator('.line-scale span').allTextContents()).toEqual(ends.toReversed());
    const over = (await page.locator('.plot .u-over').boundingBox())!;
    await page.mouse.move(over.x + 1, over.y + 10);
    await expect.poll(() => page.textContent('.step-tip')).toContain('p95 duration ');
    const tip = (await page.textContent('.step-tip'))!;
    expect(Number(/duration ([\d.]+)/.exec(tip)![1])).toBeGreaterThan(0);
    // The line is drawn: pixels of its colour are on the canvas.
    const colour = await page.$eval('.line-scale', (scale) => getComputedStyle(scale).color);
    const pixels = await page.$eval(
      '.plot canvas',
      (canvas, wanted) => {
        const { width, height } = canvas as HTMLCanvasElement;
        const { data } = (canvas as HTMLCanvasElement).getContext('2d')!.getImageData(0, 0, width, height);
        const [red, green, blue] = wanted.match(/\d+/g)!.map(Number);
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
          if (data[i] === red && data[i + 1] === green && data[i + 2] === blue) found += 1;
        return found;
      },
      colour,
    );
    expect(pixels).toBeGreaterThan(100);
    await visit.reload();
    expect(await of.inputValue()).toBe('duration:p95');
    await of.selectOption('none');
    await expect.poll(() => addressIn(page)).toBe('#/shop');
    await expect.poll(() => page.locator('.line-scale').count()).toBe(0);
  });

  it('a click on a value adds it to the filter, or excludes it', async () => {
    await visit.go('#/shop');
    const values = page.getByRole('list', { name: 'Values of service' });
    const shown = (): Promise<string[]> =>
      values
        .locator('.facet-only')
        .evaluateAll((all) =>
          all.map(
            (one) =>
              `${one.querySelector('.facet-text')!.textContent} ${(one.querySelector('.count') as HTMLElement).title}`,
          ),
        );
    const expectValues = async (query: string): Promise<void> => {
      const { values: counted } = await counts('shop', `by=service&top=10${query}`);
      const expected = counted.top.map(({ value, count }) => `${value} ${count.toLocaleString('en-US')}`);
      await expect.poll(shown).toEqual(expected);
    };
    await expectValues('');
    await values.getByRole('button', { name: 'payments' }).first().click();
    await expect.poll(() => addressIn(page)).toBe('#/shop?service__exact=payments');
    await expectRun(page, await served.cursors('shop', 'service__exact=payments'));
    // The other values stay visible, and can be added.
    await expectValues('');
    await values.getByRole('button', { name: 'mailer' }).first().click();
    await expect.poll(() => addressIn(page)).toBe('#/shop?service__in=payments&service__in=mailer');
    await expectRun(page, await served.cursors('shop', 'service__in=payments&service__in=mailer'));
    await values.getByRole('button', { name: 'payments' }).first().click();
    await page.getByRole('button', { name: 'Without service mailer' }).click();
    await expect.poll(() => addressIn(page)).toBe('#/shop?service__ne=mailer');
    await expectRun(page, await served.cursors('shop', 'service__ne=mailer'));
    await page.getByRole('button', { name: 'Without service mailer' }).click();
    await expect.poll(() => addressIn(page)).toBe('#/shop');

    // A field with long values is counted when the user opens it.
    expect(await page.getByRole('list', { name: 'Values of message' }).count()).toBe(0);
    await page.getByRole('button', { name: 'message string' }).click();
    const [first] = (await counts('shop', 'by=message&top=10')).values.top;
    await expect
      .poll(() =>
        page.getByRole('list', { name: 'Values of message' }).locator('.facet-text').first().textContent(),
      )
      .toBe(first!.value);
    await page.getByLabel('Fields whose name contains this').fill('HO');
    await expect.poll(() => page.locator('.field-name').allTextContents()).toEqual(['hoststring']);
  });
}
