import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  type Archive,
  type BackupFolder,
  isLogstrataError,
  type BackupResult,
  type Restorable,
} from '../../engine/index.js';
import { TokenFolder } from '../http/token-folder.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import { formatBytes, formatCounted, printLines } from './terminal.js';
import { reportEach, withArchive } from './opened-archive.js';
import { readSettings, type GlobalFlags } from './options.js';
import { stoppable } from './stoppable.js';
import { shellPath } from '../../agents/sources/paths.js';

interface BackupFlags extends GlobalFlags {
  readonly agent?: string;
  readonly json?: boolean;
}

/** The result of copying an agent; `problem` where that failed. */
type BackupReport = BackupResult | { readonly problem: string };

const examples = `
Examples:
  $ logstrata backup /mnt/backup/logs                all agents; run again, it copies only what is new
  $ logstrata backup /mnt/backup/logs --agent nginx  one of them
  $ logstrata backup s3://backups/logs               the same, in an object storage
  $ logstrata verify --data /mnt/backup/logs         read every byte of the copy

A server on the same data may keep running. The copy is a data folder: to restore, stop the server and copy it back.
Exit code 1 if an agent could not be copied; the other agents are copied.`;

function describeBackupReport(agent: string, report: BackupReport): string[] {
  if ('problem' in report) return [`FAILED   ${agent}: ${report.problem}`];
  const { records, files, bytes, filesCopied, bytesCopied, filesRemoved } = report;
  const all = `${formatCounted(records, 'record')} in ${formatCounted(files, 'file')}, ${formatBytes(bytes)}`;
  const copied =
    filesCopied === 0
      ? 'nothing new'
      : `${formatCounted(filesCopied, 'file')} (${formatBytes(bytesCopied)}) copied`;
  const removed = filesRemoved === 0 ? '' : `, ${formatCounted(filesRemoved, 'old file')} removed`;
  return [`ok       ${agent}: ${all}; ${copied}${removed}`];
}

async function backup(folder: string, flags: BackupFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  return withArchive(settings, 'read', 'backup', async (archive) => {
    const target = await openTarget(folder, archive);
    try {
      const reports = await reportEach<BackupReport>(archive, flags.agent, flags.json, {
        doing: 'copying',
        work: async (name, progress) => {
          try {
            const onProgress = (fraction: number): void => progress.update(fraction, '');
            const store = await archive.agent(name);
            return await store.backup(target, { signal, onProgress });
          } catch (error) {
            // An error of one agent must not keep the others from being copied.
            if (signal.aborted || !isLogstrataError(error)) throw error;
            return { problem: error.message };
          }
        },
        describe: describeBackupReport,
      });
      if (flags.agent === undefined) await copyTokens(archive.location, target);
      if (flags.json !== true && flags.agent === undefined)
        await printLines(describeGone(await archive.agents(), await target.agents()));
      return reports.some((report) => 'problem' in report) ? exitFailed : exitDone;
    } finally {
      await target.close();
    }
  });
}

/** Copies the tokens as well: without them a server on the copy would let everybody in. */
async function copyTokens(from: string, { directory }: BackupFolder): Promise<void> {
  await TokenFolder.of(directory).copy(await TokenFolder.open(from));
}

/** Opens the target of the copy: a folder, or the objects below a prefix. */
async function openTarget(place: string, { location, objects }: Archive): Promise<BackupFolder> {
  const { isObjectPath, openBackupFolder, openBackupObjects } = await import('../../engine/index.js');
  if (!isObjectPath(place) || objects === undefined) return openBackupFolder(resolve(place), location);
  if (!/^s3:\/\/[^/]+\/[^/]/.test(place))
    throw new UsageError(
      `${place} has no prefix: a copy in a bucket needs one, such as s3://bucket/prefix`,
      'For example: s3://backups/logs',
    );
  return openBackupObjects(place, objects);
}

/** Notes on agents that are in an earlier copy, but not in the data folder any more. */
function describeGone(here: readonly string[], copied: readonly string[]): string[] {
  return copied
    .filter((name) => !here.includes(name))
    .map((name) => `note     ${name}: no longer in this data folder; its copy stays unchanged`);
}

/** Adds `logstrata backup`: copies a data folder, even while a server writes to it. */
export function addBackupCommand(program: Command): void {
  program
    .command('backup')
    .summary('copy the data folder, even while a server writes to it')
    .description('Updates a copy of the data folder with all that is committed now. Copies only what is new.')
    .argument('<folder>', 'new or existing place of the copy: a folder, or s3://bucket/prefix')
    .option('--agent <name>', 'one agent (default: all)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(stoppable((flags: BackupFlags, { signal }, folder: string) => backup(folder, flags, signal)));
}

/** Maximum number of loads that are listed; the JSON output has all. */
const loadsShownMax = 20;

/** Lines with the commands that restore lost records, and the number of records of each. */
export function describeRestorable(agent: string, restorable: readonly Restorable[]): string[] {
  const lines = restorable.slice(0, loadsShownMax).map(({ records, paths }) => {
    const command = ['logstrata load', agent, ...paths.map(shellPath)].join(' ');
    return `lost     ${agent}: ${formatCounted(records, 'record')}; to restore them: ${command}`;
  });
  const more = restorable.length - loadsShownMax;
  if (more > 0)
    lines.push(`         and those of ${formatCounted(more, 'more load')}; --json lists them all`);
  return lines;
}
