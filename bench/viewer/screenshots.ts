#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { packageRoot } from '../../server/cli/options/package-root.js';
import { launchChromium } from './chromium.js';
import { shopAgent, shopLines } from './shop-log.js';
import { makeStore, serveStore } from './stored-log.js';

/** One picture of docs/viewer.md. */
interface Picture {
  readonly name: string;
  /** The address behind `#/shop`. */
  readonly view?: string;
  readonly options?: BrowserContextOptions;
  /** What somebody does before it is taken. */
  readonly act?: (page: Page) => Promise<void>;
}

const wide = { width: 1200, height: 720 };
/** Room for a record beside the table. */
const wider = { width: 1440, height: 780 };
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
const openLast = (page: Page): Promise<void> => page.locator('.row').last().click();
const press =
  (key: string) =>
  (page: Page): Promise<void> =>
    page.keyboard.press(key);

const pictures: readonly Picture[] = [
  { name: 'viewer' },
  {
    name: 'viewer-record',
    view: '?level__exact=error',
    options: { colorScheme: 'dark', viewport: wider },
    act: openLast,
  },
  { name: 'viewer-search', view: '?text=krak&columns=time,level,context:400,message' },
  {
    name: 'viewer-context',
    view: '?level__exact=error',
    options: { viewport: wider },
    act: async (page) => {
      await page.locator('.row').nth(30).click();
      await page.keyboard.press('c');
      await page.waitForSelector('.context-line');
    },
  },
  { name: 'viewer-range', options: { colorScheme: 'dark' }, act: press('t') },
  { name: 'viewer-no-match', view: '?level__exact=error&service__exact=nobody&text=declined' },
  { name: 'viewer-phone', options: phone },
  {
    name: 'viewer-phone-record',
    view: '?level__exact=warn',
    options: { ...phone, colorScheme: 'dark' },
    act: openLast,
  },
];

/** Long enough for counts and for what moves. */
const settleMs = 1500;
/** They are part of what people download with the source. */
const bytesMax = 150_000;

async function take(browser: Browser, address: string, picture: Picture): Promise<void> {
  const { name, view = '', options = {}, act } = picture;
  const context = await browser.newContext({
    viewport: wide,
    timezoneId: 'UTC',
    locale: 'en-GB',
    ...options,
  });
  const page = await context.newPage();
  await page.goto(`${address}/#/shop${view}`);
  await page.waitForSelector('.row, .notice');
  await page.waitForTimeout(settleMs);
  await act?.(page);
  await page.waitForTimeout(settleMs);
  const path = join(packageRoot(), 'docs', `${name}.png`);
  await page.screenshot({ path });
  await context.close();
  // Where it is installed, which makes them a third as large.
  spawnSync('pngquant', ['--force', '--ext', '.png', '--strip', path]);
  const { size } = statSync(path);
  process.stdout.write(`docs/${name}.png  ${size} bytes${size > bytesMax ? ', which is too large' : ''}\n`);
  if (size > bytesMax) process.exitCode = 1;
}

const folder = mkdtempSync(join(tmpdir(), 'logstrata-screenshots-'));
try {
  const lines = shopLines({ records: 200_000, days: 10, seed: 7, startMs: Date.UTC(2026, 9, 20) });
  await makeStore(folder, { agent: 'shop', yaml: shopAgent, lines });
  const server = await serveStore(folder);
  const browser = await launchChromium();
  for (const picture of pictures) await take(browser, server.console, picture);
  await browser.close();
  await server.stop();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
