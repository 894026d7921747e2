import { setTimeout as delay } from 'node:timers/promises';
import type { ReaderConfig } from '../../agents/definition/far-config.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import {
  isLogstrataError,
  LogstrataError,
  openReader,
  WorkerPool,
  workersDefault,
  type ArchiveFigures,
  type ReaderArchive,
  type Trouble,
} from '../../engine/index.js';
import type { ConsoleAgent } from '../console/console-router.js';
import { isLoopback } from '../http/listen.js';
import { withFar, ServedAgents, openWriterDoor } from './opened-archive.js';
import { packageVersion } from './options.js';
import { exitDone } from './failure.js';
import { formatCount, formatCounted, printLines } from './terminal.js';
import { describeConsole, describeServer, startAnswering, stopWhenTold, type ServeRun } from './answering.js';
import { openRoutes, ChangedTokens } from './listeners.js';
import { Rereading } from './rereading.js';

/** Milliseconds between two requests for the writer's agents and state. */
const lookMs = 2000;
/** The same until the writer has answered for the first time. */
const firstLookMs = 500;

/** The agents of the writer, kept up to date. */
class ReaderAgents {
  readonly served = new ServedAgents<ConsoleAgent>();
  readonly #archive: ReaderArchive;
  readonly #log: CollectLog;
  #trouble = '';

  constructor(archive: ReaderArchive, log: CollectLog) {
    this.#archive = archive;
    this.#log = log;
  }

  /** Updates the agents from the writer. Returns whether it answered. Logs a problem once, and logs when it is over. */
  async look(): Promise<boolean> {
    try {
      const { served, leftOut } = await this.#archive.agents();
      const names = new Set(served.toSorted());
      this.served.leftOut.clear();
      for (const [name, reason] of leftOut) this.served.leftOut.set(name, reason);
      for (const name of this.served.keys())
        if (!names.has(name)) {
          this.served.delete(name);
          this.#archive.forget(name);
        }
      for (const name of names) if (!this.served.has(name)) this.served.set(name, this.#open(name));
      const troubles = await this.#archive.troubles();
      this.#tell(troubles.map(({ reason }) => reason).join('; '));
      return true;
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      this.#tell(error.message);
      return false;
    }
  }

  #open(name: string): ConsoleAgent {
    const store = this.#archive.agent(name);
    const definition = {
      get fields() {
        return store.schema.fields;
      },
    };
    return { definition, store };
  }

  #tell(trouble: string): void {
    if (trouble === this.#trouble) return;
    this.#trouble = trouble;
    const writer = this.#archive.location;
    if (trouble === '') this.#log.info({ writer }, `the writer ${writer} answers again`);
    else this.#log.warn({ writer }, trouble);
  }
}

/** Lines about the agents for the start of a reader: how many records each has, and how many of them the far tier has. */
async function describeReadableRecords(archive: ReaderArchive, agents: ReaderAgents): Promise<string[]> {
  const lines: string[] = [];
  for (const name of agents.served.keys()) {
    try {
      const { records, farRecords } = await archive.counts(name);
      lines.push(
        `agent    ${name}: ${formatCounted(records, 'record')}, ${formatCount(farRecords)} of them in the far tier`,
      );
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      lines.push(`agent    ${name}: ${error.message}`);
    }
  }
  return lines;
}

/** Serves the archive of a writer on another machine until a signal stops it. Returns the exit code. */
export async function serveReader(reader: ReaderConfig, run: ServeRun): Promise<number> {
  const { settings, flags, log } = run;
  if (
    reader.tokenFile !== null &&
    reader.writer.startsWith('http:') &&
    !isLoopback(new URL(reader.writer).hostname)
  )
    log.warn(
      {},
      `the token and the records cross the network unencrypted: set server.tls at the writer ${reader.writer}`,
    );
  assertNotItself(reader, run);
  const workers = new WorkerPool(flags.workers ?? workersDefault());
  const door = await openWriterDoor(reader);
  try {
    return await withFar(settings, async (far) => {
      const archive = await openReader({ door, cluster: far?.cluster, lagMsMax: reader.lagMs, workers });
      const agents = new ReaderAgents(archive, log);
      await printLines([`writer   ${reader.writer}`]);
      return (await firstAnswer(agents, run)) ? answer(archive, agents, workers, run) : exitDone;
    });
  } finally {
    door.close();
    await workers.close();
  }
}

/** Throws `invalid` where the writer's address is the reader's own console. */
function assertNotItself({ writer }: ReaderConfig, { ownConsole }: ServeRun): void {
  if (ownConsole?.address !== writer) return;
  const message = `server.reader.writer is the console of this server, ${writer}: it must be the console of the server that writes`;
  throw new LogstrataError('invalid', message);
}

/** Waits for the first answer of the writer: the agents are not known before. Returns false where a signal came first. */
async function firstAnswer(agents: ReaderAgents, { signals }: ServeRun): Promise<boolean> {
  const { signal } = signals;
  while (!signal.aborted) {
    if (await agents.look()) return true;
    await delay(firstLookMs, undefined, { signal }).catch(() => undefined);
  }
  signals.obeyed();
  return false;
}

async function answer(
  archive: ReaderArchive,
  agents: ReaderAgents,
  workers: WorkerPool,
  run: ServeRun,
): Promise<number> {
  const { settings, log, access, certificates, ownConsole, manager } = run;
  const { served } = agents;
  await printLines(await describeReadableRecords(archive, agents));
  const server = await startAnswering(served, run);
  if (ownConsole !== undefined) {
    const troubles = async (): Promise<Trouble[]> => [...(await archive.troubles()), ...served.troubles];
    const figures = (): Promise<ArchiveFigures> => archive.figures();
    const live = {
      archive: { figures, troubles },
      server,
      workers,
      collection: undefined,
      access,
      version: packageVersion(),
    };
    await openRoutes(ownConsole, served, undefined, { ...live, settings: settings.config.server });
  }
  const rereading = new Rereading([new ChangedTokens(access, log), ...certificates.all], (work) =>
    manager.reloading(work),
  );
  await rereading.listen(settings.config.watch);
  const ended = new AbortController();
  const looking = lookOnAndOn(agents, ended.signal);
  await printLines([...describeConsole(ownConsole), describeServer(server)]);
  manager.ready(`reading for ${formatCounted(served.size, 'agent')} at ${server.address}`, () => true);
  await stopWhenTold(server, run);
  ended.abort();
  await looking;
  await rereading.close();
  return exitDone;
}

async function lookOnAndOn(agents: ReaderAgents, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(lookMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await agents.look();
  }
}
