import { existsSync, readdirSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { loadIntoStore } from './load.js';
import type { ServedAgent } from './opened-archive.js';
import { packageRoot, readSettings, type Settings } from './options.js';
import { serveUntilStopped, type ServeFlags } from './serve.js';
import type { StopSignals } from './stoppable.js';
import { formatBytes, formatCounted } from './terminal.js';

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

/** Runs `logstrata demo`, as `npm start` does: serves the samples of the package. */
export async function demo(flags: ServeFlags, signals: StopSignals): Promise<number> {
  const settings = await demoSettings(flags);
  return serveUntilStopped(settings, flags, signals, {
    prepare: (served) => loadSamples(served, settings, signals),
    hints: whatToTry,
    rereads: false,
  });
}
