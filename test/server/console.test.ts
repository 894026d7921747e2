import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { defaultConfig } from '../../agents/definition/config.js';
import type { Trouble } from '../../engine/index.js';
import { Access } from '../../server/http/access.js';
import { openConsole } from '../../server/cli/serve.js';
import { startConsole, type RunningConsole } from '../../server/console/console.js';
import type { ConsoleRoute } from '../../server/console/console-router.js';
import { ProblemError } from '../../server/http/problem.js';
import { ask } from './wire.js';

const logged: string[] = [];

async function openTestConsole(): Promise<RunningConsole> {
  const address = { host: '127.0.0.1', port: 0 };
  const log = (message: string): number => logged.push(message);
  const running = await startConsole({ address, hosts: ['test'], clientTimeoutMs: 1000, log });
  onTestFinished(() => running.close({ timeoutMs: 0 }));
  onTestFinished(() => void logged.splice(0));
  return running;
}

/** A route that answers with its name. */
const named = (name: string): ConsoleRoute => ({
  answer: (_request, response, { rawPath, rawQuery }) =>
    response.send({ status: 200, headers: {} }, Buffer.from(`${name} ${rawPath}?${rawQuery}`)),
});

const noTroubles = (): Promise<Trouble[]> => Promise.resolve([]);

const statusOf = async ({ address }: RunningConsole, path: string): Promise<number> =>
  (await ask(address, path)).status;

it('is live from its start, and ready while the archive is open, untroubled and not being closed', async () => {
  const running = await openTestConsole();
  expect(await statusOf(running, '/livez')).toBe(200);
  const opening = await ask(running.address, '/readyz');
  expect(opening.status).toBe(503);
  expect(opening.headers.get('content-type')).toBe('application/problem+json');
  expect(JSON.parse(opening.body.toString())).toMatchObject({
    detail: 'the archive is being opened',
    reasons: [{ reason: 'the archive is being opened' }],
  });
  expect(await statusOf(running, '/api/agents')).toBe(503);
  // The viewer is there from the start, and says what it waits for.
  expect(await statusOf(running, '/')).toBe(200);
  const troubles: Trouble[] = [];
  running.open({ '/api/agents': named('agents') }, () => Promise.resolve(troubles));
  expect(await statusOf(running, '/readyz')).toBe(200);
  expect(await statusOf(running, '/api/agents')).toBe(200);
  troubles.push({ agent: 'app', reason: 'it is damaged' }, { reason: 'the disk is full' });
  const troubled = await ask(running.address, '/readyz');
  expect(troubled.status).toBe(503);
  expect(JSON.parse(troubled.body.toString())).toMatchObject({
    detail: 'app: it is damaged; the disk is full',
    reasons: troubles,
  });
  running.stopping();
  expect((await ask(running.address, '/readyz')).body.toString()).toContain('shutting down');
  expect(await statusOf(running, '/livez')).toBe(200);
});

it('uses the route with the longest matching path', async () => {
  const running = await openTestConsole();
  running.open(
    {
      '/': named('pages'),
      '/api/agents': named('agents'),
      '/api/count/': named('count'),
    },
    noTroubles,
  );
  const asked = async (path: string): Promise<string> => (await ask(running.address, path)).body.toString();
  expect(await asked('/api/agents?a=1')).toBe('agents /api/agents?a=1');
  expect(await asked('/api/agents/')).toMatch(/^pages/);
  expect(await asked('/api/count/nginx')).toMatch(/^count/);
  expect(await asked('/%61pi/count/nginx')).toMatch(/^count/);
  expect(await asked('/api/count/%zz')).toMatch(/^count/);
  expect(await asked('/api/count')).toMatch(/^pages/);
  expect(await asked('/')).toMatch(/^pages/);
  expect(await asked('/__proto__')).toMatch(/^pages/);
  expect(await asked('/livez')).toContain('live');
});

it('answers a failure of a route with a problem, and logs unexpected failures', async () => {
  const running = await openTestConsole();
  running.open(
    {
      '/mistake': {
        answer: () => {
          throw new ProblemError(400, 'a mistake of the client');
        },
      },
      '/bug': { answer: () => Promise.reject(new Error('a bug of ours')) },
    },
    noTroubles,
  );
  const mistake = await ask(running.address, '/mistake');
  expect(JSON.parse(mistake.body.toString())).toMatchObject({
    status: 400,
    detail: 'a mistake of the client',
  });
  expect(logged).toEqual([]);
  const bug = await ask(running.address, '/bug');
  expect(bug.status).toBe(500);
  expect(bug.body.toString()).not.toContain('a bug of ours');
  expect(logged).toEqual([expect.stringContaining('/bug of the console failed: Error: a bug of ours')]);
});

it('answers GET and HEAD under its own names only, and probes under any name', async () => {
  const running = await openTestConsole();
  running.open({ '/page': named('page') }, noTroubles);
  const { address } = running;
  const posted = await ask(address, '/page', { method: 'POST' });
  expect(posted.status).toBe(405);
  expect(posted.headers.get('allow')).toBe('GET, HEAD');
  const head = await ask(address, '/page', { method: 'HEAD' });
  expect(head.status).toBe(200);
  expect(head.headers.get('content-length')).toBe(String('page /page?'.length));
  const stranger = { headers: { Host: 'evil.example' } };
  expect((await ask(address, '/page', stranger)).status).toBe(421);
  expect((await ask(address, '/nothing', stranger)).status).toBe(421);
  expect((await ask(address, '/livez', stranger)).status).toBe(200);
  expect((await ask(address, '/readyz', stranger)).status).toBe(200);
  expect((await ask(address, '/livez', { ...stranger, method: 'DELETE' })).status).toBe(405);
  expect(await statusOf(running, '/nothing')).toBe(404);
  expect(await statusOf(running, `/${'/'.repeat(15_000)}`)).toBe(404);
});

it('is left out if another process uses an address that was not configured', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const warnings: string[] = [];
  const ignore = (): void => undefined;
  const warn = (_facts: object, message: string): void => void warnings.push(message);
  const log = { debug: ignore, info: ignore, warn, error: ignore };
  const settings = {
    config: defaultConfig,
    configPath: undefined,
    agentsFolder: 'agents',
    dataFolder: 'data',
    cacheBytes: null,
  };
  const access = await Access.open('/nowhere', ignore);
  const door = { log, access, certificate: undefined };
  const address = { host: '127.0.0.1', port };
  expect(await openConsole(settings, { ...address, isAsked: false }, door)).toEqual({
    whyNot: expect.stringContaining(`the console was not started: can't listen on 127.0.0.1:${port}`),
  });
  await expect(openConsole(settings, { ...address, isAsked: true }, door)).rejects.toThrow(
    `can't listen on 127.0.0.1:${port}`,
  );
  // Only a busy port is tolerated.
  const elsewhere = { host: '192.0.2.1', port, isAsked: false };
  await expect(openConsole(settings, elsewhere, door)).rejects.toThrow('only on this machine');
  expect(await openConsole(settings, 'off', door)).toEqual({});
});
