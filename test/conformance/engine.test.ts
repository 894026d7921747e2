import type { AgentStore } from '../../engine/archive/agent-store.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { append, load, openOn, textOf } from '../engine/store/memory-archive.js';
import type { Answerer, Commit } from './answerer.js';
import { beginInProcess } from './in-process.js';
import { runConformance } from './runner.js';

type CommitTo = (store: AgentStore, commit: Commit, index: number) => Promise<void>;

/** The engine on a directory in memory, with commits that stay hot, are sealed, or alternate. */
function engineAnswerer(name: string, commitTo: CommitTo): Answerer {
  return {
    name,
    isHttp: false,
    open: async (dataset) => {
      const directory = new MemoryDirectory();
      const now = () => dataset.nowMs;
      let archive = await openOn(directory, now);
      let store = await archive.agent(dataset.name, dataset.schema);
      let commits = 0;
      return {
        commit: (commit) => commitTo(store, commit, commits++),
        begin: (request) =>
          beginInProcess(dataset, request, async (query) => {
            const { lines } = await store.scan(query);
            return () => textOf(lines);
          }),
        restart: async () => {
          await archive.close();
          archive = await openOn(directory, now);
          store = await archive.agent(dataset.name, dataset.schema);
        },
        compact: async () => {
          await store.compact();
        },
        close: () => archive.close(),
      };
    },
  };
}

const rowsOf = (commit: Commit) => commit.records.map((record) => record.values);
const keepHot: CommitTo = (store, commit) => append(store, rowsOf(commit), 'load');
const seal: CommitTo = (store, commit) => load(store, rowsOf(commit));

runConformance(engineAnswerer('the engine, all hot', keepHot));
runConformance(engineAnswerer('the engine, all sealed', seal));
runConformance(
  engineAnswerer('the engine, hot and sealed by turns', (store, commit, index) =>
    (index % 2 === 0 ? keepHot : seal)(store, commit, index),
  ),
);
