import { growHeapsSlowly } from './heap-growth.js';
import { resolve } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import {
  parseConsole,
  parseListen,
  type ConsoleSetting,
  type ListenAddress,
} from '../../agents/definition/config.js';
import type { Collection } from '../../agents/collect/collection.js';
import type { Archive, Trouble, WorkerPool } from '../../engine/index.js';
import {
  allAgents,
  packageVersion,
  readSettings,
  type Settings,
  cacheOption,
  workersOption,
} from './options.js';
import { exitDone, logLevelOption, openLog } from './failure.js';
import {
  withWorkers,
  describeServedAgents,
  openAgents,
  type ServedAgent,
  type ServedAgents,
} from './opened-archive.js';
import { stoppable, type StopSignals } from './stoppable.js';
import { printLines, tell, formatCounted } from './terminal.js';
import {
  describeConsole,
  describeServer,
  startAnswering,
  stopWhenTold,
  type ServeFlags,
  type ServeRun,
} from './answering.js';
import { openConsole, openRoutes, ChangedTokens, openAccess } from './listeners.js';
import { Rereading } from './rereading.js';
import { serviceManagerOf } from '../http/service-manager.js';

const examples = `
Examples:
  $ logstrata serve                            answer on 127.0.0.1:2111, only this machine
  $ logstrata serve --listen :2111             answer everybody who reaches this machine
  $ logstrata serve --console off              without the listener for operators on 127.0.0.1:2112
  $ logstrata serve --no-follow                answer queries, but collect no logs
  $ logstrata serve --config reader.yaml       as a reader of a server on another machine (server.reader)
  $ logstrata serve --data /var/lib/logs --agents /etc/logs/agents
  $ curl 'http://127.0.0.1:2111/api/query/nginx?limit=5'`;

function readListen(text: string): ListenAddress {
  const listen = parseListen(text);
  if (listen !== undefined) return listen;
  throw new InvalidArgumentError(
    'Expected an address and a port: 127.0.0.1:2111, [::1]:2111, or :2111 for every address of this machine.',
  );
}

function readConsole(text: string): ConsoleSetting {
  const address = parseConsole(text);
  if (address !== undefined) return address;
  throw new InvalidArgumentError('Expected "off", or an address and a port: 127.0.0.1:2112.');
}

/** Adds the options of all commands that start a server. */
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

/** Starts to read the agents' folder, the tokens and the certificates again when they change. */
async function beginRereading(
  archive: Archive,
  served: ServedAgents,
  collection: Collection | undefined,
  { settings, log, access, certificates, manager }: ServeRun,
): Promise<Rereading> {
  const { ChangedAgents } = await import('./changed-agents.js');
  const folder = settings.agentsFolder;
  const things = [
    new ChangedTokens(access, log),
    ...certificates.all,
    new ChangedAgents({ archive, served, collection, folder, log }),
  ];
  const rereading = new Rereading(things, (work) => manager.reloading(work));
  await rereading.listen(settings.config.watch);
  return rereading;
}

async function serveArchive(
  archive: Archive,
  workers: WorkerPool,
  run: ServeRun,
  { prepare, hints, rereads }: ServeExtras,
): Promise<number> {
  const { settings, flags, log, ownConsole, access } = run;
  const served = await openAgents(archive, await allAgents(settings));
  if (prepare !== undefined) await printLines(await prepare(served));
  await printLines(await describeServedAgents(served));
  for (const [agent, reason] of served.leftOut) log.error({ agent }, `${reason}: it is not served`);
  const { whileCollecting } = await import('./collecting.js');
  return whileCollecting(archive, served, settings, flags, log, async (begin) => {
    const server = await startAnswering(served, run);
    const collection = begin();
    if (ownConsole !== undefined) {
      const version = packageVersion();
      const troubles = async (): Promise<Trouble[]> => [...(await archive.troubles()), ...served.troubles];
      const live = {
        archive: { figures: () => archive.figures(), troubles },
        server,
        workers,
        collection,
        access,
        version,
        settings: settings.config.server,
      };
      await openRoutes(ownConsole, served, served, live);
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
  const access = await openAccess(settings, log);
  const { readCertificates } = await import('./certificates.js');
  const certificates = readCertificates(settings, log);
  const door = { log, access, certificate: certificates.console };
  const ownConsole = await openConsole(settings, flags.console, door);
  const run = { settings, flags, signals, log, access, certificates, ownConsole, manager };
  const opened = { lasts: true, log };
  try {
    if (reader !== null) return await (await import('./reader.js')).serveReader(reader, run);
    return await withWorkers(
      settings,
      'write',
      'serve',
      flags.workers,
      (archive, workers) => serveArchive(archive, workers, run, extras),
      opened,
    );
  } finally {
    await ownConsole?.close({ timeoutMs: 0 });
    manager.close();
  }
}

/** Adds `logstrata serve`: answers the HTTP route until it is stopped. */
export function addServeCommand(program: Command): void {
  addServerOptions(program.command('serve'))
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .summary('collect logs and answer queries over HTTP')
    .description(
      "Collects the agents' logs and answers GET /api/query/<agent> over HTTP until it is stopped (SIGINT, SIGTERM).",
    )
    .addHelpText('after', examples)
    .action(
      stoppable(
        async (flags: ServeFlags, signals) =>
          serveUntilStopped(await readSettings(flags), flags, signals, { rereads: true }),
        // SIGHUP is not a stop signal here: it makes the server read agents, tokens and certificates again.
        ['SIGINT', 'SIGTERM'],
      ),
    );
}
