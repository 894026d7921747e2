import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore } from '../../engine/index.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { describeOnTransports, serve } from '../server/running.js';
import { until } from '../server/scripted-store.js';
import { ask, Wire } from '../server/wire.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { EventReader } from './client-double.js';

let archive: Archive;
let store: AgentStore;
let written = 0;

beforeEach(async () => {
  archive = await openOn(new MemoryDirectory());
  store = await archive.agent('web', schema);
  written = 0;
  await add(3);
});
afterEach(() => archive.close());

const add = (count: number): Promise<void> =>
  append(
    store,
    Array.from({ length: count }, () => [BigInt(noon), BigInt(written++), null, `record ${written}`]),
    'live',
  );

/** A stream over the wire: the content of its chunks, decoded. */
class StreamOnWire {
  readonly reader = new EventReader();
  #taken = 0;

  constructor(readonly wire: Wire) {}

  get head(): string {
    return this.wire.text.split('\r\n\r\n')[0]!;
  }

  /** Parses the received bytes: each chunk is its length, its bytes and a line end. */
  get numbers(): number[] {
    const { bytes } = this.wire;
    let at = this.#taken === 0 ? bytes.indexOf('\r\n\r\n') + 4 : this.#taken;
    for (;;) {
      const end = bytes.indexOf('\r\n', at);
      const length = end < 0 ? 0 : Number.parseInt(bytes.toString('latin1', at, end), 16);
      if (end < 0 || length === 0 || bytes.length < end + 4 + length) break;
      this.reader.feed(bytes.toString('utf8', end + 2, end + 2 + length));
      at = end + 4 + length;
    }
    this.#taken = at;
    return this.reader.events.map(({ data }) => Number(data['status']));
  }

  get ids(): string[] {
    return this.reader.events.map(({ id }) => id!);
  }

  /** Whether the last chunk, of length 0, has arrived. */
  get isEnded(): boolean {
    return this.wire.text.endsWith('\r\n0\r\n\r\n');
  }
}

describeOnTransports('a stream over HTTP on %s', (transport) => {
  const open = async (address: string, query: string, ...headers: string[]): Promise<StreamOnWire> => {
    const lines = ['Host: x', 'Accept: text/event-stream', ...headers].map((line) => `${line}\r\n`).join('');
    const wire = await Wire.open(address);
    wire.send(`GET /api/query/nginx?${query} HTTP/1.1\r\n${lines}\r\n`);
    const stream = new StreamOnWire(wire);
    await until(() => wire.text.includes('\r\n\r\n'), 'the head has come');
    return stream;
  };

  it('begins with the newest records, follows, and resumes at its last id', async () => {
    const { address } = await serve(transport, store);
    const stream = await open(address, 'limit=2', 'Accept-Encoding: gzip');
    await until(() => stream.numbers.length === 2, 'the newest have come');
    await add(2);
    await until(() => stream.numbers.length === 4, 'the next have come');
    expect(stream.numbers).toEqual([1, 2, 3, 4]);
    const head = stream.head.toLowerCase();
    expect(head).toMatch(/^http\/1\.1 200 ok\r\n/);
    for (const line of [
      'content-type: text/event-stream',
      'cache-control: no-store',
      'x-accel-buffering: no',
      'x-content-type-options: nosniff',
    ])
      expect(head).toContain(line);
    expect(head).not.toContain('content-encoding');
    const [, second, third] = stream.ids;
    const after = await open(address, `after=${second}&fields=status`);
    await until(() => after.numbers.length === 2, 'what comes after a cursor');
    expect(after.reader.events[0]).toEqual({
      name: 'message',
      id: third,
      data: { _cursor: third, status: 3 },
    });
    // The id of the last event is newer than the position in the address that the client started with.
    const resumed = await open(address, `after=${second}`, `Last-Event-ID: ${third}`);
    await until(() => resumed.numbers.length === 1, 'what comes after the last id');
    expect(resumed.numbers).toEqual([4]);
  });

  it('ends cleanly when the server stops', async () => {
    const server = await serve(transport, store);
    const stream = await open(server.address, 'limit=1');
    await until(() => stream.numbers.length === 1, 'the newest has come');
    await server.close({ timeoutMs: 10_000 });
    await stream.wire.closed();
    expect(stream.isEnded).toBe(true);
  });

  it('ends when its client disconnects, and makes room for another', async () => {
    const { address } = await serve(transport, store, { followersMax: 1 });
    const first = await open(address, '');
    expect(
      (await ask(address, '/api/query/nginx', { headers: { Accept: 'text/event-stream' } })).status,
    ).toBe(503);
    first.wire.socket.destroy();
    let second: StreamOnWire | undefined;
    while (second?.head.startsWith('HTTP/1.1 200') !== true) second = await open(address, '');
    await until(() => second!.numbers.length === 3, 'the other one has its records');
  });

  it('is requested by exactly that media type, and validated like any other request', async () => {
    const { address } = await serve(transport, store, { corsOrigin: ['https://logs.example'] });
    const asked = (query: string, more: Record<string, string> = {}) =>
      ask(address, `/api/query/nginx?${query}`, { headers: { Accept: 'text/event-stream', ...more } });
    const lines = await ask(address, '/api/query/nginx', { headers: { Accept: 'text/event-stream, */*' } });
    expect(lines.headers.get('content-type')).toBe('application/x-ndjson');
    for (const [query, parameter] of [
      ['before=0000000000000001', 'before'],
      ['format=csv', 'format'],
      ['format=json', 'format'],
      ['statsu__eq=1', 'statsu__eq'],
    ] as const) {
      const refused = await asked(query);
      expect(refused.status).toBe(400);
      expect(JSON.parse(refused.body.toString())).toMatchObject({ parameter });
    }
    const bad = await asked('', { 'Last-Event-ID': '12' });
    expect(JSON.parse(bad.body.toString())).toMatchObject({ status: 400, parameter: 'Last-Event-ID' });
    const head = await Wire.open(address);
    head.send(
      'HEAD /api/query/nginx HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nOrigin: https://logs.example\r\n\r\n',
    );
    const [response] = await head.responses(1, true);
    expect(response!.status).toBe(200);
    expect(response!.headers.get('content-type')).toBe('text/event-stream');
    expect(response!.headers.get('access-control-allow-origin')).toBe('https://logs.example');
    head.socket.destroy();
  });
});
