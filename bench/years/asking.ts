import { openArchive } from '../../engine/index.js';
import { endMs, schema } from './stores.js';

/** What a process has measured on a store, in milliseconds. */
export interface Asked {
  /** Time to open the archive and all agents. */
  readonly openMs: number;
  /** The first query of each agent for its newest 100 records. */
  readonly firstMs: readonly number[];
  /** The same queries repeated; there are as many rounds as turns. */
  readonly againMs: readonly number[];
}

const newest = { limit: 100, predicates: [] };

/** Opens the store as a server does, and queries each agent for its newest records. Throws where there are not 100. */
async function ask(location: string, agents: readonly string[], turns: number): Promise<Asked> {
  const startMs = performance.now();
  const archive = await openArchive(location, { mode: 'write', role: 'bench', now: () => endMs });
  const stores = [];
  for (const name of agents) stores.push(await archive.agent(name, schema));
  const openMs = performance.now() - startMs;
  const firstMs: number[] = [];
  const againMs: number[] = [];
  for (let turn = 0; turn <= turns; turn++) {
    for (const store of stores) {
      const askedMs = performance.now();
      let lines = 0;
      for await (const piece of (await store.scan(newest)).lines)
        for (const byte of piece) if (byte === 10) lines++;
      (turn === 0 ? firstMs : againMs).push(performance.now() - askedMs);
      if (lines !== newest.limit) throw new Error(`${store.name} in ${location} gave ${lines} records`);
    }
  }
  await archive.close();
  return { openMs, firstMs, againMs };
}

const [location, agents, turns] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await ask(location!, agents!.split(','), Number(turns))));
