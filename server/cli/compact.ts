import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isLogstrataError, type Codec, type CompactResult, type Schema } from '../../engine/index.js';
import { readAgentsFolder, codecOption, readSettings, type GlobalFlags, type Settings } from './options.js';
import { exitDone } from './failure.js';
import { formatBytes, formatCounted } from './terminal.js';
import { reportEach, requireData, withArchive } from './opened-archive.js';
import { stoppable } from './stoppable.js';

interface CompactFlags extends GlobalFlags {
  readonly codec?: Codec;
  readonly json?: boolean;
}

const examples = `
Examples:
  $ logstrata compact                     all agents
  $ logstrata compact nginx --codec zstd  one agent, as small as it gets

Cursors and answers stay the same. Fields get the filters that "index" in the agent file asks for. A server on the same data may keep running; it compacts by itself where that pays off.
Replaced files are removed after the longest query time, so other tools may still see them until then.`;

function describeResult(agent: string, result: CompactResult): string[] {
  const before = `${formatCounted(result.segmentsBefore, 'segment')} (${formatBytes(result.bytesBefore)})`;
  const after = `${formatCounted(result.segmentsAfter, 'segment')} (${formatBytes(result.bytesAfter)})`;
  return [before === after ? `${agent}: nothing to do, ${after}` : `${agent}: ${before} -> ${after}`];
}

/** The schemas of the agents whose files list the fields. Segments that are rewritten get the filters that these schemas ask for. */
async function fieldsOfFiles(settings: Settings): Promise<ReadonlyMap<string, Schema>> {
  try {
    const { agents } = await readAgentsFolder(settings);
    const definite = agents.filter(({ archive }) => archive?.infersFields !== true);
    return new Map(definite.map(({ name, schema }) => [name, schema]));
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    // Records can be compacted without the agents' files.
    return new Map();
  }
}

async function compact(agent: string | undefined, flags: CompactFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  requireData(resolve(settings.dataFolder));
  const fields = await fieldsOfFiles(settings);
  return withArchive(settings, 'write', 'compact', async (archive) => {
    await reportEach(archive, agent, flags.json, {
      doing: 'compacting',
      work: async (name, progress) => {
        const store = await archive.agent(name, fields.get(name));
        const onProgress = (fraction: number): void => progress.update(fraction, '');
        return store.compact({ codec: flags.codec, signal, onProgress });
      },
      describe: describeResult,
    });
    return exitDone;
  });
}

/** Adds `logstrata compact`: seals hot records and merges small segments. */
export function addCompactCommand(program: Command): void {
  program
    .command('compact')
    .summary('seal hot records and merge small segments')
    .description(
      'Seals hot records, merges small segments, and compresses old segments with the smaller codec.',
    )
    .argument('[agent]', 'name of an agent (default: all)')
    .addOption(codecOption('lz4, and zstd for days older than storage.zstd_after'))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(stoppable((flags: CompactFlags, { signal }, agent?: string) => compact(agent, flags, signal)));
}
