import { expect, it, onTestFinished } from 'vitest';
import { launchChromium } from '../../bench/viewer/chromium.js';
import { closePage, cursorsInSight, describeInBrowser, openPage } from './browser.js';
import { ServedViewer } from './served-viewer.js';

// The walk of the short run: everything else of the page is tested by the rest.
describeInBrowser('the first page', () => {
  it('shows the newest records of an agent', async () => {
    const served = new ServedViewer();
    onTestFinished(() => served.remove());
    served.addAgent(
      'web',
      `fields:\n  - { name: time, type: time }\n  - name: message\nfile: { path: 'logs/web\\.log', format: json }\n`,
    );
    const startMs = Date.now() - 3_600_000;
    await served.loadLines(
      'web',
      Array.from({ length: 300 }, (_, i) => ({ time: startMs + i * 1000, message: `line ${i}` })),
    );
    await served.start();
    const browser = await launchChromium([]);
    onTestFinished(() => browser.close());
    const page = await openPage(browser, {});
    await page.goto(`${served.address}/#/web`);
    await page.waitForSelector('.row');
    const all = await served.cursors('web');
    await expect.poll(async () => (await cursorsInSight(page)).at(-1)).toBe(all.at(-1));
    const shown = await cursorsInSight(page);
    expect(shown).toEqual(all.slice(-shown.length));
    expect(await page.textContent(`.row[data-cursor="${all.at(-1)}"]`)).toContain('line 299');
    await closePage(page);
  });
});
