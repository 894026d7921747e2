import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';
import { addressesOf, anyPorts } from './serving.js';

it('the console answers like the route, and lists the agents', async () => {
  const folder = workFolder();
  expect((await run(folder, ['load', 'app', 'data/samples/app.log'])).code).toBe(0);
  const server = start(folder, ['serve', '--no-follow', ...anyPorts]);
  const { operators, route } = await addressesOf(server);
  const query = '/api/query/app?level__exact=error&limit=3';
  const asked = await (await fetchAlone(`${operators}${query}`)).text();
  expect(recordsOf(asked)).toHaveLength(3);
  expect(await (await fetchAlone(`${route}${query}`)).text()).toBe(asked);

  const json = async (path: string): Promise<unknown> => (await fetchAlone(`${operators}${path}`)).json();
  expect(await json('/api/agents')).toEqual({ agents: ['app', 'nginx'] });
  expect(await json('/api/schema/app')).toEqual({
    name: 'app',
    schema: [
      { name: 'time', type: 'time' },
      { name: 'level', type: 'string' },
      { name: 'service', type: 'string' },
      { name: 'trace_id', type: 'int' },
      { name: 'duration', type: 'float', description: 'Time that the work took, in milliseconds' },
      { name: 'context', type: 'string' },
      { name: 'message', type: 'string' },
    ],
  });
  expect(await json('/api/schema/nobody')).toMatchObject({
    status: 404,
    detail: 'there is no agent "nobody"',
  });

  // A new agent is shown, and the public address has only the one route.
  cpSync(join(folder, 'agents/app.yaml'), join(folder, 'agents/later.yaml'));
  server.child.kill('SIGHUP');
  await server.shows('the agents were reloaded');
  expect(await json('/api/agents')).toEqual({ agents: ['app', 'later', 'nginx'] });
  for (const path of ['/api/agents', '/api/schema/app', '/livez', '/readyz', '/'])
    expect((await fetchAlone(`${route}${path}`)).status).toBe(404);
  server.child.kill('SIGTERM');
  expect((await server.finished).code).toBe(0);
});

it('the configuration and the command line set the address of the console, or disable it', async () => {
  const folder = workFolder();
  const configuration = (port: number): void =>
    writeFileSync(join(folder, 'config.yaml'), `server: { console: '127.0.0.1:${port}' }\n`);
  const port = await freePort();
  configuration(port);
  const first = start(folder, ['serve', '--listen', '127.0.0.1:0']);
  const { operators } = await addressesOf(first);
  expect(operators).toBe(`http://127.0.0.1:${port}`);
  const ports = ['--data', 'data/other', '--listen', '127.0.0.1:0'];
  const busy = await run(folder, ['serve', ...ports]);
  expect(busy.code).toBe(1);
  expect(busy.stderr).toContain(`can't listen on 127.0.0.1:${port}: another process uses this port`);

  const without = start(folder, ['serve', ...ports, '--console', 'off']);
  await without.shows('serving ');
  expect(without.output()).not.toMatch(/^viewer/m);
  without.child.kill('SIGTERM');
  await without.finished;

  const shown = await run(folder, ['serve', ...ports, '--console', ':2112']);
  expect(shown.code).toBe(1);
  expect(shown.stderr).toContain('let it listen only on this machine');
  expect((await run(folder, ['serve', '--console', 'nowhere'])).code).toBe(2);
  writeFileSync(join(folder, 'config.yaml'), 'server: { console: nowhere }\n');
  expect((await run(folder, ['serve'])).stderr).toContain('console must be an address and a port such as');
});

it('by default, the console is on port 2112, and a warning is given if another process uses it', async () => {
  const folder = workFolder();
  const server = start(folder, ['serve', '--listen', '127.0.0.1:0']);
  await server.shows('serving ');
  server.child.kill('SIGTERM');
  const { code, stdout, stderr } = await server.finished;
  expect(code).toBe(0);
  const isThere = stdout.includes('viewer   http://127.0.0.1:2112\n');
  expect(
    stderr.includes("there is no viewer: the console was not started: can't listen on 127.0.0.1:2112"),
  ).toBe(!isThere);
});
