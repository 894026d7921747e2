import { mkdirSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { loadFiles } from '../../agents/load/load.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { FollowedFolder, lines, range } from './followed-folder.js';
import { everyOrder, type Turn } from './turns.js';

/** A store that waits for its turn before each call that a load makes. */
function loadedInTurns(store: AgentStore, turn: Turn): AgentStore {
  // From then on no other commit is possible, so that the order of later steps makes no difference.
  let atCommit = false;
  const checkpoints: AgentStore['checkpoints'] = async () => {
    if (!atCommit) await turn();
    return store.checkpoints();
  };
  const beginLoad: AgentStore['beginLoad'] = async (options) => {
    await turn();
    const session = await store.beginLoad(options);
    const commit = session.commit.bind(session);
    session.commit = async (...args) => {
      await turn();
      atCommit = true;
      return commit(...args);
    };
    return session;
  };
  return Object.create(store, {
    checkpoints: { value: checkpoints },
    beginLoad: { value: beginLoad },
  }) as AgentStore;
}

/** The same for a collector, whose turns may be replaced. */
function collectedInTurns(store: AgentStore, turnNow: () => Turn): AgentStore {
  const sources: AgentStore['sources'] = async () => {
    await turnNow()();
    return store.sources();
  };
  const append: AgentStore['append'] = async (...args) => {
    await turnNow()();
    return store.append(...args);
  };
  return Object.create(store, { sources: { value: sources }, append: { value: append } }) as AgentStore;
}

const noTurn: Turn = () => Promise.resolve();

const loads = [
  { what: 'the log', names: ['web.log'] },
  { what: 'a compressed generation', names: ['web.log.2.gz'] },
  { what: 'a copy of a generation', names: ['copy/web.log.1.gz'] },
  { what: 'all of them as one', names: ['web.log', 'web.log.1', 'web.log.2.gz'] },
];

it.each(loads)(
  'a load of $what and a collector store each line once, whatever the order of their steps',
  async ({ names }) => {
    await everyOrder(async (run) => {
      let turn = noTurn;
      const storeOf = (store: AgentStore): AgentStore => collectedInTurns(store, () => turn);
      const followed = new FollowedFolder(await temporaryFolder(), { storeOf });
      try {
        await followed.start();
        await followed.collector.prepare();
        writeFileSync(followed.path('web.log'), lines(5, 10));
        writeFileSync(followed.path('web.log.1'), lines(2, 5));
        writeFileSync(followed.path('web.log.2.gz'), gzipSync(lines(0, 2)));
        mkdirSync(followed.path('copy'));
        writeFileSync(followed.path('copy/web.log.1.gz'), gzipSync(lines(2, 5)));
        await followed.collector.survey();
        // The compressed file has been unchanged for long enough to be read.
        followed.pass(3000);
        const { store, definition, now } = followed;
        const files = names.map((name) => followed.path(name));
        const order = await run({
          load: async (itsTurn) => {
            const inTurns = loadedInTurns(store, itsTurn);
            await loadFiles({ store: inTurns, definition, now, timezone: 'UTC', files, merge: true });
          },
          collect: async (itsTurn) => {
            turn = itsTurn;
            await followed.collect();
            turn = noTurn;
          },
        });
        await followed.settle();
        expect(await followed.numbers(), order.join(', ')).toEqual(range(0, 10));
      } finally {
        await followed.stop();
      }
    });
  },
);
