import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Collection } from '../../agents/collect/collection.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import type { ConsoleSetting, ListenAddress } from '../../agents/definition/config.js';
import type { ReaderConfig } from '../../agents/definition/far-config.js';
import {
  hasSystemCode,
  isLogstrataError,
  LogstrataError,
  openReader,
  WorkerPool,
  workersDefault,
  type Archive,
  type ReadableStore,
  type ReaderArchive,
  type Trouble,
} from '../../engine/index.js';
import type { ConsoleAgent } from '../console/console-router.js';
import { startConsole, type RunningConsole } from '../console/console.js';
import type { ServerFigures } from '../console/metric.js';
import { makeRoutes, type WrittenAgents } from '../console/routes.js';
import { Access, type ListenerGuard } from '../http/access.js';
import { isLoopback } from '../http/listen.js';
import { serviceManagerOf, type ServiceManager } from '../http/service-manager.js';
import type { AgentsByName } from '../route/query-route.js';
import type { SlowQuery } from '../route/query-tally.js';
import type { TransportChoice } from '../route/server-options.js';
import { startServer, type RunningServer } from '../route/server.js';
import { exitDone, expectedError, openLog, type LogLevel } from './failure.js';
import { growHeapsSlowly } from './heap-growth.js';
import {
  describeServedAgents,
  firstLines,
  openAgents,
  openWriterClient,
  ServedAgents,
  withFar,
  withWorkers,
  type ServedAgent,
} from './opened-archive.js';
import {
  allAgents,
  packageVersion,
  readSettings,
  retentionOf,
  type GlobalFlags,
  type ServerStatus,
  type Settings,
} from './options.js';
import {
  ChangedAgents,
  changedTokens,
  readCertificates,
  Rereading,
  type OwnCertificate,
  type OwnCertificates,
  type Rereadable,
} from './rereading.js';
import type { StopSignals } from './stoppable.js';
import { formatCount, formatCounted, printLines, tell } from './terminal.js';

/** Lines with the absolute paths of the used folders: they often explain an unexpected answer. */
function describeFolders(settings: Settings): string[] {
  const config = settings.configPath === undefined ? 'none (defaults)' : resolve(settings.configPath);
  return [
    `config   ${config}`,
    // A reader uses the agents of its writer.
    ...(settings.config.server.reader === null ? [`agents   ${resolve(settings.agentsFolder)}`] : []),
    `data     ${resolve(settings.dataFolder)}`,
    ...settings.config.notes.map((note) => `note     ${note}`),
  ];
}

/** What a command does besides serving. */
export interface ServeExtras {
  /** Called before anything is served; returns lines to print. */
  readonly prepare?: (served: ReadonlyMap<string, ServedAgent>) => Promise<readonly string[]>;
  /** Returns lines to print once the server answers at `address`. */
  readonly hints?: (served: ReadonlyMap<string, ServedAgent>, address: string) => readonly string[];
  /** Whether changed agents' files, tokens and certificates are read again, at SIGHUP and, if configured, when the files change. */
  readonly rereads: boolean;
}

async function serveArchive(
  archive: Archive,
  workers: WorkerPool,
  run: ServeRun,
  { prepare, hints, rereads }: ServeExtras,
): Promise<number> {
  const { settings, flags, log } = run;
  const served = await openAgents(archive, await allAgents(settings));
  if (prepare !== undefined) await printLines(await prepare(served));
  await printLines(await describeServedAgents(served));
  for (const [agent, reason] of served.leftOut) log.error({ agent }, `${reason}: it is not served`);
  const folder = settings.agentsFolder;
  return whileCollecting(archive, served, settings, flags, log, (begin) =>
    answerUntilStopped(run, {
      served,
      written: served,
      archive,
      workers,
      begin,
      rereads: (collection) =>
        rereads ? [new ChangedAgents({ archive, served, collection, folder, log })] : undefined,
      hints: (address) => hints?.(served, address) ?? [],
      doing: 'answering',
      isWell: () => archive.isWell(),
    }),
  );
}

