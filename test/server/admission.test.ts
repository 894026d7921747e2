import { describe, expect, it } from 'vitest';
import { WatchedAnswer } from '../../server/pace/answer-watch.js';
import { TrustedProxies } from '../../server/http/client-address.js';
import { connectionsMax } from '../../engine/core/limits.js';
import { OpenConnections, type OpenConnection } from '../../server/http/listen.js';
import { describeOnTransports, logged, serve } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { ask, Wire } from './wire.js';

const request = 'GET /api/query/nginx?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** 250 MB for a long answer, more than any kernel buffers for a client; one piece for a short one. */
function longAnswers(): ScriptedStore {
  return new ScriptedStore(function* ({ limit }) {
    for (let i = 0; i < limit; i++) yield piece(i, 256 * 1024);
  });
}

async function openSlow(address: string, count: number): Promise<Wire[]> {
  const wires = await Promise.all(Array.from({ length: count }, () => Wire.open(address)));
  for (const wire of wires) {
    wire.socket.pause();
    wire.send(request);
  }
  return wires;
}

describeOnTransports('on %s', (transport) => {
  it('frees the slots of answers that wait for their clients', async () => {
    const store = longAnswers();
    const { address } = await serve(transport, store, { queriesMax: 4 });
    const slow = await openSlow(address, 11);
    await until(() => store.begun === slow.length, 'all long answers began');
    expect((await ask(address, '/api/query/nginx?limit=1')).status).toBe(200);
    for (const wire of slow) wire.socket.destroy();
    await until(() => store.ended === store.begun, 'all scans ended');
  });

  it('keeps slots free when one address requests as many answers as it can', async () => {
    const store = new ScriptedStore(({ limit }) =>
      limit === 1 ? [piece(1)] : [new Promise(() => undefined)],
    );
    const { address } = await serve(transport, store, { queriesMax: 4, trustedProxies: ['127.0.0.0/8'] });
    const from = (client: string): { headers: Record<string, string> } => ({
      headers: { 'X-Forwarded-For': client },
    });
    const statuses: number[] = [];
    for (let i = 0; i < 8; i++) {
      const asked = ask(address, '/api/query/nginx', from('192.0.2.1'));
      // The answers that hang end with the server.
      asked.then(({ status }) => statuses.push(status)).catch(() => undefined);
    }
    await until(() => store.begun === 3, 'three quarters of the slots are taken');
    expect((await ask(address, '/api/query/nginx?limit=1', from('192.0.2.1'))).status).toBe(429);
    expect((await ask(address, '/api/query/nginx?limit=1', from('192.0.2.2'))).status).toBe(200);
    expect(store.begun).toBe(4);
    await until(() => statuses.length === 5, 'those without a slot were refused');
    expect(new Set(statuses)).toEqual(new Set([429]));
  });

  it('cuts off an answer that takes too long, and logs that', async () => {
    const { address } = await serve(transport, longAnswers(), { answerTimeoutMs: 1 });
    const [wire] = await openSlow(address, 1);
    await until(() => logged.some((line) => line.includes('took longer than 0.001 s')), 'it was logged');
    wire!.socket.resume();
    await wire!.closed();
    expect(wire!.ending).not.toBe('open');
    expect((await wire!.responses(1))[0]?.isWhole ?? false).toBe(false);
  });
});

describe('the minimum rate of a client', () => {
  const limits = { clientRateMin: 1000, answerTimeoutMs: 1e9 };

  /** Whether a client is cut off that for ten minutes takes a piece of `bytes` bytes every `seconds` seconds. */
  function isCutOff(bytes: number, seconds: number): boolean {
    let isCut = false;
    const answer = new WatchedAnswer(
      limits,
      0,
      () => (isCut = true),
      () => undefined,
    );
    let nextMs = 0;
    for (let nowMs = 0; nowMs < 600_000; nowMs += 1000) {
      if (nowMs >= nextMs) {
        if (nowMs > 0) answer.took(bytes, nowMs);
        answer.waits(bytes, nowMs);
        nextMs = nowMs + 1000 * seconds;
      }
      answer.check(nowMs);
    }
    return isCut;
  }

  it('is measured over whole minutes', () => {
    expect(isCutOff(1100, 1)).toBe(false);
    expect(isCutOff(900, 1)).toBe(true);
    // A piece that takes half a minute is fast enough if it is large enough.
    expect(isCutOff(31_000, 30)).toBe(false);
    expect(isCutOff(10_000, 120)).toBe(true);
  });

  it('ignores the time in which there is nothing to send to the client', () => {
    let isCut = false;
    const answer = new WatchedAnswer(
      limits,
      0,
      () => (isCut = true),
      () => undefined,
    );
    for (let nowMs = 0; nowMs < 3_600_000; nowMs += 1000) answer.check(nowMs);
    expect(isCut).toBe(false);
  });
});

describe('the client that a request is counted for', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8:ffff::1']);

  it.each([
    ['192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['10.1.2.3', 'spoofed, 198.51.100.7, 10.9.9.9', '198.51.100.7'],
    ['10.1.2.3', '203.0.113.5,198.51.100.7', '198.51.100.7'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '10.4.4.4', '10.4.4.4'],
    ['2001:db8:ffff::1', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', undefined, '2001:db8:0:0::/64'],
    ['::1', undefined, '0:0:0:0::/64'],
  ])('%s with %j', (remote, forwarded, client) => {
    expect(proxies.clientOf(remote, () => forwarded)).toBe(client);
  });
});

class Connection implements OpenConnection {
  isDestroyed = false;
  constructor(
    readonly table: OpenConnections<Connection>,
    readonly address: string,
    readonly isAnswering = false,
  ) {}

  destroy(): void {
    this.isDestroyed = true;
    this.table.remove(this);
  }
}

describe('connections', () => {
  it('that are idle make room for new ones, starting with the oldest of the address with the most', () => {
    const table = new OpenConnections<Connection>(10);
    const open = (address: string, isAnswering = false): Connection => {
      const connection = new Connection(table, address, isAnswering);
      table.add(connection);
      return connection;
    };
    const answering = open('a', true);
    const idle = Array.from({ length: 7 }, () => open('a'));
    const others = [open('b'), open('b')];
    const late = [open('c'), open('b')];
    expect(answering.isDestroyed).toBe(false);
    expect(idle.map(({ isDestroyed }) => isDestroyed)).toEqual([true, true, ...Array(5).fill(false)]);
    expect([...others, ...late].some(({ isDestroyed }) => isDestroyed)).toBe(false);
    expect([...table]).toHaveLength(10);
  });

  it('are refused if all others are being answered', () => {
    const table = new OpenConnections<Connection>(2);
    for (let i = 0; i < 2; i++) table.add(new Connection(table, 'a', true));
    const third = new Connection(table, 'b', true);
    table.add(third);
    expect(third.isDestroyed).toBe(true);
  });

  it('beyond the limit do not prevent others from being answered', async () => {
    const { address } = await serve('node', new ScriptedStore(() => [piece(1)]));
    const idle: Wire[] = [];
    for (let i = 0; i < connectionsMax + 20; i++) idle.push(await Wire.open(address));
    expect((await ask(address, '/api/query/nginx')).status).toBe(200);
    for (const wire of idle) wire.socket.destroy();
  });
});
