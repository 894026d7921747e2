import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import {
  parseConsole,
  parseListen,
  type ConsoleSetting,
  type ListenAddress,
} from '../../../agents/definition/config.js';
import type { Collection } from '../../../agents/collect/collection.js';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import type { Archive, WorkerPool } from '../../../engine/index.js';
import type { Access } from '../../access/access.js';
import type { RunningConsole } from '../../console/console.js';
import type { RunningServer } from '../../route/server.js';
import type { SlowQuery } from '../../route/slow-queries.js';
import type { TransportChoice } from '../../route/server-options.js';
import { allAgents } from '../options/agent-choice.js';
import { exitDone } from '../output/failure.js';
import { withWorkers } from '../options/opened-archive.js';
import { logLevelOption, openLog, type LogLevel } from '../output/own-log.js';
import { describeAgents, openAgents } from '../options/served-agents.js';
import type { ServedAgent } from '../options/served-agents.js';
import { packageVersion } from '../options/package-root.js';
import { readSettings } from '../options/settings.js';
import type { GlobalFlags, Settings } from '../options/settings.js';
import { stoppable } from '../options/stoppable.js';
import type { StopSignals } from '../options/stop-signals.js';
import { printLines, tell } from '../output/terminal.js';
import { formatCounted } from '../output/figures.js';
import { cacheOption } from '../options/cache-option.js';
import { openConsole, openRoutes } from './own-console.js';
import { ChangedTokens, openAccess, warnOfOpenDoor } from './own-access.js';
import type { OwnCertificates } from './own-certificates.js';
import { Rereading } from './rereading.js';
import { serviceManagerOf, type ServiceManager } from '../../systemd/service-manager.js';
import { workersOption } from '../options/workers-option.js';

/** Options of the commands that start a server. */
export interface ServeFlags extends GlobalFlags {
  readonly listen?: ListenAddress;
  readonly console?: ConsoleSetting;
  readonly transport?: TransportChoice;
  readonly workers?: number;
  /** Collect the agents' logs meanwhile. */
  readonly follow: boolean;
  readonly logLevel: LogLevel;
}

/** Longest wait for answers that have begun when the server is told to stop; a second signal ends it at once. */
const stopTimeoutMs = 30_000;

const examples = `
Examples:
  $ logstrata serve                            answer on 127.0.0.1:2111, to this machine alone
  $ logstrata serve --listen :2111             to everybody who reaches this machine
  $ logstrata serve --console off              without the listener for operators on 127.0.0.1:2112
  $ logstrata serve --no-follow                answer what is stored, and collect nothing
  $ logstrata serve --data /var/lib/logstrata --agents /etc/logstrata/agents
  $ curl 'http://127.0.0.1:2111/api/query/nginx?limit=5'`;

function readListen(text: string): ListenAddress {
  const listen = parseListen(text);
  if (listen !== undefined) return listen;
  throw new InvalidArgumentError(
    'It is an address and a port: 127.0.0.1:2111, [::1]:2111, or :2111 for every address of this machine.',
  );
}

function readConsole(text: string): ConsoleSetting {
  const address = parseConsole(text);
  if (address !== undefined) return address;
  throw new InvalidArgumentError('It is "off", or an address and a port: 127.0.0.1:2112.');
}

/** Adds the options that every command has which starts a server. */
export function addServerOptions(command: Command): Command {
  const where = 'host:port (default: server.listen of the configuration, else 127.0.0.1:2111)';
  const whereConsole =
    'host:port of the listener for operators, or "off" (default: server.console of the configuration, else 127.0.0.1:2112)';
  const transport = new Option('--transport <name>', 'HTTP implementation (default: auto)');
  return command
    .addOption(new Option('--listen <address>', where).argParser(readListen))
    .addOption(new Option('--console <address>', whereConsole).argParser(readConsole))
    .addOption(transport.choices(['auto', 'uws', 'node']))
    .addOption(new Option('--no-follow', "don't collect the agents' logs"))
    .addOption(logLevelOption());
}

