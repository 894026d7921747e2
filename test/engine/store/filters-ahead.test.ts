import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FiltersAhead } from '../../../engine/archive/filters-ahead.js';
import { openArchive, WorkerPool } from '../../../engine/index.js';
import type { Archive, Schema } from '../../../engine/index.js';
import type { OpenOptions } from '../../../engine/archive/open-options.js';
import { Store } from '../../../engine/archive/store.js';
import type { Query, ScanStats } from '../../../engine/scan/plan/query.js';
import type { AgentState } from '../../../engine/store/reading/agent-state.js';
import { numbered } from '../../scan/numbered.js';
import { load } from './memory-archive.js';

const { schema: numberedSchema, records } = numbered(3000);
const schema: Schema = numberedSchema;
const folder = mkdtempSync(join(tmpdir(), 'logstrata-ahead-'));
const workers = new WorkerPool(2);

/** Two segments, each with both kinds of filters for its messages. */
beforeAll(async () => {
  const archive = await open();
  const store = await archive.agent('web', schema);
  for (const from of [0, 1500])
    await load(
      store,
      records.slice(from, from + 1500).map(({ values }) => [...values]),
    );
  await archive.close();
});
afterAll(async () => {
  await workers.close();
  rmSync(folder, { recursive: true });
});

function open(options: Partial<OpenOptions> = {}): Promise<Archive> {
  return openArchive(folder, {
    mode: 'write',
    role: 'test',
    workers,
    background: { threads: 0 },
    ...options,
  });
}

interface OpenAgent {
  readonly archive: Archive;
  readonly state: AgentState;
  ask(query: Query): Promise<{ text: string; stats: ScanStats }>;
  poolBytes(): Promise<number>;
}

async function openAgent(options: Partial<OpenOptions> = {}): Promise<OpenAgent> {
  const archive = await open(options);
  const store = await archive.agent('web', schema);
  if (!(store instanceof Store)) throw new Error('the store is the engine’s own');
  return {
    archive,
    state: store.context.state,
    ask: async (query) => {
      const { lines, stats } = await store.scan(query);
      let text = '';
      for await (const piece of lines) text += Buffer.from(piece).toString('utf8');
      return { text, stats };
    },
    poolBytes: async () => (await archive.figures()).pool.bytes,
  };
}

const text = (op: 'exact' | 'like', value: string): Query => ({
  limit: 10,
  predicates: [{ kind: 'string', field: 2, op, value }],
});
const questions = [
  text('exact', records[77]!.values[2] as string),
  text('exact', 'nobody'),
  text('like', 'is no. 2345 done'),
  text('like', 'which xyz wrote'),
];
const pieces = ({ gramPiecesRead, valuePiecesRead }: ScanStats): number => gramPiecesRead + valuePiecesRead;

describe('filters that are read in advance', () => {
  it('are in memory for the first query, which gives the same answer without reading any', async () => {
    const answers: string[] = [];
    for (const query of questions) {
      const { archive, ask } = await openAgent();
      const { text, stats } = await ask(query);
      expect(pieces(stats)).toBeGreaterThan(0);
      answers.push(text);
      await archive.close();
    }
    expect(answers.map((answer) => answer.split('\n').length - 1)).toEqual([1, 0, 1, 0]);
    for (const [i, query] of questions.entries()) {
      const { archive, state, ask, poolBytes } = await openAgent();
      const ahead = new FiltersAhead(workers);
      ahead.add(state);
      await ahead.done();
      expect(await poolBytes()).toBeGreaterThan(0);
      // A replaced file can be removed although its filters were read.
      expect(state.pinnedBefore(Infinity)).toBe(false);
      const { text, stats } = await ask(query);
      expect(text).toBe(answers[i]);
      expect(pieces(stats)).toBe(0);
      expect(stats.rowGroupsPrunedByValue + stats.rowGroupsPrunedByGram).toBeGreaterThan(0);
      await archive.close();
    }
  });

  it('are read when a process is opened to answer, before any query', async () => {
    const { archive, poolBytes } = await openAgent({ anticipates: true });
    await vi.waitFor(async () => expect(await poolBytes()).toBeGreaterThan(0), 20_000);
    await archive.close();
    const quiet = await openAgent();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await quiet.poolBytes()).toBe(0);
    await quiet.archive.close();
  });

  it('take no more than their share of the memory', async () => {
    const cacheBytes = 64 * 1024;
    const { archive, state, ask, poolBytes } = await openAgent({ cacheBytes });
    const ahead = new FiltersAhead(workers);
    ahead.add(state);
    await ahead.done();
    expect(await poolBytes()).toBeLessThanOrEqual(cacheBytes / 4);
    expect((await ask(questions[2]!)).text.split('\n')).toHaveLength(2);
    await archive.close();
  });

  it('are not read any further once the archive is closed', async () => {
    for (let turns = 0; turns < 5; turns++) {
      const { archive, state } = await openAgent();
      const ahead = new FiltersAhead(workers);
      ahead.add(state);
      for (let i = 0; i < turns; i++) await new Promise(setImmediate);
      await ahead.close();
      expect(state.pinnedBefore(Infinity)).toBe(false);
      await archive.close();
    }
  });
});
