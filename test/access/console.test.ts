import { expect, it, onTestFinished } from 'vitest';
import { FailedTokens, ListenerGuard } from '../../server/http/access.js';
import { digestOf, newTokenText, type Token } from '../../server/http/token-folder.js';
import { agentsRoute, schemaRoute } from '../../server/console/routes.js';
import { startConsole, type ConsoleOptions, type RunningConsole } from '../../server/console/console.js';
import type { ConsoleAgent, ConsoleRoute } from '../../server/console/console-router.js';
import { ask } from '../server/wire.js';

function made(agents: readonly string[] | null): { token: Token; header: Record<string, string> } {
  const { id, text } = newTokenText();
  const rights = { name: null, agents, createdMs: 0, expiresMs: null, revokedMs: null };
  return {
    token: { id, digest: digestOf(text), listeners: ['console'], ...rights },
    header: { Authorization: `Bearer ${text}` },
  };
}

const wide = made(null);
const narrow = made(['nginx']);

function guardWith(...tokens: Token[]): ListenerGuard {
  const guard = new ListenerGuard('console', new FailedTokens(() => undefined));
  guard.take(tokens);
  return guard;
}

async function open(options: Partial<ConsoleOptions>): Promise<RunningConsole> {
  const running = await startConsole({
    address: { host: '127.0.0.1', port: 0 },
    hosts: ['test'],
    clientTimeoutMs: 1000,
    log: () => undefined,
    ...options,
  });
  onTestFinished(() => running.close({ timeoutMs: 0 }));
  return running;
}

const page: ConsoleRoute = {
  answer: (_request, response) => response.send({ status: 200, headers: {} }, Buffer.from('all')),
};

const agents = new Map(
  ['nginx', 'app'].map((name) => [name, { definition: { name, fields: [] } } as unknown as ConsoleAgent]),
);

const routes = {
  '/whole': page,
  '/page': { ...page, rights: 'none' as const },
  '/api/agents': agentsRoute(agents),
  '/api/schema/': schemaRoute(agents),
};

it('a console requires a token, except for its probes and for public pages', async () => {
  const running = await open({ guard: guardWith(wide.token, narrow.token) });
  const status = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
    (await ask(running.address, path, { headers })).status;
  expect(await status('/livez')).toBe(200);
  expect(await status('/readyz')).toBe(503);
  expect(await status('/whole')).toBe(401);
  expect(await status('/whole', wide.header)).toBe(503);
  running.open(routes, () => Promise.resolve([]));
  for (const path of ['/whole', '/nothing', '/api/agents', '/api/schema/nginx', '/'])
    expect(await status(path)).toBe(401);
  for (const path of ['/livez', '/readyz', '/page']) expect(await status(path)).toBe(200);
  expect(await status('/whole', wide.header)).toBe(200);
  expect(await status('/nothing', wide.header)).toBe(404);
  expect(await status('/api/schema/nobody', wide.header)).toBe(404);
});

it('a readiness probe lists the reasons that its token allows it to see', async () => {
  const running = await open({ guard: guardWith(wide.token, narrow.token) });
  const probe = async (headers: Record<string, string> = {}): Promise<unknown> => {
    const { status, body } = await ask(running.address, '/readyz', { headers });
    const { reasons } = JSON.parse(body.toString()) as { reasons?: { reason: string }[] };
    return [status, ...(reasons ?? []).map(({ reason }) => reason)];
  };
  expect(await probe()).toEqual([503, 'the archive is being opened']);
  const own = { agent: 'nginx', reason: 'it is damaged' };
  const others = [{ agent: 'app', reason: 'it is lost' }, { reason: 'the disk of /srv is full' }];
  const troubles = [own, ...others];
  running.open(routes, () => Promise.resolve(troubles));
  const kept = 'only a token for all agents may see the reason';
  expect(await probe()).toEqual([503, kept]);
  expect(await probe(narrow.header)).toEqual([503, 'it is damaged', kept]);
  expect(await probe(wide.header)).toEqual([503, ...troubles.map(({ reason }) => reason)]);
  expect(await probe({ Authorization: 'Bearer nonsense' })).toEqual([401]);
  troubles.length = 1;
  expect(await probe(narrow.header)).toEqual([503, 'it is damaged']);
});

it('a token for some agents lists those agents, and gives no access to routes for all agents', async () => {
  const running = await open({ guard: guardWith(wide.token, narrow.token) });
  running.open(routes, () => Promise.resolve([]));
  const asked = (path: string, { header }: typeof wide): ReturnType<typeof ask> =>
    ask(running.address, path, { headers: header });
  expect(JSON.parse((await asked('/api/agents', wide)).body.toString())).toEqual({
    agents: ['app', 'nginx'],
  });
  expect(JSON.parse((await asked('/api/agents', narrow)).body.toString())).toEqual({ agents: ['nginx'] });
  expect((await asked('/api/schema/nginx', narrow)).status).toBe(200);
  expect((await asked('/api/schema/app', narrow)).status).toBe(403);
  expect((await asked('/api/schema/nobody', narrow)).status).toBe(403);
  expect((await asked('/whole', narrow)).status).toBe(403);
});

it('a console that other machines can reach requires a token for it at start, and for every request afterwards', async () => {
  const address = { host: '0.0.0.0', port: 0 };
  await expect(open({ address })).rejects.toThrow('logstrata token new --listener console');
  await expect(open({ address, guard: guardWith() })).rejects.toThrow(
    'which other machines can reach, without a token',
  );
  const guard = guardWith(wide.token);
  const running = await open({ address, guard });
  running.open(routes, () => Promise.resolve([]));
  guard.take([]);
  const reached = running.address.replace('localhost', '127.0.0.1');
  expect((await ask(reached, '/whole')).status).toBe(401);
});
