import { defaultConfig } from '../../agents/definition/config.js';
import { expect, it } from 'vitest';
import { DamageError, LogstrataError } from '../../engine/core/errors.js';
import { startServer } from '../../server/route/server.js';
import { describeOnTransports, logged, serve } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { ask, shout, Wire, type WireResponse } from './wire.js';

const host = 'Host: x\r\n';
const two = (): ScriptedStore => new ScriptedStore(() => [piece(1), piece(2)]);

function expectProblem(response: WireResponse | undefined, status: number): Record<string, unknown> {
  expect(response?.status).toBe(status);
  expect(response!.headers.get('content-type')).toBe('application/problem+json');
  expect(response!.headers.get('x-content-type-options')).toBe('nosniff');
  expect(response!.isWhole).toBe(true);
  const problem = JSON.parse(response!.body.toString()) as Record<string, unknown>;
  expect(problem).toMatchObject({ type: 'about:blank', status });
  expect(problem.title).toEqual(expect.any(String));
  expect(problem.detail).toEqual(expect.any(String));
  return problem;
}

describeOnTransports('on %s', (transport) => {
  it('reports its transport and its address', async () => {
    const server = await serve(transport, two());
    expect(server.transport).toBe(transport);
    expect(server.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });

  it('answers JSON Lines', async () => {
    const store = two();
    const { address } = await serve(transport, store);
    const response = await ask(address, '/api/query/nginx?limit=7&status__gte=500&_=1');
    expect(response).toMatchObject({ status: 200, isWhole: true });
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('vary')).toBe('Accept-Encoding');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('server-timing')).toMatch(/^first;dur=[\d.]+, select;dur=/);
    expect(response.headers.has('access-control-allow-origin')).toBe(false);
    expect(response.headers.has('uwebsockets')).toBe(false);
    expect(response.body).toEqual(Buffer.concat([piece(1), piece(2)]));
    expect(store.lastQuery).toMatchObject({
      limit: 7,
      predicates: [{ kind: 'int', op: 'gte', value: 500n }],
    });
    expect(store.ended).toBe(1);
  });

  it('parses a header of many blanks in linear time', async () => {
    const { address } = await serve(transport, two());
    const blanks = ' '.repeat(15_000);
    const head = (header: string): string =>
      `GET /api/query/nginx HTTP/1.1\r\n${host}Connection: close\r\n${header}\r\n\r\n`;
    // With a backtracking pattern, the first request takes minutes, and the test exceeds its time limit.
    const bad = (await shout(address, head(`X:${blanks}\rb`))).response?.status;
    // uWebSockets.js waits for the byte after a bare CR until the time limit of the request head.
    expect(bad).toBe(transport === 'uws' ? undefined : 400);
    expect((await shout(address, head(`X:a${blanks}b`))).response?.status).toBe(200);
  });

  it('states the length of an answer of one small piece', async () => {
    const { address } = await serve(transport, new ScriptedStore(() => [piece(1)]));
    const response = await ask(address, '/api/query/nginx');
    expect(response.headers.get('content-length')).toBe(String(piece(1).length));
    expect(response.body).toEqual(piece(1));
  });

  it.each([{}, { 'Accept-Encoding': 'gzip' }])(
    'answers an empty result with an empty body (%j)',
    async (headers) => {
      const { address } = await serve(transport, new ScriptedStore(() => []));
      const response = await ask(address, '/api/query/nginx?limit=0', { headers: { ...headers } });
      expect(response.status).toBe(200);
      expect(response.headers.get('content-length')).toBe('0');
      expect(response.headers.has('content-encoding')).toBe(false);
      expect(response.body.length).toBe(0);
    },
  );

  it.each([
    ['/api/query/nginx?limt=5', 'limt'],
    ['/api/query/nginx?mesage__like=x', 'mesage__like'],
    ['/api/query/nginx?message__gt=x', 'message__gt'],
    ['/api/query/nginx?status__eq=x', 'status__eq'],
    ['/api/query/nginx?after=xyz', 'after'],
    ['/api/query/nginx?limit=-1', 'limit'],
    ['/api/query/nginx?limit=1.5', 'limit'],
    ['/api/query/nginx?limit=1001', 'limit'],
    ['/api/query/nginx?message__like=%zz', 'message__like'],
    ['/api/query/nginx?message__like=%C3', 'message__like'],
    ['/api/query/nginx?time__since=2025-02-30', 'time__since'],
  ])('refuses %s with a 400 that names %s', async (target, parameter) => {
    const store = two();
    const { address } = await serve(transport, store);
    expect(expectProblem(await ask(address, target), 400)).toMatchObject({ parameter });
    expect(store.begun).toBe(0);
  });

  it.each([
    ['/api/query/other'],
    ['/api/query/Nginx'],
    ['/api/query/a%2Fb'],
    ['/api/query/..%2Fnginx'],
    ['/api/query/nginx/'],
    ['/api/query/'],
    ['/'],
    ['/favicon.ico'],
    ['/api//query/nginx'],
  ])('answers 404 for %s', async (target) => {
    const { address } = await serve(transport, two());
    expectProblem(await ask(address, target), 404);
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])('answers 405 for %s', async (method) => {
    const { address } = await serve(transport, two());
    const { response } = await shout(address, `${method} /api/query/nginx HTTP/1.1\r\n${host}\r\n`);
    expectProblem(response, 405);
    expect(response!.headers.get('allow')).toBe('GET, HEAD');
  });

  it.each([
    ['a length', 'Content-Length: 5\r\n', 'abcde'],
    ['a length, not sent yet', 'Content-Length: 5\r\n', ''],
    ['chunks', 'Transfer-Encoding: chunked\r\n', '5\r\nabcde\r\n0\r\n\r\n'],
    ['a length with Expect: 100-continue', 'Content-Length: 5\r\nExpect: 100-continue\r\n', ''],
    [
      'a request smuggled in it',
      `Content-Length: 44\r\n`,
      `GET /api/query/nginx HTTP/1.1\r\nHost: x\r\n\r\n`,
    ],
    ['a megabyte', 'Content-Length: 1000000\r\n', 'x'.repeat(1_000_000)],
  ])('refuses a request with a body and closes the connection: %s', async (_what, headers, body) => {
    const store = two();
    const { address } = await serve(transport, store);
    const { response, wire } = await shout(
      address,
      `GET /api/query/nginx HTTP/1.1\r\n${host}${headers}\r\n${body}`,
    );
    // uWebSockets.js requests the body by itself.
    const asksFirst = transport === 'uws' && headers.includes('Expect');
    const [first, ...others] = await wire.responses(1);
    expectProblem(asksFirst ? others[0] : response, 400);
    if (asksFirst) expect(first!.status).toBe(100);
    expect(wire.text).toContain('Connection: close');
    expect(wire.text.match(/HTTP\/1\.1 [2-5]/g)).toHaveLength(1);
    expect(store.begun).toBe(0);
  });

  it('treats Content-Length: 0 as no body, and keeps the connection', async () => {
    const { address } = await serve(transport, two());
    const wire = await Wire.open(address);
    const request = `GET /api/query/nginx HTTP/1.1\r\n${host}Content-Length: 0\r\n\r\n`;
    wire.send(request);
    expect((await wire.responses(1))[0]).toMatchObject({ status: 200 });
    wire.send(request);
    expect(await wire.responses(2)).toHaveLength(2);
    wire.socket.destroy();
  });

  it.each([
    [
      '90 headers',
      `GET /api/query/nginx HTTP/1.1\r\n${host}${Array.from({ length: 90 }, (_, i) => `H${i}: 1\r\n`).join('')}Connection: close\r\n\r\n`,
    ],
    [
      '12 KB of headers',
      `GET /api/query/nginx HTTP/1.1\r\n${host}Connection: close\r\nCookie: ${'x'.repeat(12_000)}\r\n\r\n`,
    ],
    [
      'a line of 16 KB',
      `GET /api/query/nginx?message__like=${'x'.repeat(16_000)} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
    ],
  ])('accepts %s, also in small packets', async (_what, request) => {
    const { address } = await serve(transport, two());
    expect((await shout(address, request)).response).toMatchObject({ status: 200 });
    const third = Math.floor(request.length / 3);
    const packets = [request.slice(0, third), request.slice(third, 2 * third), request.slice(2 * third)];
    expect((await shout(address, ...packets)).response).toMatchObject({ status: 200 });
  });

  it('answers HEAD like GET, without running the query', async () => {
    const store = two();
    const { address } = await serve(transport, store);
    const response = await ask(address, '/api/query/nginx', { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    expect(store.begun).toBe(0);
    const bad = await ask(address, '/api/query/nginx?limt=5', { method: 'HEAD' });
    expect(bad.status).toBe(400);
    expect(Number(bad.headers.get('content-length'))).toBeGreaterThan(50);
    // The headers are followed by no body: the next response on the connection begins right after them.
    const wire = await Wire.open(address);
    wire.send(
      `HEAD /api/query/nginx?limt=5 HTTP/1.1\r\n${host}\r\nHEAD /api/query/nginx HTTP/1.1\r\n${host}\r\n`,
    );
    const responses = await wire.responses(2, true);
    expect(responses.map(({ status }) => status)).toEqual([400, 200]);
    wire.socket.destroy();
  });

  it('lets scripts of the configured origins read answers, and no others', async () => {
    const { address } = await serve(transport, two(), {
      corsOrigin: ['https://a.example', 'https://b.example'],
    });
    const allowed = await ask(address, '/api/query/nginx', { headers: { Origin: 'https://b.example' } });
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://b.example');
    expect(allowed.headers.get('vary')).toBe('Origin, Accept-Encoding');
    const other = await ask(address, '/api/query/nginx', { headers: { Origin: 'https://c.example' } });
    expect(other.headers.has('access-control-allow-origin')).toBe(false);
    const problem = await ask(address, '/api/query/nginx?limt=1', {
      headers: { Origin: 'https://b.example' },
    });
    expect(problem.headers.get('access-control-allow-origin')).toBe('https://b.example');
    const preflight = await ask(address, '/api/query/nginx', {
      method: 'OPTIONS',
      headers: { Origin: 'https://a.example', 'Access-Control-Request-Method': 'GET' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://a.example');
    expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS');
  });

  it('lets every origin read answers with *', async () => {
    const { address } = await serve(transport, two(), { corsOrigin: ['*'] });
    const response = await ask(address, '/api/query/nginx', { headers: { Origin: 'https://a.example' } });
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('vary')).toBe('Accept-Encoding');
    const { response: posted } = await shout(address, `POST /api/query/nginx HTTP/1.1\r\n${host}\r\n`);
    expect(posted!.headers.get('allow')).toBe('GET, HEAD, OPTIONS');
  });

  it('answers pipelined requests in their order, where the library does', async () => {
    const { address } = await serve(
      transport,
      new ScriptedStore((query) => [
        new Promise((resolve) => setTimeout(resolve, 50 / query.limit)),
        piece(query.limit),
      ]),
    );
    const wire = await Wire.open(address);
    const requests = [1, 2, 5, 3, 4].map(
      (limit) => `GET /api/query/nginx?limit=${limit} HTTP/1.1\r\n${host}\r\n`,
    );
    wire.send(requests.join(''));
    const responses = await wire.responses(5);
    if (transport === 'uws') {
      // This library does not queue pipelined requests: it closes the connection.
      await wire.closed();
      expect(responses).toEqual([]);
      return;
    }
    expect(responses.map(({ body }) => body.toString())).toEqual(
      [1, 2, 5, 3, 4].map((number) => piece(number).toString()),
    );
    wire.socket.destroy();
  });

  it('evaluates each request of a connection by its own headers', async () => {
    const { address } = await serve(transport, two());
    const wire = await Wire.open(address);
    const gzip = `${host}Accept-Encoding: gzip\r\n`;
    const heads = [host, gzip, gzip, host, `${host}Connection: close\r\n`];
    for (const [i, headers] of heads.entries())
      await wire.send(`GET /api/query/nginx HTTP/1.1\r\n${headers}\r\n`).responses(i + 1);
    await wire.closed();
    const responses = await wire.responses(5);
    expect(responses.map((response) => response.headers.get('content-encoding'))).toEqual([
      undefined,
      'gzip',
      'gzip',
      undefined,
      undefined,
    ]);
    expect(responses.at(-1)!.headers.get('connection')).toBe('close');
  });

  it('answers under IP addresses, localhost and its own names, and under no other', async () => {
    const hosts = ['logs.example.com'];
    const { address } = await serve(transport, two(), { hosts });
    const port = new URL(address).port;
    const anyName = await serve(transport, two(), { hosts: [], listen: { host: '0.0.0.0', port: 0 } });
    const named = await serve(transport, two(), { hosts, listen: { host: '0.0.0.0', port: 0 } });
    for (const [host, status] of [
      [`127.0.0.1:${port}`, 200],
      ['192.0.2.7', 200],
      ['[::1]:1', 200],
      ['localhost', 200],
      ['LocalHost:2111', 200],
      ['logs.example.com', 200],
      ['Logs.Example.COM:8080', 200],
      ['evil.example', 421],
      [`evil.example:${port}`, 421],
      ['127.0.0.1.evil.example', 421],
      ['localhost.evil.example', 421],
      ['127.1', 421],
      ['a.logs.example.com', 421],
    ] as const) {
      const options = { headers: { Host: host } };
      const response = await ask(address, '/api/query/nginx', options);
      expect([host, response.status]).toEqual([host, status]);
      if (status === 421) expect(expectProblem(response, 421).detail).toContain('server.hosts');
      expect((await ask(named.address, '/api/query/nginx', options)).status).toBe(status);
      expect((await ask(anyName.address, '/api/query/nginx', options)).status).toBe(200);
    }
  });

  it('sends the date of its answer', async () => {
    const { address } = await serve(transport, two());
    const beforeMs = Date.now();
    for (const target of ['/api/query/nginx', '/nowhere']) {
      const date = (await ask(address, target)).headers.get('date')!;
      expect(date).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
      expect(Math.abs(Date.parse(date) - beforeMs)).toBeLessThan(10_000);
    }
  });

  it('closes the connection after the answer on request', async () => {
    const { address } = await serve(transport, two());
    const { response, wire } = await shout(
      address,
      `GET /api/query/nginx HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
    );
    expect(response).toMatchObject({ status: 200, isWhole: true });
    expect(response!.headers.get('connection')).toBe('close');
    expect(wire.ending).toBe('end');
  });

  it('closes an idle connection', async () => {
    const { address } = await serve(transport, two());
    const wire = await Wire.open(address);
    wire.send(`GET /api/query/nginx HTTP/1.1\r\n${host}\r\n`);
    await wire.closed();
    expect(await wire.responses(1)).toHaveLength(1);
    expect(wire.ending).toBe('end');
  });

  it.each([
    [
      'damage',
      new DamageError('row group 3 has a bad checksum', { path: 'dt=2026-01-01/7.parquet' }),
      500,
      /damaged.*row group 3.*7\.parquet/,
    ],
    [
      'a missing file',
      new LogstrataError('io', 'reading failed', { path: 'x.parquet' }),
      500,
      /reading failed.*x\.parquet/,
    ],
    ['an unexpected error', new TypeError('x is not a function'), 500, /the server failed/],
    ['insufficient memory', new LogstrataError('limit', 'the pool is full'), 503, /pool is full/],
    ['a time limit in the scan', new LogstrataError('timeout', 'too slow'), 504, /too slow/],
  ])('answers %s before the first byte with a problem', async (_what, error, status, detail) => {
    const { address } = await serve(transport, new ScriptedStore(() => [error]));
    const problem = expectProblem(await ask(address, '/api/query/nginx'), status);
    expect(problem.detail).toMatch(detail);
    expect(JSON.stringify(problem)).not.toMatch(/\.ts|node:internal/);
    if (status === 500) expect(logged.join()).toContain(error.message);
  });

  it('answers 504 for a query that exceeds its time limit', async () => {
    const store = new ScriptedStore(() => [new Promise(() => undefined)]);
    const { address } = await serve(transport, store, { queryTimeoutMs: 50 });
    expectProblem(await ask(address, '/api/query/nginx'), 504);
    expect(store.lastSignal?.aborted).toBe(true);
    expect(store.ended).toBe(1);
  });

  it('answers 429 with Retry-After beyond the limit, and accepts queries again when there is room', async () => {
    let finish: () => void = () => undefined;
    const wait = new Promise<void>((resolve) => (finish = resolve));
    const store = new ScriptedStore(() => [wait, piece(1)]);
    const { address } = await serve(transport, store, { queriesMax: 2 });
    const first = ask(address, '/api/query/nginx');
    const second = ask(address, '/api/query/nginx');
    await until(() => store.begun === 2, 'both have begun');
    const third = await ask(address, '/api/query/nginx');
    expectProblem(third, 429);
    expect(third.headers.get('retry-after')).toBe('1');
    finish();
    expect((await first).status).toBe(200);
    expect((await second).status).toBe(200);
    expect((await ask(address, '/api/query/nginx')).status).toBe(200);
  });

  it('names the busy port', async () => {
    const { address } = await serve(transport, two());
    const port = Number(new URL(address).port);
    const again = startServer({
      ...defaultConfig.server,
      listen: { host: '127.0.0.1', port },
      transport,
      lookup: () => undefined,
      now: Date.now,
      log: () => undefined,
    });
    await expect(again).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(`127.0.0.1:${port}`) as unknown,
    });
  });
});
