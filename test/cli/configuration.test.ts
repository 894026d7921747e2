import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';

it('the server and the command line follow the configuration', async () => {
  const folder = workFolder();
  const port = await freePort();
  writeFileSync(
    join(folder, 'config.yaml'),
    `server:
  listen: 127.0.0.1:${port}
  timezone: +02:00
  limit_max: 50
  cors: { origin: https://logs.example.com }
storage: { path: elsewhere }
`,
  );
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  expect(existsSync(join(folder, 'elsewhere/nginx'))).toBe(true);
  const server = start(folder, ['serve']);
  await server.shows(`serving  http://127.0.0.1:${port}/api/query/<agent>`);
  const ask = (query: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetchAlone(`http://127.0.0.1:${port}/api/query/nginx?${query}`, headers);

  // 00:00 of the 19th at +02:00.
  const since = recordsOf(await (await ask('time__until=2026-11-19&limit=1')).text());
  const newest = Number(since[0]!.time);
  expect(newest).toBeLessThan(Date.UTC(2026, 10, 18, 22));
  expect(newest).toBeGreaterThan(Date.UTC(2026, 10, 18, 21));
  const asked = await run(folder, ['query', 'nginx', 'time__until=2026-11-19', '--limit', '1']);
  expect(recordsOf(asked.stdout)).toEqual(since);

  expect(recordsOf(await (await ask('')).text())).toHaveLength(50);
  expect(recordsOf((await run(folder, ['query', 'nginx'])).stdout)).toHaveLength(50);
  const tooMany = await ask('limit=51');
  expect(tooMany.status).toBe(400);
  expect(await tooMany.text()).toContain('the maximum of 50 records');

  const allowed = await ask('limit=1', { Origin: 'https://logs.example.com' });
  expect(allowed.headers.get('Access-Control-Allow-Origin')).toBe('https://logs.example.com');
  await allowed.text();
});

it('without a configuration, an answer has 100 records unless more are requested', async () => {
  const folder = workFolder();
  const port = await freePort();
  const server = start(folder, ['demo', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  const count = async (query: string): Promise<number> =>
    recordsOf(await (await fetchAlone(`http://127.0.0.1:${port}/api/query/nginx${query}`)).text()).length;
  expect(await count('')).toBe(100);
  expect(await count('?limit=101')).toBe(101);
  expect(recordsOf((await run(folder, ['query', 'nginx'])).stdout)).toHaveLength(100);
});
