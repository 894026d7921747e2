import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import { parseListen, type ListenAddress } from '../../agents/definition/config.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import type { Archive } from '../../engine/index.js';
import type { RunningServer, TransportChoice } from '../route/server.js';
import { allAgents } from './options/agent-choice.js';
import { exitDone } from './output/failure.js';
import { withWorkers } from './options/opened-archive.js';
import { logLevelOption, openLog, type LogLevel } from './output/own-log.js';
import { describeAgents, openAgents } from './served-agents.js';
import type { ServedAgent } from './served-agents.js';
import { readSettings } from './options/settings.js';
import type { FolderFlags, Settings } from './options/settings.js';
import { runStoppable } from './options/stoppable.js';
import type { StopSignals } from './options/stop-signals.js';
import { printLines } from './output/terminal.js';
import { cacheOption } from './options/cache-option.js';
import { workersOption } from './options/workers-option.js';

/** Options of the commands that start a server. */
export interface ServeFlags extends FolderFlags {
  readonly listen?: ListenAddress;
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
  $ logstrata serve --no-follow                answer what is stored, and collect nothing
  $ logstrata serve --data /var/lib/logstrata --agents /etc/logstrata/agents
  $ curl 'http://127.0.0.1:2111/api/query/nginx?limit=5'`;

/** `--listen`, for the commands that start a server. */
export function listenOption(): Option {
  const what = 'host:port (default: server.listen of the configuration, else 127.0.0.1:2111)';
  return new Option('--listen <address>', what).argParser(readListen);
}

function readListen(text: string): ListenAddress {
  const listen = parseListen(text);
  if (listen !== undefined) return listen;
  throw new InvalidArgumentError(
    'It is an address and a port: 127.0.0.1:2111, [::1]:2111, or :2111 for every address of this machine.',
  );
}

/** `--transport`, for the commands that start a server. */
export function transportOption(): Option {
  return new Option('--transport <name>', 'HTTP implementation (default: auto)').choices([
    'auto',
    'uws',
    'node',
  ]);
}

/** `--no-follow`, for the commands that start a server. */
export function followOption(): Option {
  return new Option('--no-follow', "don't collect the agents' logs");
}

/** The folders that a command uses, as absolute paths: the first thing to look at when an answer surprises. */
export function describeFolders(settings: Settings): string[] {
  const config = settings.configPath === undefined ? 'none (defaults)' : resolve(settings.configPath);
  return [
    `config   ${config}`,
    `agents   ${resolve(settings.agentsFolder)}`,
    `data     ${resolve(settings.dataFolder)}`,
    ...settings.config.notes.map((note) => `note     ${note}`),
  ];
}

/** Starts answering for the agents of an open archive. */
export async function serveAgents(
  served: ReadonlyMap<string, ServedAgent>,
  settings: Settings,
  flags: ServeFlags,
  log: CollectLog,
): Promise<RunningServer> {
  const { startServer } = await import('../route/server.js');
  const { server } = settings.config;
  return startServer({
    listen: flags.listen ?? server.listen,
    transport: flags.transport ?? 'auto',
    lookup: (name) => served.get(name)?.store,
    corsOrigin: server.corsOrigin,
    timezone: server.timezone,
    limitMax: server.limitMax,
    queriesMax: server.queriesMax,
    queryTimeoutMs: server.queryTimeoutMs,
    clientRateMin: server.clientRateMin,
    answerTimeoutMs: server.answerTimeoutMs,
    trustedProxies: server.trustedProxies,
    clientTimeoutMs: server.clientTimeoutMs,
    hosts: server.hosts,
    now: Date.now,
    log: (message) => log.error({}, message),
  });
}

/** Where it answers, and on what. */
export function describeServer({ address, transport, whyNotUws }: RunningServer): string {
  const why = whyNotUws === undefined ? '' : `: ${whyNotUws}`;
  return `serving  ${address}/api/query/<agent>  (${transport}${why})`;
}

/** Waits for SIGINT or SIGTERM, then lets the server finish what it began. */
export async function stopWhenTold(
  server: RunningServer,
  signals: StopSignals,
  log: CollectLog,
): Promise<void> {
  if (!signals.signal.aborted) {
    await new Promise<void>((done) => signals.signal.addEventListener('abort', () => done(), { once: true }));
  }
  log.info({ signal: signals.received ?? null }, 'finishing answers that have begun (again to stop at once)');
  await server.close({ timeoutMs: stopTimeoutMs });
  signals.obeyed();
}

async function serveArchive(
  archive: Archive,
  settings: Settings,
  flags: ServeFlags,
  signals: StopSignals,
  log: CollectLog,
): Promise<number> {
  const served = await openAgents(archive, await allAgents(settings));
  await printLines(await describeAgents(served));
  const { whileCollecting } = await import('./collecting.js');
  const { ChangedAgents } = await import('./changed-agents.js');
  return whileCollecting(archive, served, settings, flags, log, async (begin) => {
    const server = await serveAgents(served, settings, flags, log);
    const folder = settings.agentsFolder;
    const changed = new ChangedAgents({ archive, served, collection: begin(), folder, log });
    changed.listen(settings.config.watch);
    await printLines([describeServer(server)]);
    await stopWhenTold(server, signals, log);
    await changed.close();
    return exitDone;
  });
}

/** `logstrata serve`: answers the HTTP route until it is told to stop. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .summary('collect logs and answer queries over HTTP')
    .description(
      "Collects the agents' logs and answers GET /api/query/<agent> over HTTP until it is told to stop (SIGINT, SIGTERM).",
    )
    .addOption(listenOption())
    .addOption(transportOption())
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .addOption(followOption())
    .addOption(logLevelOption())
    .addHelpText('after', examples)
    .action(async (_flags: unknown, command: Command) => {
      const flags = command.optsWithGlobals<ServeFlags>();
      const serve = async (signals: StopSignals): Promise<number> => {
        const settings = await readSettings(flags);
        await printLines(describeFolders(settings));
        // Agents are read before the archive is opened: a broken file must not leave a lock behind, even for a moment.
        await allAgents(settings);
        const log = await openLog(flags.logLevel);
        return withWorkers(
          settings,
          'write',
          'serve',
          flags.workers,
          (archive) => serveArchive(archive, settings, flags, signals, log),
          { lasts: true, log },
        );
      };
      // SIGHUP has the agents read anew.
      await runStoppable(serve, ['SIGINT', 'SIGTERM']);
    });
}
