import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { startConsole } from '../../server/console/console.js';
import { readViewerFiles, ViewerRoute } from '../../server/console/viewer-route.js';

/** The maximum size of the whole viewer as it is sent to a browser. */
const packedBytesMax = 120_000;

async function served(): Promise<string> {
  const address = { host: '127.0.0.1', port: 0 };
  const running = await startConsole({ address, hosts: [], clientTimeoutMs: 1000, log: () => undefined });
  onTestFinished(() => running.close({ timeoutMs: 0 }));
  running.open({ '/': new ViewerRoute() }, () => Promise.resolve([]));
  return running.address;
}

/** Fetches without the content decoding of a browser. */
function ask(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(url, { method, headers: { 'accept-encoding': 'identity', connection: 'close', ...headers } });
}

it('the viewer is small', () => {
  const files = [...readViewerFiles().values()];
  const packed = files.reduce((sum, { bytes }) => sum + gzipSync(bytes, { level: 9 }).length, 0);
  expect(files.length).toBeGreaterThan(2);
  expect(packed).toBeGreaterThan(20_000);
  expect(packed).toBeLessThanOrEqual(packedBytesMax);
});

it('the page has a content security policy that its files satisfy: all come from this server, and none is inline', async () => {
  const address = await served();
  const page = await ask(`${address}/`);
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const policy = page.headers.get('content-security-policy')!;
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
  expect(page.headers.get('cache-control')).toBe('no-cache');
  expect(page.headers.get('x-content-type-options')).toBe('nosniff');
  const html = await page.text();
  const named = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, name]) => name!);
  expect(named.length).toBeGreaterThanOrEqual(3);
  for (const name of named) {
    expect(name).toMatch(/^\.\/assets\//);
    expect((await ask(new URL(name, `${address}/`).href)).status).toBe(200);
  }
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*\bsrc=)|\bon[a-z]+=/);
});

it('files whose names contain a hash of their content are cached for ever, and others are revalidated', async () => {
  const address = await served();
  const names = [...readViewerFiles().keys()].filter((name) => name.startsWith('/assets/'));
  expect(names.map((name) => name.split('.').at(-1)).sort()).toEqual(
    expect.arrayContaining(['css', 'js', 'svg']),
  );
  for (const name of names) {
    const { headers } = await ask(`${address}${name}`);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('content-type')).toMatch(/^(text\/(javascript|css); charset=utf-8|image\/svg\+xml)$/);
  }
  const page = await ask(`${address}/`);
  const etag = page.headers.get('etag')!;
  const known = await ask(`${address}/`, { 'if-none-match': `"other", W/${etag}` });
  expect([known.status, await known.text()]).toEqual([304, '']);
  expect((await ask(`${address}/`, { 'if-none-match': '"other"' })).status).toBe(200);
  const head = await ask(`${address}/`, {}, 'HEAD');
  expect([head.status, await head.text()]).toEqual([200, '']);
  expect(head.headers.get('content-length')).toBe(String((await page.text()).length));
});

it('a file is sent compressed to clients that accept that, with an ETag of its own', async () => {
  const address = await served();
  const [name, file] = [...readViewerFiles()].find(([path]) => path.endsWith('.js'))!;
  const plain = await ask(`${address}${name}`);
  expect(Buffer.from(await plain.arrayBuffer())).toEqual(file.bytes);
  const packed = await ask(`${address}${name}`, { 'accept-encoding': 'gzip' });
  expect(packed.headers.get('content-encoding')).toBe('gzip');
  expect(packed.headers.get('vary')).toBe('Accept-Encoding');
  expect(packed.headers.get('etag')).not.toBe(plain.headers.get('etag'));
  expect(gunzipSync(file.gzip!)).toEqual(file.bytes);
  expect(Buffer.from(await packed.arrayBuffer())).toEqual(file.bytes);
});

it('nothing else is served', async () => {
  const address = await served();
  for (const path of [
    '/index.html',
    '/assets',
    '/assets/',
    '/../package.json',
    '/%2e%2e/package.json',
    '/main.tsx',
  ])
    expect((await ask(`${address}${path}`)).status, path).toBe(404);
  expect((await ask(`${address}/`, {}, 'POST')).status).toBe(405);
});