/** The folders that a command uses, as absolute paths: the first thing to look at when an answer surprises. */
function describeFolders(settings: Settings): string[] {
  const config = settings.configPath === undefined ? 'none (defaults)' : resolve(settings.configPath);
  return [
    `config   ${config}`,
    `agents   ${resolve(settings.agentsFolder)}`,
    `data     ${resolve(settings.dataFolder)}`,
    ...settings.config.notes.map((note) => `note     ${note}`),
  ];
}

/** Starts answering for the agents of an open archive. */
async function startAnswering(
  served: ReadonlyMap<string, ServedAgent>,
  { settings, flags, log, access, certificates }: ServeRun,
): Promise<RunningServer> {
  const { startServer } = await import('../../route/server.js');
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
    now: Date.now,
    log: (message) => log.error({}, message),
    onSlow: (query) => logSlowQuery(log, query),
  });
  certificate?.isOf(running);
  warnOfOpenDoor(listen, access.query, certificate, settings, log);
  return running;
}

/** One line of the log for each slow query, with all that is known of it. */
function logSlowQuery(log: CollectLog, { timeMs, parameters, figures, ...query }: SlowQuery): void {
  const asked = { asked: new Date(timeMs).toISOString(), query: parameters.join('&') };
  log.warn({ ...asked, ...query, ...figures }, 'a query was slow');
}

/** Where it answers, and on what. */
function describeServer({ address, transport, whyNotUws }: RunningServer): string {
  const why = whyNotUws === undefined ? '' : `: ${whyNotUws}`;
  return `serving  ${address}/api/query/<agent>  (${transport}${why})`;
}

/** Where operators ask. */
function describeConsole(ownConsole: RunningConsole | undefined): string[] {
  return ownConsole === undefined ? [] : [`console  ${ownConsole.address}`];
}

/** Waits for a signal, then lets the server, and its console, finish what they began. */
async function stopWhenTold(
  server: RunningServer,
  { signals, log, ownConsole, manager }: ServeRun,
): Promise<void> {
  if (!signals.signal.aborted) {
    await new Promise<void>((done) => signals.signal.addEventListener('abort', () => done(), { once: true }));
  }
  log.info({ signal: signals.received ?? null }, 'finishing answers that have begun (again to stop at once)');
  manager.stopping('finishing answers that have begun');
  const endMs = performance.now() + stopTimeoutMs;
  // The console goes last: until then it says that the server stops.
  ownConsole?.stopping();
  await server.close({ timeoutMs: stopTimeoutMs });
  await ownConsole?.close({ timeoutMs: Math.max(0, endMs - performance.now()) });
  signals.obeyed();
}

/** What a command does besides serving. */
export interface ServeExtras {
  /** Before anything is served; gives lines to print. */
  readonly prepare?: (served: ReadonlyMap<string, ServedAgent>) => Promise<readonly string[]>;
  /** What to print once the server answers at an address. */
  readonly hints?: (served: ReadonlyMap<string, ServedAgent>, address: string) => readonly string[];
  /** Agents' files, tokens and certificates that change are read anew, at SIGHUP or when they are watched. */
  readonly rereads: boolean;
}

/** What a server runs with. */
interface ServeRun {
  readonly settings: Settings;
  readonly flags: ServeFlags;
  readonly signals: StopSignals;
  readonly log: CollectLog;
  readonly extras: ServeExtras;
  readonly access: Access;
  readonly certificates: OwnCertificates;
  /** Undefined where there is none. */
  readonly ownConsole: RunningConsole | undefined;
  readonly manager: ServiceManager;
}

