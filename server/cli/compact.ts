import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { AgentStore, Codec, CompactResult } from '../../engine/index.js';
import { codecOption } from './options/codec-option.js';
import { exitDone } from './output/failure.js';
import { formatBytes, formatCounted } from './output/figures.js';
import { requireData, storesOf, withArchive } from './options/opened-archive.js';
import { startProgress } from './output/progress.js';
import { readSettings } from './options/settings.js';
import type { FolderFlags } from './options/settings.js';
import { runStoppable } from './options/stoppable.js';
import { printJson, printLines } from './output/terminal.js';

interface CompactFlags extends FolderFlags {
  readonly codec?: Codec;
  readonly json?: boolean;
}

const examples = `
Examples:
  $ logstrata compact                     all agents
  $ logstrata compact nginx --codec zstd  one agent, as small as it gets

Cursors and answers stay the same. A server on the same data may keep running; it does what pays of this by itself.
Files that were replaced are removed after the longest query time, so that other tools may see them until then.`;

async function compactStore(
  store: AgentStore,
  codec: Codec | undefined,
  signal: AbortSignal,
): Promise<CompactResult> {
  const progress = startProgress(`compacting ${store.name}`);
  try {
    return await store.compact({ codec, signal, onProgress: (fraction) => progress.update(fraction, '') });
  } finally {
    progress.stop();
  }
}

function describeResult(agent: string, result: CompactResult): string {
  const before = `${formatCounted(result.segmentsBefore, 'segment')} (${formatBytes(result.bytesBefore)})`;
  const after = `${formatCounted(result.segmentsAfter, 'segment')} (${formatBytes(result.bytesAfter)})`;
  return before === after ? `${agent}: nothing to do, ${after}` : `${agent}: ${before} -> ${after}`;
}

async function compact(agent: string | undefined, flags: CompactFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  requireData(resolve(settings.dataFolder));
  return withArchive(settings, 'write', 'compact', async (archive) => {
    const results: (CompactResult & { readonly agent: string })[] = [];
    for (const store of await storesOf(archive, agent)) {
      const result = await compactStore(store, flags.codec, signal);
      results.push({ agent: store.name, ...result });
      if (flags.json !== true) await printLines([describeResult(store.name, result)]);
    }
    if (flags.json === true) await printJson(agent === undefined ? results : results[0]);
    else if (results.length === 0) await printLines([`no records in ${archive.location} yet`]);
    return exitDone;
  });
}

/** `logstrata compact`: seals what is hot and merges small segments. */
export function addCompactCommand(program: Command): void {
  program
    .command('compact')
    .summary('seal what is hot and merge small segments')
    .description('Seals what is hot, merges small segments, and gives old ones the smaller codec.')
    .argument('[agent]', 'name of an agent (default: all)')
    .addOption(codecOption('lz4, and zstd for days older than storage.zstd_after'))
    .option('--json', 'answer with JSON')
    .addHelpText('after', examples)
    .action(async (agent: string | undefined, _flags: unknown, command: Command) => {
      const flags = command.optsWithGlobals<CompactFlags>();
      await runStoppable((signals) => compact(agent, flags, signals.signal));
    });
}
