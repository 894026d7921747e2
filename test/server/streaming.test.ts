import { gunzipSync, createGunzip } from 'node:zlib';
import { expect, it } from 'vitest';
import { describeOnTransports, logged, serve } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import type { Step } from './scripted-store.js';
import { ask, Wire } from './wire.js';

const request = (headers = ''): string =>
  `GET /api/query/nginx?limit=1000 HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const gzip = 'Accept-Encoding: gzip\r\n';

/** `count` pieces of `bytes` bytes, created on demand; if `noisy`, the content hardly compresses. */
function* pieces(count: number, bytes: number, noisy = false): Iterable<Step> {
  let state = 1;
  for (let i = 0; i < count; i++) {
    const made = piece(i, bytes);
    for (let at = 50; noisy && at < made.length - 3; at++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      made[at] = 0x61 + ((state >>> 16) % 26);
    }
    yield made;
  }
}

function all(count: number, bytes: number, noisy = false): Buffer {
  return Buffer.concat([...pieces(count, bytes, noisy)] as Buffer[]);
}

describeOnTransports('on %s', (transport) => {
  it.each([[''], [gzip]])('streams a large answer completely (%j)', async (headers) => {
    const { address } = await serve(transport, new ScriptedStore(() => pieces(40, 250_000, true)));
    const wire = await Wire.open(address);
    wire.send(request(`Connection: close\r\n${headers}`));
    await wire.closed();
    const [response] = await wire.responses(1);
    expect(response).toMatchObject({ status: 200, isWhole: true });
    expect(response!.headers.get('transfer-encoding')).toBe('chunked');
    const body = headers === '' ? response!.body : gunzipSync(response!.body);
    expect(body.equals(all(40, 250_000, true))).toBe(true);
    wire.socket.destroy();
  });

  it('compresses only if the client accepts that', async () => {
    const { address } = await serve(transport, new ScriptedStore(() => pieces(3, 5000)));
    const encodings: [string, boolean][] = [
      ['gzip', true],
      ['x-gzip', true],
      ['br, gzip;q=0.5', true],
      ['*', true],
      ['deflate, gzip;q=1.0, *;q=0.5', true],
      ['GZIP', true],
      ['gzip;q=0', false],
      ['gzip;q=0.000', false],
      ['*;q=0', false],
      ['br', false],
      ['identity', false],
      ['identity, gzip;q=0.5', false],
      ['', false],
    ];
    for (const [encoding, packs] of encodings) {
      const response = await ask(address, '/api/query/nginx', { headers: { 'Accept-Encoding': encoding } });
      expect([encoding, response.headers.get('content-encoding')]).toEqual([
        encoding,
        packs ? 'gzip' : undefined,
      ]);
      expect((packs ? gunzipSync(response.body) : response.body).equals(all(3, 5000))).toBe(true);
    }
  });

  it.each([[''], [gzip]])('sends the found records before the scan continues (%j)', async (headers) => {
    let goOn: () => void = () => undefined;
    const wait = new Promise<void>((resolve) => (goOn = resolve));
    const { address } = await serve(transport, new ScriptedStore(() => [piece(1), wait, piece(2)]));
    const wire = await Wire.open(address);
    wire.send(request(headers));
    await until(() => wire.receivedBytes > 0, 'a first byte came');
    let plain = '';
    const gunzip = createGunzip();
    gunzip.on('data', (chunk: Buffer) => (plain += chunk.toString()));
    let packedBytes = 0;
    await until(() => {
      const body = bodySoFar(wire);
      if (headers === '') plain = body.toString();
      else gunzip.write(body.subarray(packedBytes));
      packedBytes = body.length;
      return plain === piece(1).toString();
    }, 'the first piece came');
    goOn();
    const [response] = await wire.responses(1);
    expect(response!.isWhole).toBe(true);
    wire.socket.destroy();
  });

  it.each([[''], [gzip]])('takes no more from the scan than a slow client reads (%j)', async (headers) => {
    const store = new ScriptedStore(() => pieces(160, 256 * 1024, true));
    const { address } = await serve(transport, store);
    const wire = await Wire.open(address);
    wire.socket.pause();
    wire.send(request(`Connection: close\r\n${headers}`));
    await until(() => store.given > 0, 'the scan began');
    let before = -1;
    // The kernel's buffers on both sides fill up, and then nothing moves any more.
    for (; before !== store.given; await new Promise((resolve) => setTimeout(resolve, 150)))
      before = store.given;
    // 40 MB would be sent; the kernel buffers some MB for a connection on this machine, the server itself less than one.
    expect(store.given).toBeLessThan(80);
    expect(store.ended).toBe(0);
    wire.socket.resume();
    await wire.closed();
    const [response] = await wire.responses(1);
    expect(response!.isWhole).toBe(true);
    expect(store.given).toBe(160);
    const body = headers === '' ? response!.body : gunzipSync(response!.body);
    expect(body.length).toBe(160 * 256 * 1024);
  });

  it.each([
    ['while it waits for the first byte', [new Promise(() => undefined)] as Step[], ''],
    ['in the middle', [piece(1), piece(2), new Promise(() => undefined)] as Step[], ''],
    ['in the middle, compressed', [piece(1), piece(2), new Promise(() => undefined)] as Step[], gzip],
  ])('ends the scan when the client disconnects %s', async (_what, steps, headers) => {
    const store = new ScriptedStore(() => steps);
    const { address } = await serve(transport, store);
    const wire = await Wire.open(address);
    wire.send(request(headers));
    await until(() => store.begun === 1 && (steps.length === 1 || wire.receivedBytes > 0), 'the scan began');
    wire.socket.destroy();
    await until(() => store.ended === 1, 'the scan ended');
    expect(store.lastSignal?.aborted).toBe(true);
    expect(logged).toEqual([]);
  });

  it.each([[''], [gzip]])(
    'ends the scan when a client that does not read disconnects (%j)',
    async (headers) => {
      const store = new ScriptedStore(() => pieces(400, 256 * 1024, true));
      const { address } = await serve(transport, store);
      const wire = await Wire.open(address);
      wire.socket.pause();
      wire.send(request(headers));
      await until(() => store.given > 3, 'the scan began');
      await new Promise((resolve) => setTimeout(resolve, 200));
      wire.socket.destroy();
      await until(() => store.ended === 1, 'the scan ended');
      expect(store.given).toBeLessThan(400);
    },
  );

  it.each([
    ['a failure', '', new Error('the disk is on fire')],
    ['a failure, compressed', gzip, new Error('the disk is on fire')],
    ['a time limit', '', new Promise(() => undefined)],
    ['a time limit, compressed', gzip, new Promise(() => undefined)],
  ])('breaks the connection on %s once the body has begun', async (_what, headers, step) => {
    const store = new ScriptedStore(() => [...pieces(2, 100_000), step, piece(3)]);
    const { address } = await serve(transport, store, { queryTimeoutMs: 300 });
    const wire = await Wire.open(address);
    wire.send(request(headers));
    await wire.closed();
    const [response] = await wire.responses(1);
    expect(response?.isWhole ?? false).toBe(false);
    expect(wire.text.endsWith('0\r\n\r\n')).toBe(false);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatch(/cut off/);
    await until(() => store.ended === 1, 'the scan ended');
    // The next client is served.
    expect(await ask(address, '/api/query/nginx?limt=1')).toMatchObject({ status: 400 });
  });

  it('starts no more pipelined answers than a client that does not read can take', async () => {
    const store = new ScriptedStore(() => [piece(1, 100_000)]);
    const { address } = await serve(transport, store);
    const wire = await Wire.open(address);
    wire.socket.pause();
    const ahead = 600;
    wire.send(request().repeat(ahead - 1) + request('Connection: close\r\n'));
    await until(() => store.ended > 0, 'the first answer ended');
    let before = -1;
    for (; before !== store.begun; await new Promise((resolve) => setTimeout(resolve, 150)))
      before = store.begun;
    // 60 MB would be sent; the kernel buffers some MB.
    expect(store.begun).toBeLessThan(ahead / 2);
    wire.socket.resume();
    await wire.closed();
    const responses = await wire.responses(ahead);
    // uWebSockets.js closes the connection if a request arrives before the previous answer.
    if (transport === 'uws') return;
    expect(responses).toHaveLength(ahead);
    expect(responses.every(({ isWhole, body }) => isWhole && body.length === 100_000)).toBe(true);
  });

  it('does not count the time that the client takes towards the query timeout', async () => {
    const store = new ScriptedStore(() => pieces(100, 256 * 1024));
    const { address } = await serve(transport, store, { queryTimeoutMs: 1000 });
    const wire = await Wire.open(address);
    wire.socket.pause();
    wire.send(request());
    await new Promise((resolve) => setTimeout(resolve, 1500));
    wire.socket.resume();
    const [response] = await wire.responses(1);
    expect(response!.isWhole).toBe(true);
    wire.socket.destroy();
  });

  it('finishes running answers when it stops, and refuses new requests', async () => {
    let goOn: () => void = () => undefined;
    const wait = new Promise<void>((resolve) => (goOn = resolve));
    const store = new ScriptedStore(() => [piece(1), wait, ...pieces(20, 256 * 1024)]);
    const server = await serve(transport, store);
    const wire = await Wire.open(server.address);
    const idle = await Wire.open(server.address);
    wire.send(request());
    await until(() => wire.receivedBytes > 0, 'the answer began');
    const closing = server.close({ timeoutMs: 20_000 });
    // uWebSockets.js closes idle connections when all answers have ended, and at once a connection that sends a request before its answer.
    if (transport === 'node') {
      await idle.closed();
      wire.send(request());
    }
    await expect(Wire.open(server.address)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    goOn();
    await wire.closed();
    await closing;
    await idle.closed();
    const [first, second] = await wire.responses(2);
    expect(first).toMatchObject({ status: 200, isWhole: true });
    expect(first!.body.length).toBe(piece(1).length + 20 * 256 * 1024);
    if (transport === 'uws') return;
    // The second request came too late, on a connection that could not be told to close.
    expect(second).toMatchObject({ status: 503, isWhole: true });
    expect(second!.headers.get('connection')).toBe('close');
  });

  it('breaks answers that do not end in time when it stops', async () => {
    const store = new ScriptedStore(() => [piece(1), new Promise(() => undefined)]);
    const server = await serve(transport, store);
    const wire = await Wire.open(server.address);
    wire.send(request());
    await until(() => wire.receivedBytes > 0, 'the answer began');
    await server.close({ timeoutMs: 50 });
    await wire.closed();
    expect((await wire.responses(1))[0]?.isWhole ?? false).toBe(false);
    await until(() => store.ended === 1, 'the scan ended');
  });

  it('closes the connection after the first answer that begins after the stop', async () => {
    let goOn: () => void = () => undefined;
    const wait = new Promise<void>((resolve) => (goOn = resolve));
    const store = new ScriptedStore(() => [wait, piece(1)]);
    const server = await serve(transport, store);
    const wire = await Wire.open(server.address);
    // The second request is sent before the stop, the first is answered after it.
    wire.send(transport === 'uws' ? request() : request() + request());
    await until(() => store.begun > 0, 'the first has begun');
    const closing = server.close({ timeoutMs: 20_000 });
    goOn();
    await wire.closed();
    await closing;
    const [first] = await wire.responses(1);
    expect(first).toMatchObject({ status: 200, isWhole: true });
    expect(first!.headers.get('connection')).toBe('close');
  });
});

function bodySoFar(wire: Wire): Buffer {
  const chunks: Buffer[] = [];
  let at = wire.bytes.indexOf('\r\n\r\n') + 4;
  for (;;) {
    const lineEnd = wire.bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return Buffer.concat(chunks);
    const size = parseInt(wire.bytes.toString('latin1', at, lineEnd), 16);
    chunks.push(wire.bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