/** What a server answers from. */
interface Answered {
  readonly served: ServedAgents<ConsoleAgent>;
  /** The agents whose files the console shows; undefined where there are none. */
  readonly written: WrittenAgents | undefined;
  readonly archive: Pick<Archive, 'figures' | 'troubles'>;
  /** The threads of queries. */
  readonly workers: WorkerPool;
  readonly begin: BeginCollecting;
  /** What is read again besides tokens and certificates; undefined where nothing is read again. */
  readonly rereads: (collection: Collection | undefined) => readonly Rereadable[] | undefined;
  readonly hints: (address: string) => readonly string[];
  /** What the service manager is told: `answering` or `reading`. */
  readonly doing: string;
  readonly isWell: () => boolean;
}

/** Answers queries until a signal stops the server. Returns the exit code. */
async function answerUntilStopped(run: ServeRun, answered: Answered): Promise<number> {
  const { settings, log, access, certificates, manager } = run;
  const { ownConsole, whyNot } = run.opened;
  const { served, hints, doing, isWell } = answered;
  const server = await startAnswering(served, run);
  const collection = answered.begin();
  if (ownConsole !== undefined) openRoutes(ownConsole, answered, run, server, collection);
  const things = answered.rereads(collection);
  const rereading = new Rereading(
    things === undefined ? [] : [changedTokens(access, log), ...certificates.all, ...things],
    (work) => manager.reloading(work),
  );
  if (things !== undefined) await rereading.listen(settings.config.watch);
  const { address, transport } = server;
  await printLines([
    `serving  ${address}/api/query/<agent>  (${transport})`,
    ...(ownConsole === undefined ? [] : [`viewer   ${ownConsole.address}`]),
    ...hints(address),
  ]);
  // Said last, as nobody would see it above the lines about many agents.
  if (whyNot !== undefined) log.warn({}, `there is no viewer: ${whyNot}`);
  manager.ready(`${doing} for ${formatCounted(served.size, 'agent')} at ${address}`, isWell);
  await stopWhenTold(server, run);
  await rereading.close();
  return exitDone;
}

/** Runs `logstrata serve`: answers the HTTP route until it is stopped. SIGHUP makes it read agents, tokens and certificates again. */
export async function serve(flags: ServeFlags, signals: StopSignals): Promise<number> {
  return serveUntilStopped(await readSettings(flags), flags, signals, { rereads: true });
}

/** Opens the archive, serves its agents and collects their logs until a signal stops it. Returns the exit code. */
export async function serveUntilStopped(
  settings: Settings,
  flags: ServeFlags,
  signals: StopSignals,
  extras: ServeExtras,
): Promise<number> {
  // Done first, while this process is small: messages need a helper process, and starting one takes longer in a large process.
  const manager = serviceManagerOf(process.env, process.pid, (message) =>
    tell(`logstrata: warning: ${message}`),
  );
  growHeapsSlowly();
  manager.starting(`opening ${resolve(settings.dataFolder)}`);
  await printLines(describeFolders(settings));
  const { reader } = settings.config.server;
  // Agents are read before the archive is opened: an error in a file must not leave a lock behind, even for a moment.
  if (reader === null) await allAgents(settings);
  const log = await openLog(flags.logLevel);
  const access = await Access.open(resolve(settings.dataFolder), (message) => log.warn({}, message));
  const certificates = readCertificates(settings, log);
  const setup = { log, access, certificate: certificates.console };
  const opened = await openConsole(settings, flags.console, setup);
  const run = { settings, flags, signals, log, access, certificates, opened, manager };
  try {
    if (reader !== null) return await serveReader(reader, run);
    return await withWorkers(
      settings,
      'write',
      'serve',
      flags.workers,
      (archive, workers) => serveArchive(archive, workers, run, extras),
      { lasts: true, log },
    );
  } finally {
    await opened.ownConsole?.close({ timeoutMs: 0 });
    manager.close();
  }
}

/** The options of the commands that start a server. */
export interface ServeFlags extends GlobalFlags {
  readonly listen?: ListenAddress;
  readonly console?: ConsoleSetting;
  readonly transport?: TransportChoice;
  readonly workers?: number;
  /** Whether to collect the agents' logs as well. */
  readonly follow: boolean;
  readonly logLevel: LogLevel;
}

