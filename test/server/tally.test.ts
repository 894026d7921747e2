import { expect, it } from 'vitest';
import { Durations, durationBoundsMs, type SlowQuery } from '../../server/route/query-tally.js';
import { DamageError } from '../../engine/core/errors.js';
import { describeOnTransports, serve } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { ask, Wire } from './wire.js';

const countsOf = (byStatus: ReadonlyMap<number, Durations>): Record<number, number> =>
  Object.fromEntries(
    [...byStatus].map(([status, { counts }]) => [status, counts.reduce((sum, count) => sum + count, 0)]),
  );

it('durations are counted in the class that they belong to', () => {
  const durations = new Durations();
  for (const ms of [0, 1, 1.01, 60_000, 60_001]) durations.add(ms);
  expect(durations.counts).toHaveLength(durationBoundsMs.length + 1);
  expect([durations.counts[0], durations.counts[1]]).toEqual([2, 1]);
  expect(durations.counts.slice(-2)).toEqual([1, 1]);
  expect(durations.sumMs).toBeCloseTo(120_003.01);
});

/** More than any socket buffers. */
function* endlessPieces(): Generator<Uint8Array> {
  for (;;) yield new Uint8Array(64 * 1024).fill(0x20);
}

describeOnTransports('on %s', (transport) => {
  it('every request is counted once by its status, and its cost by its agent', async () => {
    const { address, route } = await serve(transport, new ScriptedStore(() => [piece(1), piece(2)]), {
      corsOrigin: ['https://logs.example.com'],
    });
    for (let i = 0; i < 3; i++) await ask(address, '/api/query/nginx');
    await ask(address, '/api/query/nginx', { headers: { 'Accept-Encoding': 'gzip' } });
    await ask(address, '/api/query/nginx', { method: 'HEAD' });
    await ask(address, '/api/query/nginx', { method: 'OPTIONS' });
    await ask(address, '/api/query/nginx', { method: 'POST' });
    await ask(address, '/api/query/nginx?nope=1');
    await ask(address, '/api/query/nobody');
    const { tally } = route;
    await until(() => tally.byAgent.get('nginx')?.queries === 4, 'it is counted');
    expect(countsOf(tally.byStatus)).toEqual({ 200: 5, 204: 1, 400: 1, 404: 1, 405: 1 });
    expect([...tally.byAgent.keys()]).toEqual(['nginx']);
    expect(tally.byAgent.get('nginx')!.bytesReturned).toBe(4 * (piece(1).length + piece(2).length));
    expect(tally.broken).toEqual({ client_gone: 0, client_slow: 0, failed: 0 });
  });

  it('answers that are broken off are counted by their cause', async () => {
    const failing = await serve(
      transport,
      new ScriptedStore(() => [piece(1), new DamageError('a page is damaged', { path: 'web/1.parquet' })]),
    );
    // What was written before the failure arrives: a client that got no byte may repeat the request by itself.
    const { status, body, isWhole } = await ask(failing.address, '/api/query/nginx');
    expect([status, body, isWhole]).toEqual([200, Buffer.from(piece(1)), false]);
    await until(() => failing.route.tally.broken.failed === 1, 'it is counted');
    expect(countsOf(failing.route.tally.byStatus)).toEqual({ 200: 1 });

    const endless = await serve(transport, new ScriptedStore(endlessPieces));
    const wire = await Wire.open(endless.address);
    wire.send('GET /api/query/nginx HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => endless.admission.load.answers === 1, 'it is counted');
    expect(endless.admission.load.running).toBeLessThanOrEqual(1);
    wire.socket.destroy();
    await until(() => endless.route.tally.broken.client_gone === 1, 'it is counted');
    await until(() => endless.admission.load.answers === 0, 'it is counted');
    expect(endless.route.tally.broken).toEqual({ client_gone: 1, client_slow: 0, failed: 0 });
  });

  it('slow queries are reported and kept with their parameters, which are shortened, the newest first', async () => {
    const told: SlowQuery[] = [];
    const { address, route } = await serve(transport, new ScriptedStore(() => [piece(1)]), {
      slowQueryMs: 0,
      onSlow: (query) => told.push(query),
    });
    const long = 'x'.repeat(500);
    await ask(address, `/api/query/nginx?limit=3&message__like=no%20space+left&message__exact=${long}`);
    await ask(address, `/api/query/nginx?${'status__ne=1&'.repeat(50)}`);
    for (let i = 0; i < 110; i++) await ask(address, `/api/query/nginx?limit=${i}`);
    expect(route.slow.count).toBe(112);
    expect(told).toHaveLength(112);
    expect(told[0]).toMatchObject({
      agent: 'nginx',
      client: '127.0.0.1',
      parameters: ['limit=3', 'message__like=no space left', `message__exact=${'x'.repeat(185)}…`],
      parametersLeftOut: 0,
      failure: null,
      bytesReturned: piece(1).length,
    });
    expect(told[0]!.firstMs).toBeLessThanOrEqual(told[0]!.totalMs);
    expect(told[1]).toMatchObject({ parametersLeftOut: 18 });
    expect(told[1]!.parameters).toHaveLength(32);
    expect(route.slow.list()).toHaveLength(100);
    expect(route.slow.list()[0]!.parameters).toEqual(['limit=109']);
    expect(route.slow.list()[0]).toEqual(told.at(-1));
  });

  it('failed queries count as slow too, and without a threshold none does', async () => {
    const damage = () => [new DamageError('a page is damaged', { path: 'web/1.parquet' })];
    const noted = await serve(transport, new ScriptedStore(damage), { slowQueryMs: 0 });
    expect((await ask(noted.address, '/api/query/nginx')).status).toBe(500);
    expect(noted.route.slow.list()).toMatchObject([{ failure: 'a page is damaged', bytesReturned: 0 }]);
    const silent = await serve(transport, new ScriptedStore(damage), { slowQueryMs: null });
    expect((await ask(silent.address, '/api/query/nginx')).status).toBe(500);
    expect(silent.route.slow.count).toBe(0);
  });
});
