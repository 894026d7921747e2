import { describe, expect, it } from 'vitest';
import { idleTimeoutMs } from '../../server/http-limits.js';
import type { TransportName } from '../../server/transport.js';
import { serve, transports } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { ask, Wire } from './wire.js';

const pieceBytes = 256 * 1024;

describe.each(transports)('slow clients on %s', (transport) => {
  it('holds a few pieces for each of many that do not read, and still answers others', async () => {
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
    // 10 GB would come. The kernel takes some MB for each connection on this machine, the server itself a piece or two.
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
  // It was not taken for an idle one, which is closed earlier; and what is no whole request has no answer.
  expect(performance.now() - startMs).toBeGreaterThan(idleTimeoutMs);
  expect((await wire.responses(1)).map(({ status }) => status)).not.toContain(200);
}

it('closes a connection whose head does not end, though bytes go on coming, on every transport', async () => {
  await Promise.all(transports.map((transport) => dribble(transport)));
});