/** Milliseconds that the server waits for running responses when it is stopped. A second signal ends it at once. */
const stopTimeoutMs = 30_000;

/** The parts of a running server. */
interface ServeRun {
  readonly settings: Settings;
  readonly flags: ServeFlags;
  readonly signals: StopSignals;
  readonly log: CollectLog;
  readonly access: Access;
  readonly certificates: OwnCertificates;
  readonly opened: OpenedConsole;
  readonly manager: ServiceManager;
}

/** The console of this server, if it is on, or why it is not, though it should be. */
export interface OpenedConsole {
  readonly ownConsole?: RunningConsole;
  readonly whyNot?: string;
}

/** Starts the query listener for the agents of an open archive. */
async function startAnswering(
  served: AgentsByName<{ readonly store: ReadableStore }>,
  { settings, flags, log, access, certificates }: ServeRun,
): Promise<RunningServer> {
  const { server } = settings.config;
  const listen = flags.listen ?? server.listen;
  const certificate = certificates.query;
  const running = await startServer({
    ...server,
    listen,
    guard: access.query,
    ...(certificate === undefined ? {} : { certificate: certificate.current }),
    transport: flags.transport ?? 'auto',
    lookup: (name) => served.get(name)?.store,
    leftOut: served.leftOut,
    now: Date.now,
    log: (message) => log.error({}, message),
    onSlow: (query) => logSlowQuery(log, query),
  });
  certificate?.isOf(running);
  warnOfOpenListener(listen, access.query, certificate, settings, log);
  return running;
}

/** Logs a slow query in one line. */
function logSlowQuery(log: CollectLog, { timeMs, parameters, figures, ...query }: SlowQuery): void {
  const asked = { asked: new Date(timeMs).toISOString(), query: parameters.join('&') };
  log.warn({ ...asked, ...query, ...figures }, 'a query was slow');
}

/** Waits for a stop signal, then lets the listeners finish the running responses. */
async function stopWhenTold(
  server: RunningServer,
  { signals, log, opened: { ownConsole }, manager }: ServeRun,
): Promise<void> {
  if (!signals.signal.aborted) {
    await new Promise<void>((done) => signals.signal.addEventListener('abort', () => done(), { once: true }));
  }
  log.info(
    { signal: signals.received ?? null },
    'stopping after the answers under way (signal again to stop at once)',
  );
  manager.stopping('stopping after the answers under way');
  const endMs = performance.now() + stopTimeoutMs;
  // The console is closed last: until then its readiness probe answers that the server is stopping.
  ownConsole?.stopping();
  await server.close({ timeoutMs: stopTimeoutMs });
  await ownConsole?.close({ timeoutMs: Math.max(0, endMs - performance.now()) });
  signals.obeyed();
}

/** Adds the routes that need the open archive to the console. */
function openRoutes(
  { open }: RunningConsole,
  { served, written, archive, workers }: Answered,
  { settings, access }: ServeRun,
  { route, admission, transport }: RunningServer,
  collection: Collection | undefined,
): void {
  const { server } = settings.config;
  const troubles = async (): Promise<Trouble[]> => [...(await archive.troubles()), ...served.troubles];
  const figures = async (): Promise<ServerFigures> => {
    const [ofArchive, known] = await Promise.all([archive.figures(), troubles()]);
    return {
      version: packageVersion(),
      transport,
      isReady: known.length === 0,
      archive: ofArchive,
      queries: {
        tally: route.tally,
        slow: route.slow.count,
        ...admission.load,
        runningMax: server.queriesMax,
      },
      collecting: collection?.status() ?? {},
      importing: collection?.importing() ?? {},
      attaching: collection?.attaching() ?? {},
      wrongTokens: { query: access.query.failures, console: access.console.failures },
      threads: {
        query: workers,
        compact: { busy: ofArchive.compactionThreadsBusy, waiting: 0, threads: 1 },
        ...(collection === undefined ? {} : { collect: collection.workers }),
      },
    };
  };
  const counts = { ...server, now: Date.now };
  const version = packageVersion();
  open(makeRoutes({ version, agents: served, written, route, admission, counts, figures }), troubles);
}

