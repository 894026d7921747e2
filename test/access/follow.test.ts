import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore } from '../../engine/index.js';
import { FailedTokens, ListenerGuard } from '../../server/http/access.js';
import { digestOf, newTokenText, type Token } from '../../server/http/token-folder.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { serve } from '../server/running.js';
import { until } from '../server/scripted-store.js';
import { Wire } from '../server/wire.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

let archive: Archive;
let store: AgentStore;

beforeEach(async () => {
  archive = await openOn(new MemoryDirectory());
  store = await archive.agent('web', schema);
  await append(store, [[BigInt(noon), 1n, null, 'first']], 'live');
});
afterEach(() => archive.close());

async function follow(address: string, text: string | null): Promise<Wire> {
  const wire = await Wire.open(address);
  const authorization = text === null ? '' : `Authorization: Bearer ${text}\r\n`;
  wire.send(
    `GET /api/query/web HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n${authorization}\r\n`,
  );
  await until(() => wire.text.includes('"first"'), 'the first record');
  return wire;
}

it('a stream ends with the reason when its token expires or is revoked, or when tokens become required', async () => {
  const guard = new ListenerGuard('query', new FailedTokens(() => undefined));
  const made = [1, 2, 3].map(() => newTokenText());
  const tokenOf = (i: number, changes: Partial<Token> = {}): Token => ({
    ...{ id: made[i]!.id, digest: digestOf(made[i]!.text), listeners: ['query'], agents: ['web'] },
    ...{ name: null, createdMs: 0, expiresMs: null, revokedMs: null, ...changes },
  });
  const { address } = await serve('node', store, { guard, lookup: () => store });
  const open = await follow(address, null);
  const expiresMs = Date.now() + 86_400_000;
  guard.take([tokenOf(0), tokenOf(1, { expiresMs }), tokenOf(2)]);
  await until(() => open.text.includes('event: failed'), 'an end');
  expect(open.text).toMatch(/data: \{"status":401,"title":"Unauthorized","detail":"a token is required: /);

  const streams = await Promise.all([0, 1, 2].map((i) => follow(address, made[i]!.text)));
  guard.take([tokenOf(0, { revokedMs: 1 }), tokenOf(1, { expiresMs: 1 }), tokenOf(2)]);
  await until(() => streams.slice(0, 2).every(({ text }) => text.endsWith('0\r\n\r\n')), 'two ends');
  expect(streams[0]!.text).toContain(`"detail":"the token ${made[0]!.id} was revoked"`);
  expect(streams[1]!.text).toContain(`"detail":"the token ${made[1]!.id} expired on 1970-01-01"`);
  await append(store, [[BigInt(noon), 2n, null, 'second']], 'live');
  await until(() => streams[2]!.text.includes('"second"'), 'the second record');
  expect(streams[2]!.text).not.toContain('event: failed');
  expect(streams[0]!.text).not.toContain('"second"');
});
