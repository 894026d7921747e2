import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './here.js';
import { recordsOf, workFolder } from './process.js';

const fields = `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - name: uri
    source: request.uri
  - name: status
    type: int
    source: response.status
  - name: call
    template: '{{index . "request.method"}} {{index . "request.uri"}}'
`;

/** A folder with the agent `shop` for a line format, and a log in that format. */
function folderOf(format: string, lines: readonly string[]): string {
  const folder = workFolder();
  const agent = `${fields}file: { path: '../logs/shop\\.log', format: ${format} }\n`;
  writeFileSync(join(folder, 'agents/shop.yaml'), agent);
  writeFileSync(join(folder, 'shop.log'), lines.map((line) => `${line}\n`).join(''));
  return folder;
}

describe('JSON lines', () => {
  const line = (uri: string): string =>
    JSON.stringify({
      time: '2026-11-17T10:00:00Z',
      request: { method: 'GET', uri },
      response: { status: 503, body: { status: 1 } },
    });

  it('are loaded and shown by the paths that fields name', async () => {
    // Enough lines to be decoded many at once.
    const uris = Array.from({ length: 50 }, (_, i) => `/${i}/"x"`);
    const folder = folderOf('json', uris.map(line));
    expect(await run(folder, ['load', 'shop', 'shop.log'])).toMatchObject({ code: 0 });
    const answered = recordsOf((await run(folder, ['query', 'shop'])).stdout);
    const time = Date.UTC(2026, 10, 17, 10);
    expect(answered.map(({ time, uri, status, call }) => ({ time, uri, status, call }))).toEqual(
      uris.map((uri) => ({ time, uri, status: 503, call: `GET ${uri}` })),
    );
    const checked = await run(folder, ['check', 'shop', '--line', line('/a')]);
    expect(checked.code).toBe(0);
    expect(checked.stdout).toMatch(/^ {2}request\.uri +"\/a"$/m);
    expect(checked.stdout).toMatch(/^ {2}uri +string +"\/a"$/m);
    expect(checked.stdout).toMatch(/^ {2}call +string +"GET \/a"$/m);
    expect(checked.stdout).toMatch(/^ {2}status +int +503$/m);
  });
});

describe('logfmt lines', () => {
  const line = (uri: string): string =>
    `time=2026-11-17T10:00:00Z request.method=GET request.uri=${uri} response.status=503 debug`;

  it('are loaded and shown, and are kept with the reason if they are rejected', async () => {
    const folder = folderOf('logfmt', [line('/a?b=c'), 'server started', line('"/\\"x\\" y"'), 'uri="/z']);
    const loaded = await run(folder, ['load', 'shop', 'shop.log']);
    expect(loaded.stdout).toContain('2 lines rejected');
    const answered = recordsOf((await run(folder, ['query', 'shop'])).stdout);
    const time = Date.UTC(2026, 10, 17, 10);
    expect(answered.map(({ time, uri, status, call }) => ({ time, uri, status, call }))).toEqual([
      { time, uri: '/a?b=c', status: 503, call: 'GET /a?b=c' },
      { time, uri: '/"x" y', status: 503, call: 'GET /"x" y' },
    ]);
    const checked = await run(folder, ['check', 'shop', '--line', line('/a')]);
    expect(checked.code).toBe(0);
    expect(checked.stdout).toMatch(/^ {2}debug +"true"$/m);
    expect(checked.stdout).toMatch(/^ {2}uri +string +"\/a"$/m);
    const rejected = await run(folder, ['check', 'shop', '--line', 'uri="/z']);
    expect(rejected.code).toBe(1);
    expect(rejected.stdout).toContain(
      'is not logfmt: at column 8, its end, expected a quotation mark that ends the value',
    );
    expect((await run(folder, ['check', 'shop'])).stdout).toContain('reads logfmt lines of');
  });
});
