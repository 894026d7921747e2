import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { describeOnTransports, serve } from './running.js';
import { Wire, type WireResponse } from './wire.js';

const path = '/api/query/nginx';
/** A page of a hundred lines almost fills one piece. */
const text = 'x'.repeat(480);

function request(query: string, ...headers: string[]): string {
  return `GET ${path}?${query} HTTP/1.1\r\nHost: x\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`;
}

async function appendNumbers(store: AgentStore, from: number, to: number): Promise<void> {
  const rows = Array.from({ length: to - from }, (_, i) => [
    BigInt(noon - 1000),
    BigInt(from + i),
    null,
    `${from + i} ${text}`,
  ]);
  await append(store, rows, 'live');
}

function numbersOf({ body }: WireResponse): number[] {
  return body
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { status: number }).status);
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** Whether the scan ran for this request, as its headers show, and not for another one. */
function wasRead(response: WireResponse): boolean {
  return /groups;desc="1 scanned of 1"/.test(response.headers.get('server-timing')!);
}

describeOnTransports('clients that request the same page at once, on %s,', (transport) => {
  it('get the same answer from one scan, each in the form that it requested', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('nginx', schema);
    await appendNumbers(store, 0, 200);
    const { address } = await serve(transport, store, { queriesMax: 100 });
    const wires = await Promise.all(Array.from({ length: 64 }, () => Wire.open(address)));
    // One connection is accepted per turn, so the connections are opened first.
    for (const wire of wires) await wire.send(request('limit=0')).responses(1);
    for (const [i, wire] of wires.entries()) {
      const headers = i % 8 === 3 ? ['Accept-Encoding: gzip'] : i % 8 === 5 ? ['Connection: close'] : [];
      wire.send(request('limit=100', ...headers));
      if (i % 8 === 7) wire.socket.destroy();
    }
    const answers: WireResponse[] = [];
    for (const [i, wire] of wires.entries()) if (i % 8 !== 7) answers.push((await wire.responses(2))[1]!);
    expect(answers.length).toBe(56);
    let packed = 0;
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 200, isWhole: true });
      const isPacked = answer.headers.get('content-encoding') === 'gzip';
      if (isPacked) packed++;
      const body = isPacked ? gunzipSync(answer.body) : answer.body;
      expect(numbersOf({ ...answer, body })).toEqual(numbers(100, 200));
    }
    expect(packed).toBe(8);
    expect(answers.filter(wasRead).length).toBeGreaterThan(0);
    // Which requests arrive in the same turn depends on the kernel, but some of them should.
    expect(answers.filter(wasRead).length).toBeLessThan(answers.length);
    for (const wire of wires) wire.socket.destroy();
    await archive.close();
  });

  it('see stored records at once, and from then on', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('nginx', schema);
    let stored = 100;
    await appendNumbers(store, 0, stored);
    const { address } = await serve(transport, store, { queriesMax: 100 });
    const wires = await Promise.all(Array.from({ length: 8 }, () => Wire.open(address)));
    const asked = wires.map((): { stored: number }[] => []);
    for (let turn = 0; turn < 60; turn++) {
      for (const [i, wire] of wires.entries()) {
        asked[i]!.push({ stored });
        wire.send(request('limit=5'));
      }
      if (turn % 3 === 1) await new Promise((resolve) => setTimeout(resolve, 1));
      if (turn % 2 === 1) await appendNumbers(store, stored, stored + 1).then(() => stored++);
    }
    for (const [i, wire] of wires.entries()) {
      const answers = await wire.responses(asked[i]!.length);
      let seen = 0;
      for (const [turn, answer] of answers.entries()) {
        const found = numbersOf(answer);
        const next = found.at(-1)! + 1;
        expect(found).toEqual(numbers(next - 5, next));
        expect(next).toBeGreaterThanOrEqual(Math.max(seen, asked[i]![turn]!.stored));
        seen = next;
      }
      wire.socket.destroy();
    }
    await archive.close();
  });

  it('may read it slowly while others request pages', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('nginx', schema);
    await appendNumbers(store, 0, 2000);
    const { address } = await serve(transport, store, { queriesMax: 100 });
    const slow = await Promise.all([1, 2, 3].map(() => Wire.open(address)));
    // More than the kernel buffers for a connection, where pipelining is possible.
    const count = transport === 'uws' ? 1 : 300;
    for (const wire of slow) wire.socket.pause();
    for (let i = 0; i < count; i++) for (const wire of slow) wire.send(request('limit=100'));
    const other = await Wire.open(address);
    for (let i = 0; i < 100; i++) {
      const [first] = numbersOf((await other.send(request(`limit=${20 + (i % 80)}`)).responses(i + 1))[i]!);
      expect(first).toBe(2000 - 20 - (i % 80));
    }
    const expected = numbers(1900, 2000);
    for (const wire of slow) {
      wire.socket.resume();
      const answers = await wire.responses(count);
      expect(answers.every(({ isWhole }) => isWhole)).toBe(true);
      expect(new Set(answers.map(({ body }) => body.toString())).size).toBe(1);
      expect(numbersOf(answers[0]!)).toEqual(expected);
      wire.socket.destroy();
    }
    other.socket.destroy();
    await archive.close();
  });
});
