import { describe, expect, it } from 'vitest';
import { idleMs } from '../../engine/core/limits.js';
import type { TransportName } from '../../server/http/transport.js';
import { describeOnTransports, serve } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { ask, Wire } from './wire.js';

const pieceBytes = 256 * 1024;

describeOnTransports('slow clients on %s', (transport) => {
  it('buffers a few pieces for each of many clients that do not read, and still answers others', async () => {
    let given = 0;
    const store = new ScriptedStore(function* ({ limit }) {
      for (let i = 0; i < limit; i++) {
        given++;
        yield piece(i, pieceBytes);
      }
    });
    const { address } = await serve(transport, store, { queriesMax: 64 });
    const slow = await Promise.all(Array.from({ length: 40 }, () => Wire.open(address)));
    for (const wire of slow) {
      wire.socket.pause();
      wire.send('GET /api/query/nginx?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n');
    }
    await until(() => store.begun === slow.length, 'all scans began');
    let before = -1;
    for (; before !== given; await new Promise((resolve) => setTimeout(resolve, 200))) before = given;
    // 10 GB would be sent. The kernel buffers some MB for each connection on this machine, the server itself a piece or two.
    expect(given).toBeLessThan(slow.length * 40);
    expect(await ask(address, '/api/query/nginx?limit=1')).toMatchObject({ status: 200, isWhole: true });
    for (const wire of slow) wire.socket.destroy();
    await until(() => store.ended === store.begun, 'all scans ended');
  });
});

async function dribble(transport: TransportName): Promise<void> {
  const { address } = await serve(transport, new ScriptedStore(() => [piece(1)]));
  const wire = await Wire.open(address);
  let isClosed = false;
  void wire.closed().then(() => (isClosed = true));
  const startMs = performance.now();
  wire.send('GET /api/query/nginx HTTP/1.1\r\nHost: x\r\nX: ');
  while (!isClosed) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (!isClosed) wire.send('x');
  }
  // The connection was not treated as idle, since idle ones are closed earlier; an incomplete request gets no answer.
  expect(performance.now() - startMs).toBeGreaterThan(idleMs);
  expect((await wire.responses(1)).map(({ status }) => status)).not.toContain(200);
}

describeOnTransports('a connection on %s', (transport) => {
  it('is closed if its head does not end although bytes keep arriving', () => dribble(transport));
});

describe('a client that has closed its side of the connection, on node:http,', () => {
  const request = 'GET /api/query/nginx?limit=8 HTTP/1.1\r\nHost: x\r\n\r\n';

  it('gets its complete answer', async () => {
    const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 300));
    const store = new ScriptedStore(function* ({ limit }) {
      yield later();
      for (let i = 0; i < limit; i++) yield piece(i, pieceBytes);
      yield later();
      yield piece(limit, pieceBytes);
    });
    const { address } = await serve('node', store);
    const wire = await Wire.open(address);
    wire.socket.allowHalfOpen = true;
    wire.socket.end(request);
    const [response] = await wire.responses(1);
    expect(response).toMatchObject({ status: 200, isWhole: true });
    expect(response!.body.length).toBe(9 * pieceBytes);
    await wire.closed();
  });

  it('counts as gone if there is nothing to send to it', async () => {
    const store = new ScriptedStore(() => [piece(1), new Promise(() => undefined)]);
    const { address } = await serve('node', store);
    const wire = await Wire.open(address);
    wire.socket.allowHalfOpen = true;
    wire.socket.end(request);
    await until(() => store.ended === 1, 'the scan ended');
    await wire.closed();
  });
});

it('cuts off a client that takes nothing for server.client_timeout, and no other, on node:http', async () => {
  const store = new ScriptedStore(function* ({ limit }) {
    for (let i = 0; i < limit; i++) yield piece(i, pieceBytes);
    yield new Promise((resolve) => setTimeout(resolve, 1500));
  });
  const { address } = await serve('node', store, { clientTimeoutMs: 500 });
  const slow = await Wire.open(address);
  slow.socket.pause();
  slow.send('GET /api/query/nginx?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n');
  // A client that waits for the scan longer than that.
  const patient = ask(address, '/api/query/nginx?limit=20');
  await until(() => store.ended === 2, 'both scans ended');
  slow.socket.resume();
  await slow.closed();
  expect((await slow.responses(1))[0]?.isWhole).toBe(false);
  expect((await patient).body.length).toBe(20 * pieceBytes);
});