/**
 * Warns where other machines can reach a listener and no token is needed, or where tokens and records are sent unencrypted. With trusted
 * proxies configured there is no warning: they are expected to provide both.
 */
function warnOfOpenListener(
  { host }: ListenAddress,
  guard: ListenerGuard,
  certificate: OwnCertificate | undefined,
  { config: { server } }: Settings,
  log: CollectLog,
): void {
  if (isLoopback(host) || server.trustedProxies.length > 0) return;
  if (!guard.isClosed)
    log.warn(
      { listen: host },
      'everybody who reaches this machine can query it: make a token ("logstrata token new"), or name the proxy that authenticates users in ' +
        'server.trusted_proxies',
    );
  else if (certificate === undefined)
    log.warn(
      { listen: host },
      'tokens and records cross the network unencrypted: set server.tls, or name the proxy in server.trusted_proxies',
    );
}

/** What the console needs to log, check tokens and use TLS. */
interface ConsoleSetup {
  readonly log: CollectLog;
  readonly access: Access;
  /** Undefined where the console does not use TLS. */
  readonly certificate: OwnCertificate | undefined;
}

/**
 * Starts the console, unless it is off. Where its address is in use, this throws if the address was configured; for the default address it
 * returns the reason, as a second server on a machine is not a mistake.
 */
export async function openConsole(
  settings: Settings,
  flag: ConsoleSetting | undefined,
  { log, access, certificate }: ConsoleSetup,
): Promise<OpenedConsole> {
  const { server } = settings.config;
  const address = flag ?? server.console;
  if (address === 'off') return {};
  const { hosts, trustedProxies, clientTimeoutMs } = server;
  try {
    const running = await startConsole({
      address,
      hosts,
      trustedProxies,
      clientTimeoutMs,
      guard: access.console,
      certificate: certificate?.current,
      log: (message) => log.error({}, message),
    });
    certificate?.isOf(running);
    warnOfOpenListener(address, access.console, certificate, settings, log);
    return { ownConsole: running };
  } catch (error) {
    if (address.isAsked || !isLogstrataError(error) || !hasSystemCode(error.cause, 'EADDRINUSE')) throw error;
    return { whyNot: `the console was not started: ${error.message}, with --console, or --console off` };
  }
}

/** Threads for decoding. One decodes lines faster than a disk delivers them; the second one serves other agents meanwhile. */
const collectThreadsMax = 2;

/** Starts collecting, and returns the collection; undefined where nothing is to be collected. */
type BeginCollecting = () => Collection | undefined;

/** Calls `run`, which starts collecting the agents' logs and figures by calling `begin`. Collecting stops when `run` has ended. */
export async function whileCollecting<T>(
  archive: Archive,
  served: ServedAgents,
  { config }: Settings,
  flags: { readonly follow: boolean; readonly workers?: number },
  log: CollectLog,
  run: (begin: BeginCollecting) => Promise<T>,
): Promise<T> {
  const leftOut = (): Pick<ServerStatus, 'leftOut'> => ({ leftOut: Object.fromEntries(served.leftOut) });
  if (!flags.follow) {
    archive.provideStatus(leftOut);
    return run(() => undefined);
  }
  // A pool of its own: new lines must not wait for sealing, compaction or scans.
  const workers = new WorkerPool(Math.min(collectThreadsMax, flags.workers ?? workersDefault()));
  const { limit, flushMs, tailTimeoutMs } = config.fileInput;
  const collection = new Collection({
    files: realLogFiles,
    dataFolder: archive.location,
    objects: archive.objects,
    workers,
    log,
    now: Date.now,
    timezone: config.server.timezone,
    limitLines: limit,
    flushMs,
    tailTimeoutMs,
    onRefused: (agent, reason) => {
      served.delete(agent);
      served.leftOut.set(agent, reason);
      void collection.remove(agent);
    },
    redefine: async (definition) => {
      const { name, schema } = definition;
      const store = await archive.redefine(name, schema, retentionOf(definition));
      const before = served.get(name);
      if (before !== undefined) served.set(name, { ...before, definition, store });
    },
  });
  archive.provideStatus((): ServerStatus => ({
    collecting: collection.status(),
    importing: collection.importing(),
    attaching: collection.attaching(),
    ...leftOut(),
  }));
  for (const agent of served.values()) await collection.add(agent);
  try {
    return await run(() => {
      collection.start();
      return collection;
    });
  } finally {
    await collection.stop();
    await workers.close();
  }
}