/** From now on what has changed is read anew: the agents' folder, the tokens, the certificates. */
async function beginRereading(
  archive: Archive,
  served: Map<string, ServedAgent>,
  collection: Collection | undefined,
  { settings, log, access, certificates, manager }: ServeRun,
): Promise<Rereading> {
  const { ChangedAgents } = await import('./changed-agents.js');
  const folder = settings.agentsFolder;
  const things = [
    new ChangedTokens(access, log),
    ...[certificates.query, certificates.console].filter((certificate) => certificate !== undefined),
    new ChangedAgents({ archive, served, collection, folder, log }),
  ];
  const rereading = new Rereading(things, (work) => manager.reloading(work));
  await rereading.listen(settings.config.watch);
  return rereading;
}

async function serveArchive(archive: Archive, workers: WorkerPool, run: ServeRun): Promise<number> {
  const { settings, flags, log, ownConsole, access } = run;
  const { prepare, hints, rereads } = run.extras;
  const served = await openAgents(archive, await allAgents(settings));
  if (prepare !== undefined) await printLines(await prepare(served));
  await printLines(await describeAgents(served));
  const { whileCollecting } = await import('./collecting.js');
  return whileCollecting(archive, served, settings, flags, log, async (begin) => {
    const server = await startAnswering(served, run);
    const collection = begin();
    if (ownConsole !== undefined) {
      const version = packageVersion();
      const live = {
        archive,
        server,
        workers,
        collection,
        access,
        version,
        settings: settings.config.server,
      };
      await openRoutes(ownConsole, served, live);
    }
    const rereading = rereads ? await beginRereading(archive, served, collection, run) : undefined;
    const shown = [...describeConsole(ownConsole), describeServer(server)];
    await printLines([...shown, ...(hints?.(served, server.address) ?? [])]);
    const names = formatCounted(served.size, 'agent');
    run.manager.ready(`answering for ${names} at ${server.address}`, () => archive.isWell());
    await stopWhenTold(server, run);
    await rereading?.close();
    return exitDone;
  });
}

/** Opens the archive, serves its agents and collects their logs, until a signal stops it. Gives the exit code. */
export async function serveUntilStopped(
  settings: Settings,
  flags: ServeFlags,
  signals: StopSignals,
  extras: ServeExtras,
): Promise<number> {
  // First of all, while this process is small: it starts another one for that.
  const manager = serviceManagerOf(process.env, process.pid, (message) =>
    tell(`logstrata: warning: ${message}`),
  );
  manager.starting(`opening ${resolve(settings.dataFolder)}`);
  await printLines(describeFolders(settings));
  // Agents are read before the archive is opened: a broken file must not leave a lock behind, even for a moment.
  await allAgents(settings);
  const log = await openLog(flags.logLevel);
  const access = await openAccess(settings, log);
  const { readCertificates } = await import('./own-certificates.js');
  const certificates = readCertificates(settings, log);
  const door = { log, access, certificate: certificates.console };
  const ownConsole = await openConsole(settings, flags.console, door);
  const run = { settings, flags, signals, log, extras, access, certificates, ownConsole, manager };
  const opened = { lasts: true, log };
  try {
    return await withWorkers(
      settings,
      'write',
      'serve',
      flags.workers,
      (archive, workers) => serveArchive(archive, workers, run),
      opened,
    );
  } finally {
    await ownConsole?.close({ timeoutMs: 0 });
    manager.close();
  }
}

/** `logstrata serve`: answers the HTTP route until it is told to stop. */
export function addServeCommand(program: Command): void {
  addServerOptions(program.command('serve'))
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .summary('collect logs and answer queries over HTTP')
    .description(
      "Collects the agents' logs and answers GET /api/query/<agent> over HTTP until it is told to stop (SIGINT, SIGTERM).",
    )
    .addHelpText('after', examples)
    .action(
      stoppable(
        async (flags: ServeFlags, signals) =>
          serveUntilStopped(await readSettings(flags), flags, signals, { rereads: true }),
        // SIGHUP has agents, tokens and certificates read anew.
        ['SIGINT', 'SIGTERM'],
      ),
    );
}
