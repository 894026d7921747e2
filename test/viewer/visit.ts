import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { isLong } from '../cases.js';
import { launchChromium } from '../../bench/viewer/chromium.js';
import { damageStore } from '../../bench/viewer/damaged-store.js';
import { closePage, openPage } from './browser.js';
import { ServedViewer } from './served-viewer.js';

const blank = 'about:blank';
const days = 10;
/** The shop's records end at the last midnight, so that a range up to now contains some. */
export const shop = {
  records: isLong ? 10_000_000 : 100_000,
  startMs: Math.floor(Date.now() / 86_400_000 - days) * 86_400_000,
  days,
  seed: 7,
};
/** All records of the agent `ties` have this time. */
export const tieMs = shop.startMs + 3_600_000;
export const tieCount = 1500;

/** Number of records of each of the agents `east` and `west`, which are together in a table. */
export const severalCount = 400;

const agentOf = (fields: string, log: string): string =>
  `fields:\n${fields}file: { path: '../logs/${log}\\.log', format: json }\n`;
const timeAndMessage = '  - { name: time, type: time }\n  - name: message\n';

/** State that all browser tests share: the browser, a server with agents of each kind, and the page that a test looks at. */
export class Visit {
  readonly served = new ServedViewer();
  /** The cursors of all records of the shop, the oldest first. */
  all: readonly string[] = [];
  private browser: Browser | undefined;
  private shown: Page | undefined;
  private origin = '';

  get page(): Page {
    if (this.shown === undefined) throw new Error('no page is open');
    return this.shown;
  }

  async begin(): Promise<void> {
    const { served } = this;
    await served.loadShop('shop', shop);
    served.addAgent('empty', agentOf(timeAndMessage, 'empty'));
    served.addAgent('live', agentOf(timeAndMessage, 'live'));
    served.addAgent('ties', agentOf(`${timeAndMessage}  - { name: status, type: int }\n`, 'ties'));
    served.addAgent('damaged', agentOf(timeAndMessage, 'damaged'));
    const statuses = [200, 200, 200, 404, 503];
    await served.loadLines(
      'ties',
      Array.from({ length: tieCount }, (_, i) => ({
        time: tieMs,
        message: `line ${i}`,
        status: statuses[i % 5],
      })),
    );
    await served.loadLines(
      'damaged',
      Array.from({ length: 5000 }, (_, i) => ({ time: tieMs + i, message: `line ${i} ${Math.sin(i)}` })),
    );
    const level = '  - name: level\n';
    served.addAgent('live-one', agentOf(timeAndMessage, 'live-one'));
    served.addAgent('live-two', agentOf(timeAndMessage, 'live-two'));
    served.addAgent('east', agentOf(`${timeAndMessage}${level}  - { name: ms, type: int }\n`, 'east'));
    served.addAgent('west', agentOf(`${timeAndMessage}${level}  - name: region\n`, 'west'));
    for (const [agent, byMs, more] of [
      ['east', 0, { ms: 12 }],
      ['west', 30_000, { region: 'r1' }],
    ] as const)
      await served.loadLines(
        agent,
        Array.from({ length: severalCount }, (_, i) => ({
          time: tieMs + i * 60_000 + byMs,
          message: `line ${i} of ${agent}`,
          level: i % 40 === 0 ? 'error' : 'info',
          ...more,
        })),
      );
    served.addAgent('texts', agentOf(timeAndMessage, 'texts'));
    await served.loadLines('texts', [
      { time: tieMs, message: 'it failed\n  at the pool\r\n  at the store' },
      { time: tieMs + 1, message: 'long '.repeat(300) },
    ]);
    const ids = ['one', 'two', 'three'].map((name) => `  - name: ${name}\n`).join('');
    served.addAgent('clocks', agentOf(`${timeAndMessage}${ids}`, 'clocks'));
    const values = { one: '1'.repeat(18), two: '2'.repeat(18), three: '3'.repeat(60) };
    await served.loadLines(
      'clocks',
      [-600_000, -300_000, undefined, 60 * 86_400_000].map((byMs) => ({
        ...(byMs === undefined ? {} : { time: Date.now() + byMs }),
        message: 'of a wrong clock, perhaps',
        ...values,
      })),
    );
    damageStore(served.folder, 'damaged');
    await served.start();
    // The wheel scrolls at once: smooth scrolling takes time and tests nothing more.
    this.browser = await launchChromium(['--disable-smooth-scrolling']);
    this.all = await served.cursors('shop');
  }

  async end(): Promise<void> {
    await this.browser?.close();
    await this.served.remove();
  }

  /** Opens a window like a first-time visitor's, in which `go` shows a page. */
  async open(options: BrowserContextOptions = {}, origin = this.served.address): Promise<Page> {
    await this.close();
    this.shown = await openPage(this.browser!, options);
    this.origin = origin;
    return this.shown;
  }

  /** Closes the window, and fails if it has logged an error. */
  async close(): Promise<void> {
    const { shown } = this;
    this.shown = undefined;
    if (shown !== undefined) await closePage(shown);
  }

  /** Opens an address like a user who types it, and waits for rows or for the text in their place. */
  async go(hash: string): Promise<void> {
    if (this.page.url() !== blank) await this.page.goto(blank);
    await this.page.goto(`${this.origin}/${hash}`);
    await this.page.waitForSelector('.row, .notice');
  }

  /** Loads the page again, and waits like `go`: keys that are pressed before its script runs have no effect. */
  async reload(): Promise<void> {
    await this.page.reload();
    await this.page.waitForSelector('.row, .notice');
  }
}
