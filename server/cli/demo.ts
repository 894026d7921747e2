import { readdirSync, existsSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import type { Command } from 'commander';
import { packageRoot, readSettings, type Settings } from './options.js';
import { formatBytes, formatCounted } from './terminal.js';
import { loadIntoStore } from './load.js';
import { addServerOptions, serveUntilStopped } from './serve.js';
import type { ServeFlags } from './answering.js';
import type { ServedAgent } from './opened-archive.js';
import { stoppable, type StopSignals } from './stoppable.js';

/** A sample log of the package. The file has the name of the agent that reads it. */
export interface SampleLog {
  readonly agent: string;
  readonly path: string;
}

/** The sample logs of the package, by name. */
export function sampleLogs(): SampleLog[] {
  const folder = join(packageRoot(), 'data', 'samples');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .sort()
    .map((name) => ({ agent: basename(name, '.log'), path: join(folder, name) }));
}

/** Example queries about the samples, URL-encoded. Each returns records. */
const sampleQueries: readonly { readonly agent: string; readonly query: string }[] = [
  { agent: 'nginx', query: 'limit=5' },
  { agent: 'nginx', query: 'status__gte=500&time__since=2026-11-18&time__until=2026-11-19' },
  { agent: 'app', query: 'level__exact=error&message__like=no%20space&limit=3' },
];

const examples = `
Examples:
  $ logstrata demo                    load the samples, serve on 127.0.0.1:2111, print example queries
  $ logstrata demo --listen :8080     on another port`;

/** The settings of the demo. Outside of a clone there may be no agents folder; then the one of the package is used. */
async function demoSettings(flags: ServeFlags): Promise<Settings> {
  const settings = await readSettings(flags);
  if (flags.agents !== undefined || existsSync(settings.agentsFolder)) return settings;
  return { ...settings, agentsFolder: join(packageRoot(), 'agents') };
}

/** A path relative to the working folder where the file is below it, else unchanged. */
function shownPath(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown.startsWith('..') ? path : shown;
}

/** Loads the samples that are not stored yet. Returns lines about those that were loaded now. */
async function loadSamples(
  served: ReadonlyMap<string, ServedAgent>,
  settings: Settings,
  signals: StopSignals,
): Promise<string[]> {
  const lines: string[] = [];
  for (const { agent, path } of sampleLogs()) {
    const target = served.get(agent);
    if (target === undefined) continue;
    const summary = await loadIntoStore(target.store, target.definition, [path], settings, {
      signal: signals.signal,
    });
    const failure = summary.stopped ?? summary.files[0]?.error;
    if (failure instanceof Error) throw failure;
    if (summary.records === 0) continue;
    const size = `${formatBytes(summary.contentBytes)}, ${formatBytes(summary.bytesOnDisk)} on disk`;
    lines.push(`loaded   ${formatCounted(summary.records, 'record')} from ${shownPath(path)} (${size})`);
  }
  return lines;
}

/** Queries to try on the served agents, as `curl` commands quoted for the shell. */
function whatToTry(served: ReadonlyMap<string, ServedAgent>, address: string): string[] {
  const queries = sampleQueries.filter(({ agent }) => served.has(agent));
  return [
    '',
    'Try, in another terminal:',
    ...queries.map(({ agent, query }) => `  curl '${address}/api/query/${agent}?${query}'`),
    '',
    'Ctrl-C stops it.',
  ];
}

/** Adds `logstrata demo`, which `npm start` runs: serves the samples of the package. */
export function addDemoCommand(program: Command): void {
  addServerOptions(program.command('demo'))
    .summary('load the sample logs and serve them')
    .description(
      'Loads the sample logs of this package, unless they are loaded already, serves them, and prints queries to try.',
    )
    .addHelpText('after', examples)
    .action(
      stoppable(async (flags: ServeFlags, signals) => {
        const settings = await demoSettings(flags);
        return serveUntilStopped(settings, flags, signals, {
          prepare: (served) => loadSamples(served, settings, signals),
          hints: whatToTry,
          rereads: false,
        });
      }),
    );
}
