import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { caseCount, seed } from '../cases.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import { openArchive } from '../../engine/index.js';
import type { Value } from '../model/dataset.js';
import { answer, append, load, schema } from '../engine/store/memory-archive.js';
import { between, seededRandom } from '../model/random.js';
import { range } from './numbered-log.js';

const nowMs = Date.UTC(2026, 10, 20, 12);

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'logstrata-succession-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

interface Opened {
  readonly archive: Archive;
  readonly store: AgentStore;
  readonly warnings: string[];
}

async function open(path: string, role: string): Promise<Opened> {
  const warnings: string[] = [];
  const archive = await openArchive(path, {
    mode: 'write',
    role,
    now: () => nowMs,
    onWarning: (message) => warnings.push(message),
  });
  return { archive, store: await archive.agent('web', schema), warnings };
}

function rows(from: number, count: number): Value[][] {
  return range(from, from + count).map((n) => [BigInt(nowMs - (n % 50) * 60_000), BigInt(n), null, 'x']);
}

/** The numbers that a query returns, in ascending order. */
async function numbers(store: AgentStore): Promise<number[]> {
  const text = await answer(store);
  return [...text.matchAll(/"status":(\d+)/g)].map((match) => Number(match[1])).sort((a, b) => a - b);
}

it(`taking over the lock while queries read loses nothing and repeats nothing (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const count = 10_000;
  for (let round = 0; round < caseCount(20, 500); round++) {
    const path = await folder();
    const writer = await open(path, 'load');
    const server = await open(path, 'serve');
    for (let n = 0; n < count; n += 2500) await append(writer.store, rows(n, 2500), 'live');
    await writer.archive.close();
    // No query has read the hot records yet; queries and the commit that makes this process the writer read them concurrently.
    const waitsMs = [0, 0, 0].map(() => between(random, 0, 12));
    const asked = [server.store, server.store].map(async (store, i) => {
      await delay(waitsMs[i]!);
      return numbers(store);
    });
    await delay(waitsMs[2]!);
    await append(server.store, rows(count, 10), 'live');
    for (const found of await Promise.all(asked)) expect(found).toEqual(range(0, found.length));
    expect(await numbers(server.store)).toEqual(range(0, count + 10));
    expect(server.warnings).toEqual([]);
    await server.archive.close();
  }
});

it(`writers end and others take over, while queries see every commit once (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const path = await folder();
  const writers = [await open(path, 'load'), await open(path, 'load')];
  const reader = await openArchive(path, { mode: 'read', role: 'query', now: () => nowMs });
  const store = await reader.agent('web', schema);
  let isOver = false;
  const asking = (async () => {
    for (let seen = 0; !isOver;) {
      const found = await numbers(store);
      expect(found).toEqual(range(0, found.length));
      expect(found.length).toBeGreaterThanOrEqual(seen);
      seen = found.length;
    }
  })();
  asking.catch(() => (isOver = true));
  let next = 0;
  for (let step = 0; step < caseCount(60, 1000) && !isOver; step++) {
    const count = between(random, 1, 20);
    const { store: committing } = writers[between(random, 0, writers.length)]!;
    if (random() < 0.3) await load(committing, rows(next, count));
    else await append(committing, rows(next, count), 'live');
    next += count;
    if (random() < 0.7) continue;
    // Sometimes this is the holder of the lock, and the others notice that when they commit.
    const [ended] = writers.splice(between(random, 0, writers.length), 1);
    await ended!.archive.close();
    writers.push(await open(path, 'load'));
  }
  isOver = true;
  await asking;
  expect(await numbers(store)).toEqual(range(0, next));
  expect((await store.verify()).damages).toEqual([]);
  for (const { archive } of writers) await archive.close();
  await reader.close();
});
