import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Command } from 'commander';
import { formatBytes, formatCounted } from '../output/figures.js';
import { loadIntoStore } from '../records/load.js';
import { packageRoot } from '../options/package-root.js';
import { sampleLogs, sampleQueries } from './sample-logs.js';
import { addServerOptions, serveUntilStopped } from './serve.js';
import type { ServeFlags } from './answering.js';
import type { ServedAgent } from '../options/served-agents.js';
import { readSettings } from '../options/settings.js';
import type { Settings } from '../options/settings.js';
import { stoppable } from '../options/stoppable.js';
import type { StopSignals } from '../options/stop-signals.js';

const examples = `
Examples:
  $ logstrata demo                    load the samples, serve on 127.0.0.1:2111, print what to try
  $ logstrata demo --listen :8080     on another port`;

/** Outside of a clone there may be no agents folder yet: the samples bring theirs. */
async function demoSettings(flags: ServeFlags): Promise<Settings> {
  const settings = await readSettings(flags);
  if (flags.agents !== undefined || existsSync(settings.agentsFolder)) return settings;
  return { ...settings, agentsFolder: join(packageRoot(), 'agents') };
}

/** As it would be typed: relative to the working folder where the file lies below it. */
function shownPath(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown.startsWith('..') ? path : shown;
}

/** Loads the samples that are not in the archive yet. Those that are, from an earlier start, are no news. */
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

/** What to try, for the agents that are served. Quoted, so that a shell leaves `?` and `&` alone. */
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

/** `logstrata demo`, which is `npm start`: the shipped samples, served. */
export function addDemoCommand(program: Command): void {
  addServerOptions(program.command('demo'))
    .summary('load the shipped samples and serve them')
    .description(
      'Loads the shipped sample logs, unless that is done, serves them, and prints queries to try.',
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
