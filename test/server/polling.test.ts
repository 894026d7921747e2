import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { makeSchema } from '../../engine/core/schema.js';
import { gzippedAtOnce } from '../../server/route/http-answer.js';
import { describeOnTransports, serve } from './running.js';
import { piece, ScriptedStore } from './scripted-store.js';
import { ask, Wire } from './wire.js';

describeOnTransports('clients that repeat a request on %s', (transport) => {
  it('have a known query parsed again if its meaning has changed', async () => {
    const store = new ScriptedStore(() => [piece(1), piece(2)]);
    let nowMs = Date.UTC(2026, 0, 15);
    const { address } = await serve(transport, store, { now: () => nowMs });
    const ofTime = '/api/query/nginx?time__since=1h';
    await ask(address, ofTime);
    const first = store.lastQuery;
    nowMs += 1000;
    await ask(address, ofTime);
    expect(first).toMatchObject({ predicates: [{ value: BigInt(nowMs - 1000 - 3_600_000) }] });
    expect(store.lastQuery).toMatchObject({ predicates: [{ value: BigInt(nowMs - 3_600_000) }] });
    const ofField = '/api/query/nginx?status__gte=500';
    for (let i = 0; i < 2; i++) expect((await ask(address, ofField)).status).toBe(200);
    const { fields } = store.schema;
    store.schema = makeSchema([...fields].reverse());
    expect((await ask(address, ofField)).status).toBe(200);
    const field = store.schema.fields.findIndex(({ name }) => name === 'status');
    expect(store.lastQuery).toMatchObject({ predicates: [{ field, value: 500n }] });
    store.schema = makeSchema(fields.filter(({ name }) => name !== 'status'));
    expect((await ask(address, ofField)).status).toBe(400);
  });

  it('get available answers at once, one after another on a connection', async () => {
    const store = new ScriptedStore(({ limit }) => (limit === 3 ? [new Error('broken')] : [piece(limit)]));
    const { address } = await serve(transport, store, { queriesMax: 1 });
    const wire = await Wire.open(address);
    // The same bytes again, another query, a failure, and more after it; then all of them at once.
    const limits = [1, 1, 2, 3, 3, 1, 2];
    const requests = limits.map((limit) => `GET /api/query/nginx?limit=${limit} HTTP/1.1\r\nHost: x\r\n\r\n`);
    for (const [i, request] of requests.entries()) await wire.send(request).responses(i + 1);
    const responses = await wire.send(requests.join('')).responses(2 * limits.length);
    expect(responses.length).toBe(2 * limits.length);
    for (const [i, response] of responses.entries()) {
      const limit = limits[i % limits.length]!;
      if (limit === 3) expect(response.status).toBe(500);
      else expect(response.body).toEqual(piece(limit));
    }
    expect(store.ended).toBe(store.begun);
    wire.socket.destroy();
  });

  it('get a short answer compressed in one piece, with its length', async () => {
    const bytes = [100, 64 * 1024, 64 * 1024 + 1];
    const store = new ScriptedStore(({ limit }) => [piece(limit, bytes[limit])]);
    const { address } = await serve(transport, store);
    for (const [limit, size] of bytes.entries()) {
      const headers = { 'Accept-Encoding': 'gzip' };
      const response = await ask(address, `/api/query/nginx?limit=${limit}`, { headers });
      expect(response.headers.get('content-encoding')).toBe('gzip');
      expect(gunzipSync(response.body)).toEqual(piece(limit, size));
      const length = response.headers.get('content-length');
      if (size <= 64 * 1024) expect(length).toBe(String(response.body.length));
      else expect(length).toBeUndefined();
    }
    expect(store.ended).toBe(bytes.length);
  });
});

it('share an answer that is compressed once', () => {
  const answer = piece(1, 5000);
  const packed = gzippedAtOnce(answer);
  expect(gunzipSync(packed)).toEqual(answer);
  expect(gzippedAtOnce(answer)).toBe(packed);
  const another = piece(2, 5000);
  expect(gunzipSync(gzippedAtOnce(another))).toEqual(another);
});
