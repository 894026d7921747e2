import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { packageRoot } from '../../server/cli/options.js';
import { launchChromium } from './chromium.js';
import { damageStore } from './damaged-store.js';
import { shopAgent, shopLines } from './shop-log.js';
import { askForToken, makeStore, serveStore, type StoredLog } from './stored-log.js';

/** A picture for docs/viewer.md. */
interface Picture {
  readonly name: string;
  /** `shop` by default. */
  readonly agent?: string;
  /** The part of the address after the agent. */
  readonly view?: string;
  readonly options?: BrowserContextOptions;
  /** Actions before the picture is taken. */
  readonly act?: (page: Page) => Promise<void>;
}

const wide = { width: 1200, height: 720 };
/** Wide enough for a record beside the table. */
const wider = { width: 1440, height: 780 };
const phone = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
const openLast = (page: Page): Promise<void> => page.locator('.row').last().click();
const press =
  (key: string) =>
  (page: Page): Promise<void> =>
    page.keyboard.press(key);

const folder = mkdtempSync(join(tmpdir(), 'logstrata-screenshots-'));
const startMs = Date.UTC(2026, 9, 20);

/** Lines that are written while the viewer follows the log. */
const later = shopLines({ records: 5000, days: 1, seed: 3, startMs });

function write(count: number): void {
  const lines = Array.from({ length: count }, () => `${later.next().value}\n`);
  appendFileSync(join(folder, 'logs/live.log'), lines.join(''));
}

const pictures: readonly Picture[] = [
  { name: 'viewer' },
  {
    name: 'viewer-record',
    view: '?level__exact=error',
    options: { colorScheme: 'dark', viewport: wider },
    act: openLast,
  },
  { name: 'viewer-agents', agent: 'shop,stock,mail', view: '?line=duration:p95' },
  {
    name: 'viewer-search',
    view: '?any=level__exact%3Derror&any=duration__gt%3D150&text=krak+or+tromsø+-placed&columns=time,level,context:400,message',
  },
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
  {
    name: 'viewer-live',
    agent: 'live',
    view: '?live=1',
    act: async (page) => {
      await page.waitForSelector('.live.is-open');
      await page.mouse.move(700, 500);
      await page.mouse.wheel(0, -900);
      await page.waitForTimeout(settleMs);
      write(140);
      await page.waitForSelector('.held .button');
    },
  },
  { name: 'viewer-damaged', agent: 'damaged' },
  { name: 'viewer-no-match', view: '?level__exact=error&service__exact=nobody&text=declined' },
  { name: 'viewer-phone', options: phone },
  {
    name: 'viewer-phone-record',
    view: '?level__exact=warn',
    options: { ...phone, colorScheme: 'dark' },
    act: openLast,
  },
];

/** The picture of a server that asks for a token. */
const guarded: Picture = {
  name: 'viewer-token',
  options: { colorScheme: 'dark' },
  act: async (page) => {
    await page.locator('.notice').getByLabel('Token').fill('logstrata_00000000_mistyped');
    await page.keyboard.press('Enter');
  },
};

/** Milliseconds that counts and animations take. */
const settleMs = 1500;
/** Maximum size of a picture: pictures are downloaded with the source. */
const bytesMax = 150_000;

async function take(browser: Browser, address: string, picture: Picture): Promise<void> {
  const { name, agent = 'shop', view = '', options = {}, act } = picture;
  const context = await browser.newContext({
    viewport: wide,
    timezoneId: 'UTC',
    locale: 'en-GB',
    ...options,
  });
  const page = await context.newPage();
  await page.goto(`${address}/#/${agent}${view}`);
  await page.waitForSelector('.row, .notice');
  await page.waitForTimeout(settleMs);
  await act?.(page);
  await page.waitForTimeout(settleMs);
  const path = join(packageRoot(), 'docs', `${name}.png`);
  await page.screenshot({ path });
  await context.close();
  // Reduces the size to a third where pngquant is installed.
  spawnSync('pngquant', ['--force', '--ext', '.png', '--strip', path]);
  const { size } = statSync(path);
  process.stdout.write(`docs/${name}.png  ${size} bytes${size > bytesMax ? ', which is too large' : ''}\n`);
  if (size > bytesMax) process.exitCode = 1;
}

/** The shop's records under another agent name. */
function logOf(agent: string, records: number, seed = 7): StoredLog {
  const yaml = shopAgent.replace('logs/shop', `../logs/${agent}`);
  return { agent, yaml, lines: shopLines({ records, days: 10, seed, startMs }) };
}

try {
  const other = join(folder, 'guarded');
  mkdirSync(join(folder, 'logs'));
  // So many records that none is left in a hot segment.
  for (const log of [logOf('shop', 200_000), logOf('damaged', 65_536), logOf('live', 0)])
    await makeStore(folder, log);
  for (const [i, agent] of ['stock', 'mail'].entries()) await makeStore(folder, logOf(agent, 100_000, 8 + i));
  damageStore(folder, 'damaged');
  write(600);
  await makeStore(other, logOf('shop', 1000));
  askForToken(other);
  const browser = await launchChromium();
  const server = await serveStore(folder, []);
  for (const picture of pictures) await take(browser, server.console, picture);
  await server.stop();
  const guard = await serveStore(other);
  await take(browser, guard.console, guarded);
  await guard.stop();
  await browser.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
