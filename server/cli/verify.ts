import type { Command } from 'commander';
import type { Damage, FarReport, VerifyReport } from '../../engine/index.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import { formatBytes, formatCounted } from './terminal.js';
import { reportEach, withArchive } from './opened-archive.js';
import { describeRestorable } from './backup.js';
import { readSettings, type GlobalFlags, type Settings } from './options.js';
import { stoppable } from './stoppable.js';

interface VerifyFlags extends GlobalFlags {
  readonly json?: boolean;
  readonly far?: boolean;
  readonly repair?: boolean;
  readonly yes?: boolean;
}

const examples = `
Examples:
  $ logstrata verify                  read every byte of every agent
  $ logstrata verify nginx            read every byte of one agent
  $ logstrata verify --json           for scripts: an array of reports
  $ logstrata verify --far            count the far tier, on each of its servers
  $ logstrata verify nginx --repair   while no server runs on the same data

Exit code 1 if anything is damaged; after a repair, if records are lost.`;

/** Maximum number of position ranges that are listed per damage; the JSON output has all. */
const positionsShownMax = 8;

function describeDamage(damage: Damage): string[] {
  const place = [
    ...(damage.offset === null ? [] : [`byte ${damage.offset}`]),
    ...(damage.rowGroup === null ? [] : [`row group ${damage.rowGroup}`]),
    ...(damage.column === null ? [] : [`column ${damage.column}`]),
  ];
  const where = place.length === 0 ? damage.file : `${damage.file} (${place.join(', ')})`;
  const lines = [`DAMAGED  ${where}: ${damage.reason}`];
  if (damage.records === 0) return [...lines, '         no record is lost'];
  if (damage.records !== null) lines.push(`         loses ${formatCounted(damage.records, 'record')}:`);
  else lines.push('         loses records; a repair shows how many');
  for (const { first, last, records } of damage.positions.slice(0, positionsShownMax)) {
    lines.push(`           ${first} … ${last} (${formatCounted(records, 'record')})`);
  }
  const more = damage.positions.length - positionsShownMax;
  if (more > 0) lines.push(`           and ${formatCounted(more, 'more range')}; --json lists them all`);
  return lines;
}

function describeVerifyReport(agent: string, report: VerifyReport): string[] {
  const size = `${formatCounted(report.files, 'file')}, ${formatBytes(report.bytes)}, ${formatCounted(report.records, 'record')}`;
  const unnamed = report.unnamedFiles.map(
    (file) => `note     ${agent}: ${file} belongs to no record and is never read`,
  );
  const restorable = describeRestorable(agent, report.restorable);
  if (report.damages.length === 0) return [`ok       ${agent}: ${size}`, ...restorable, ...unnamed];
  return [
    ...report.damages.flatMap(describeDamage),
    `DAMAGED  ${agent}: ${formatCounted(report.damages.length, 'damage')} in ${size}`,
    `repair   ${agent}: stop the server, then run: logstrata verify ${agent} --repair (it keeps all intact records)`,
    ...restorable,
    ...unnamed,
  ];
}

function describeFar(agent: string, report: FarReport): string[] {
  const { units, records, replicas, damages, strays } = report;
  const size = `${formatCounted(records, 'record')} in ${formatCounted(units, 'unit')} on ${formatCounted(replicas, 'server')}`;
  const notes = strays.map(
    ({ url, partition, rows }) =>
      `note     ${agent}: ${url} has ${formatCounted(rows, 'row')} of attempt ${partition}, which is never read`,
  );
  return [
    ...damages.map(({ url, unit, reason }) => `DAMAGED  ${url}: unit ${unit}: ${reason}`),
    `${damages.length === 0 ? 'ok      ' : 'DAMAGED '} ${agent}: ${size}`,
    ...notes,
  ];
}

function verifyFar(
  agent: string | undefined,
  settings: Settings,
  flags: VerifyFlags,
  signal: AbortSignal,
): Promise<number> {
  return withArchive(settings, 'read', 'verify', async (archive) => {
    const reports = await reportEach(archive, agent, flags.json, {
      doing: 'counting',
      work: async (name, progress) => {
        const store = await archive.agent(name);
        return store.verifyFar({ signal, onProgress: (fraction) => progress.update(fraction, '') });
      },
      describe: describeFar,
    });
    return reports.some(({ damages }) => damages.length > 0) ? exitFailed : exitDone;
  });
}

async function verify(agent: string | undefined, flags: VerifyFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  if (flags.far === true && flags.repair === true)
    throw new UsageError('--far cannot be combined with --repair', 'For example: logstrata verify --far');
  if (flags.far === true) return verifyFar(agent, settings, flags, signal);
  if (flags.repair === true) {
    const { repair } = await import('./repair.js');
    return repair(agent, settings, flags, signal);
  }
  if (flags.yes === true)
    throw new UsageError('--yes needs --repair', 'For example: logstrata verify --repair --yes');
  return withArchive(settings, 'read', 'verify', async (archive) => {
    const reports = await reportEach(archive, agent, flags.json, {
      doing: 'verifying',
      work: (name, progress) =>
        archive.verify(name, { signal, onProgress: (fraction) => progress.update(fraction, '') }),
      describe: describeVerifyReport,
    });
    return reports.some(({ damages }) => damages.length > 0) ? exitFailed : exitDone;
  });
}

/** Adds `logstrata verify`: reads every byte of the archive and checks it against the checksums. */
export function addVerifyCommand(program: Command): void {
  program
    .command('verify')
    .summary('read every byte and check the checksums')
    .description('Reads every byte that belongs to a record and checks the checksums.')
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--json', 'print the result as JSON')
    .option('--far', 'instead, count the records of the far tier on each of its servers')
    .option('--repair', 'repair damage: keep all intact records, put damaged files aside, show what is lost')
    .option('--yes', 'with --repair: adopt files that no manifest lists, without asking')
    .addHelpText('after', examples)
    .action(stoppable((flags: VerifyFlags, { signal }, agent?: string) => verify(agent, flags, signal)));
}
