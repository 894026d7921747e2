import { readAgents } from '../../agents/definition/agent-file.js';
import { LogstrataError, type LostRecords, type RepairReport, type Schema } from '../../engine/index.js';
import { exitDone, exitFailed } from './failure.js';
import { formatCounted, formatTime, askYesNo, canAsk, tell } from './terminal.js';
import { reportEach, withArchive } from './opened-archive.js';
import { describeRestorable } from './backup.js';
import type { Settings } from './options.js';

/** Maximum number of files that are listed in the question; the others are counted. */
const filesShownMax = 20;

/** Maximum number of position ranges that are listed per file; the JSON output has all. */
const rangesShownMax = 8;

/** The flags of `verify --repair`. */
export interface RepairFlags {
  readonly json?: boolean;
  readonly yes?: boolean;
}

/** Whether to adopt files that no manifest lists: true with `--yes`, else the user is asked. Throws `invalid` where nobody can be asked. */
async function askToAdopt(agent: string, files: readonly string[], flags: RepairFlags): Promise<boolean> {
  if (flags.yes === true) return true;
  const what = `${formatCounted(files.length, 'file')} of agent ${agent} that no manifest lists`;
  if (!canAsk()) {
    throw new LogstrataError(
      'invalid',
      `there ${files.length === 1 ? 'is' : 'are'} ${what}, and no terminal to ask whether to adopt them: --yes adopts them. Nothing was changed`,
    );
  }
  for (const file of files.slice(0, filesShownMax)) tell(`  ${file}`);
  if (files.length > filesShownMax) tell(`  and ${files.length - filesShownMax} more`);
  return askYesNo(`Adopt ${what}? Otherwise they are put aside.`);
}

function describeRange({ first, last, records, fromMs, untilMs }: LostRecords): string {
  const count = records === null ? 'an unknown number of records' : formatCounted(records, 'record');
  const times = untilMs === 0 ? 'of unknown times' : `${formatTime(fromMs)} to ${formatTime(untilMs)} UTC`;
  const where = first === null || last === null ? times : `${first} … ${last}, ${times}`;
  return `${count}: ${where}`;
}

/** What is lost of one file for one reason: the total in one line, and the single ranges below where there are several. */
function describeLost(ranges: readonly LostRecords[]): string[] {
  const { file, reason } = ranges[0]!;
  const records = ranges.reduce((sum, range) => sum + (range.records ?? 0), 0);
  const all = { ...ranges[0]!, last: ranges.at(-1)!.last, untilMs: ranges.at(-1)!.untilMs };
  const total = describeRange(ranges.length === 1 ? all : { ...all, records });
  const lines = [`LOST     ${total}`, `         ${file}: ${reason}`];
  if (ranges.length === 1) return lines;
  for (const range of ranges.slice(0, rangesShownMax)) lines.push(`           ${describeRange(range)}`);
  const more = ranges.length - rangesShownMax;
  if (more > 0) lines.push(`           and ${formatCounted(more, 'more range')}; --json lists them all`);
  return lines;
}

/** Groups losses by file and reason. Only neighbours whose cursors are known are grouped. */
function groupsOf(lost: readonly LostRecords[]): LostRecords[][] {
  const groups: LostRecords[][] = [];
  for (const each of lost) {
    const last = groups.at(-1)?.at(-1);
    const goesOn = last?.file === each.file && last.reason === each.reason;
    if (goesOn && last.first !== null && each.first !== null) groups.at(-1)!.push(each);
    else groups.push([each]);
  }
  return groups;
}

/** A note on lost records that can't be loaded again, as no load of theirs is known. */
function describeForGood(agent: string, records: number): string {
  return (
    `note     ${agent}: ${formatCounted(records, 'lost record')} came from no known load (a followed log, standard input, ` +
    `rejected lines, or an older version), so no command can restore just those`
  );
}

function describeRepair(agent: string, report: RepairReport): string[] {
  const records = formatCounted(report.records, 'record');
  if (!report.changed)
    return [
      `ok       ${agent}: nothing to repair, ${records}`,
      ...describeRestorable(agent, report.restorable),
    ];
  const lines: string[] = [];
  if (report.manifest === 'rebuilt') {
    const from =
      report.basedOn === null ? 'from the files alone' : `from manifest ${report.basedOn} and the files`;
    const sources =
      report.basedOn === null
        ? 'it is unknown which log files were loaded: a file that is loaded again is stored a second time'
        : 'files that were loaded after that manifest may be stored a second time if they are loaded again';
    lines.push(`rebuilt  ${agent}: the manifest, ${from}`, `note     ${agent}: ${sources}`);
  }
  if (report.adopted.length > 0)
    lines.push(`adopted  ${agent}: ${formatCounted(report.adopted.length, 'file')} that no manifest listed`);
  for (const { file, to, reason } of report.quarantined) lines.push(`aside    ${file} -> ${to}: ${reason}`);
  for (const ranges of groupsOf(report.lost)) lines.push(...describeLost(ranges));
  lines.push(`repaired ${agent}: ${records} can be queried`, ...describeRestorable(agent, report.restorable));
  if (report.lostForGood > 0) lines.push(describeForGood(agent, report.lostForGood));
  return lines;
}

/** The schema in an agent's file; undefined where there is no readable file. */
function configuredSchema(settings: Settings, agent: string): Schema | undefined {
  try {
    return readAgents(settings.agentsFolder).agents.find(({ name }) => name === agent)?.schema;
  } catch (error) {
    if (error instanceof LogstrataError) return undefined;
    throw error;
  }
}

/** Runs `logstrata verify --repair` on one agent, or on all. Returns exit code 1 where records are lost. */
export async function repair(
  agent: string | undefined,
  settings: Settings,
  flags: RepairFlags,
  signal: AbortSignal,
): Promise<number> {
  return withArchive(settings, 'write', 'repair', async (archive) => {
    const reports = await reportEach(archive, agent, flags.json, {
      doing: 'reading',
      work: (name, progress) =>
        archive.repair(name, {
          schema: configuredSchema(settings, name),
          signal,
          onProgress: (fraction) => progress.update(fraction, ''),
          adopt: (files) => {
            progress.stop();
            return askToAdopt(name, files, flags);
          },
        }),
      describe: describeRepair,
    });
    return reports.some(({ lost }) => lost.length > 0) ? exitFailed : exitDone;
  });
}