/** Milliseconds between two requests for the writer's agents and state. */
const lookMs = 2000;
/** The same until the writer has answered for the first time. */
const firstLookMs = 500;

/** The agents of the writer, kept up to date. */
class ReaderAgents {
  readonly served = new ServedAgents<ConsoleAgent>();
  #trouble = '';

  constructor(
    private readonly archive: ReaderArchive,
    private readonly log: CollectLog,
  ) {}

  /** Updates the agents from the writer. Returns whether it answered. Logs a problem once, and logs when it is over. */
  async look(): Promise<boolean> {
    try {
      const { served, leftOut } = await this.archive.agents();
      const names = new Set(served.toSorted());
      this.served.leftOut.clear();
      for (const [name, reason] of leftOut) this.served.leftOut.set(name, reason);
      for (const name of this.served.keys())
        if (!names.has(name)) {
          this.served.delete(name);
          this.archive.forget(name);
        }
      for (const name of names) if (!this.served.has(name)) this.served.set(name, this.#open(name));
      const troubles = await this.archive.troubles();
      this.#tell(troubles.map(({ reason }) => reason).join('; '));
      return true;
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      this.#tell(error.message);
      return false;
    }
  }

  #open(name: string): ConsoleAgent {
    const store = this.archive.agent(name);
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
    const writer = this.archive.location;
    if (trouble === '') this.log.info({ writer }, `the writer ${writer} answers again`);
    else this.log.warn({ writer }, trouble);
  }
}

/** Lines about the agents for the start of a reader: how many records each has, and how many of them the far tier has. */
async function describeReadableRecords(archive: ReaderArchive, agents: ReaderAgents): Promise<string[]> {
  const lines: string[] = [];
  for (const name of agents.served.keys()) {
    const counts = await archive.counts(name).catch(expectedError);
    const about =
      'code' in counts
        ? counts.message
        : `${formatCounted(counts.records, 'record')}, ${formatCount(counts.farRecords)} of them in the far tier`;
    lines.push(`agent    ${name}: ${about}`);
  }
  return lines;
}

/** Serves the archive of a writer on another machine until a signal stops it. Returns the exit code. */
async function serveReader(reader: ReaderConfig, run: ServeRun): Promise<number> {
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
  if (run.opened.ownConsole?.address === reader.writer) {
    const message = `server.reader.writer is the console of this server, ${reader.writer}: it must be the console of the server that writes`;
    throw new LogstrataError('invalid', message);
  }
  const workers = new WorkerPool(flags.workers ?? workersDefault());
  const writer = await openWriterClient(reader);
  try {
    return await withFar(settings, async (far) => {
      const archive = await openReader({ writer, cluster: far?.cluster, lagMsMax: reader.lagMs, workers });
      const agents = new ReaderAgents(archive, log);
      await printLines([`writer   ${reader.writer}`]);
      return (await firstAnswer(agents, run)) ? answer(archive, agents, workers, run) : exitDone;
    });
  } finally {
    writer.close();
    await workers.close();
  }
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
  await printLines(firstLines(await describeReadableRecords(archive, agents)));
  const ended = new AbortController();
  const looking = lookOnAndOn(agents, ended.signal);
  try {
    return await answerUntilStopped(run, {
      served: agents.served,
      written: undefined,
      archive,
      workers,
      begin: () => undefined,
      rereads: () => [],
      hints: () => [],
      doing: 'reading',
      isWell: () => true,
    });
  } finally {
    ended.abort();
    await looking;
  }
}

async function lookOnAndOn(agents: ReaderAgents, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(lookMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await agents.look();
  }
}
