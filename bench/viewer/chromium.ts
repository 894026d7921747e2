import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

/** Paths at which systems have Chromium or a browser based on it. */
const places = [
  process.env['LOGSTRATA_CHROMIUM'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** The path of the browser; undefined where this machine has none. */
export const browserPath = places.find((place) => place !== '' && existsSync(place));

/** Starts the browser with a temporary profile. */
export function launchChromium(args: readonly string[] = []): Promise<Browser> {
  if (browserPath === undefined)
    throw new Error('there is no Chromium on this machine (LOGSTRATA_CHROMIUM names one)');
  return chromium.launch({
    executablePath: browserPath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
      ...args,
    ],
  });
}
