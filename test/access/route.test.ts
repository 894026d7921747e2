import { expect, it } from 'vitest';
import { FailedTokens, ListenerGuard } from '../../server/http/access.js';
import { digestOf, newTokenText, type Token } from '../../server/http/token-folder.js';
import type { ServerOptions } from '../../server/route/server-options.js';
import { describeOnTransports, serve } from '../server/running.js';
import { piece, ScriptedStore } from '../server/scripted-store.js';
import { ask, type WireResponse } from '../server/wire.js';

const store = (): ScriptedStore => new ScriptedStore(() => [piece(1)]);

/** A guard that knows one token, for these agents, and the header with the token. */
function guarded(agents: readonly string[] | null): { guard: ListenerGuard; header: Record<string, string> } {
  const guard = new ListenerGuard('query', new FailedTokens(() => undefined));
  const { id, text } = newTokenText();
  const rights = { name: null, agents, createdMs: 0, expiresMs: null, revokedMs: null };
  const token: Token = { id, digest: digestOf(text), listeners: ['query'], ...rights };
  guard.take([token]);
  return { guard, header: { Authorization: `Bearer ${text}` } };
}

function problemOf(response: WireResponse): { status: number; detail: string } {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  return JSON.parse(response.body.toString()) as { status: number; detail: string };
}

describeOnTransports('a listener with tokens on %s', (transport) => {
  const all = (options: Partial<ServerOptions>, its = store()): Promise<{ address: string }> =>
    serve(transport, its, { lookup: (agent) => (agent === 'nginx' ? its : undefined), ...options });

  it('answers with a token, and without one reveals only that a token is needed', async () => {
    const { guard, header } = guarded(null);
    const its = store();
    const { address } = await all({ guard }, its);
    expect((await ask(address, '/api/query/nginx', { headers: header })).body).toEqual(piece(1));
    expect((await ask(address, '/api/query/nginx', { headers: header, method: 'HEAD' })).status).toBe(200);
    for (const target of ['/api/query/nginx', '/api/query/other', '/api/query/nginx?limit=x', '/', '/x']) {
      const response = await ask(address, target);
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="logstrata"');
      expect(problemOf(response).status).toBe(401);
    }
    expect((await ask(address, '/api/query/nginx', { method: 'HEAD' })).status).toBe(401);
    expect(its.begun).toBe(1);
  });

  it('does not reveal other agents to the holder of a token for some agents', async () => {
    const { guard, header } = guarded(['nginx', 'planned']);
    const its = store();
    const { address } = await all({ guard, lookup: (agent) => (agent === 'planned' ? undefined : its) });
    const problem = async (target: string): Promise<{ status: number; detail: string }> =>
      problemOf(await ask(address, target, { headers: header }));
    expect((await ask(address, '/api/query/nginx?limit=1', { headers: header })).status).toBe(200);
    expect(await problem('/api/query/there')).toMatchObject({
      status: 403,
      detail: 'this token may not read the agent "there"',
    });
    expect(await problem('/api/query/other?limit=x')).toMatchObject({
      status: 403,
      detail: 'this token may not read the agent "other"',
    });
    expect((await problem('/api/query/planned')).status).toBe(404);
    expect((await problem('/elsewhere')).status).toBe(404);
  });

  it('does not give one holder data that was cached for another', async () => {
    const wide = guarded(null);
    const { address } = await all({ guard: wide.guard });
    const target = '/api/query/nginx?limit=1';
    expect((await ask(address, target, { headers: wide.header })).status).toBe(200);
    const { id, text } = newTokenText();
    const rights = { name: null, agents: ['app'], createdMs: 0, expiresMs: null, revokedMs: null };
    wide.guard.take([{ id, digest: digestOf(text), listeners: ['query'], ...rights }]);
    const narrow = { Authorization: `Bearer ${text}` };
    expect((await ask(address, target, { headers: narrow })).status).toBe(403);
    expect((await ask(address, target, { headers: wide.header })).status).toBe(401);
  });

  it('lets a browser ask whether it may send a token, and read the reason of a refusal', async () => {
    const { guard } = guarded(null);
    const { address } = await all({ guard, corsOrigin: ['https://a.example'] });
    const headers = { Origin: 'https://a.example', 'Access-Control-Request-Headers': 'authorization' };
    const preflight = await ask(address, '/api/query/nginx', { method: 'OPTIONS', headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toBe('*, Authorization');
    const refused = await ask(address, '/api/query/nginx', { headers });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://a.example');
    expect(refused.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate');
  });

  it('answers a client that sends wrong tokens without taking a query slot', async () => {
    const { guard, header } = guarded(null);
    const its = store();
    const { address } = await all({ guard, queriesMax: 1 }, its);
    const wrong = { Authorization: `Bearer ${newTokenText().text}` };
    const refused = Promise.all(
      Array.from({ length: 6 }, () => ask(address, '/api/query/nginx', { headers: wrong })),
    );
    for (let i = 0; i < 3; i++)
      expect((await ask(address, '/api/query/nginx', { headers: header })).status).toBe(200);
    for (const { status } of await refused) expect(status).toBe(401);
    expect(its.begun).toBe(3);
  });
});
