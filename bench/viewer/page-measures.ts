import type { Browser, CDPSession, Page } from 'playwright-core';
import { launchChromium } from './chromium.js';

const viewport = { width: 1440, height: 900 };

/** Milliseconds from the request of the page to the first rows, for each of several pages. */
export async function measureFirstRows(address: string, pages: number): Promise<readonly number[]> {
  const browser = await launchChromium();
  try {
    const times: number[] = [];
    for (let i = 0; i < pages; i++) times.push(await firstRows(browser, address));
    return times;
  } finally {
    await browser.close();
  }
}

/** Script that determines when the frame with the first rows was drawn, relative to the request of the page. */
const noteFirstRows = `
  window.firstRows = new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (document.querySelector('.row') === null) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    }).observe(document, { childList: true, subtree: true });
  });
`;

/** Measures a page in a new context, so with an empty cache. */
async function firstRows(browser: Browser, address: string): Promise<number> {
  const context = await browser.newContext({ viewport });
  try {
    const page = await context.newPage();
    await page.addInitScript(noteFirstRows);
    const session = await context.newCDPSession(page);
    await page.goto(address, { waitUntil: 'commit' });
    // Evaluated through CDP: Playwright's own evaluation injects a script to find elements, which would block the page's thread for 30 ms
    // in the middle of the measurement.
    const { result } = await session.send('Runtime.evaluate', {
      expression: 'window.firstRows',
      awaitPromise: true,
      returnByValue: true,
    });
    return Number(result.value);
  } finally {
    await context.close();
  }
}

/** The result of scrolling. */
export interface Scrolling {
  readonly records: number;
  readonly seconds: number;
  /** Milliseconds between consecutive frames. */
  readonly frames: {
    readonly count: number;
    readonly medianMs: number;
    readonly p99Ms: number;
    readonly maxMs: number;
    readonly over100Ms: number;
  };
  /** The longest time in which there was nothing to scroll to. */
  readonly stillMaxMs: number;
  /** Size of the JavaScript heap after garbage collection: before scrolling, its maximum, and at the end. */
  readonly heapBytes: { readonly before: number; readonly max: number; readonly after: number };
  /** Number of elements in the page at the end. */
  readonly nodes: number;
}

/**
 * Script that scrolls back by `pixels` per frame until pages with `records` records were added. It runs within the page, so that it does
 * not wait for another process.
 */
const scroll = `async ({ records, pixels }) => {
  const rows = document.getElementById('rows');
  const state = (window.scrolled ??= { gaps: [], still: 0 });
  let passed = 0;
  const observer = new MutationObserver((changes) => {
    for (const { addedNodes } of changes)
      for (const node of addedNodes) if (node.classList?.contains('page-rows')) passed += node.childElementCount;
  });
  observer.observe(rows, { childList: true });
  let last = performance.now();
  let movedMs = last;
  while (passed < records) {
    const room = rows.scrollTop;
    rows.scrollTop = room - pixels;
    const now = await new Promise((resolve) => requestAnimationFrame(() => resolve(performance.now())));
    state.gaps.push(now - last);
    last = now;
    if (room > 0) movedMs = now;
    else state.still = Math.max(state.still, now - movedMs);
  }
  observer.disconnect();
  return passed;
}`;

async function heapBytes(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'JSHeapUsedSize')!.value;
}

/** Number of parts into which scrolling is divided; memory is measured after each. */
const parts = 20;

/** Measures scrolling back over `records` records, from the newest. */
export async function measureScrolling(address: string, records: number, pixels: number): Promise<Scrolling> {
  const browser = await launchChromium();
  try {
    const page = await (await browser.newContext({ viewport })).newPage();
    await page.goto(address);
    await page.waitForSelector('.row');
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    const before = await heapBytes(session);
    let max = before;
    let after = before;
    let passed = 0;
    let seconds = 0;
    for (let part = 0; part < parts && passed < records; part++) {
      const startMs = performance.now();
      const ask = { records: Math.ceil(records / parts), pixels };
      passed += await page.evaluate<number>(`(${scroll})(${JSON.stringify(ask)})`);
      seconds += (performance.now() - startMs) / 1000;
      after = await heapBytes(session);
      max = Math.max(max, after);
    }
    return { records: passed, seconds, ...(await figuresOf(page)), heapBytes: { before, max, after } };
  } finally {
    await browser.close();
  }
}

async function figuresOf(page: Page): Promise<Pick<Scrolling, 'frames' | 'stillMaxMs' | 'nodes'>> {
  const { gaps, still } = await page.evaluate<{ gaps: number[]; still: number }>('window.scrolled');
  const sorted = gaps.sort((a, b) => a - b);
  const share = (of: number): number => sorted[Math.floor((sorted.length - 1) * of)] ?? 0;
  const nodes = await page.evaluate<number>("document.querySelectorAll('*').length");
  return {
    frames: {
      count: sorted.length,
      medianMs: share(0.5),
      p99Ms: share(0.99),
      maxMs: share(1),
      over100Ms: sorted.filter((gap) => gap > 100).length,
    },
    stillMaxMs: still,
    nodes,
  };
}
