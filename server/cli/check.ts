import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { ArchiveReport } from '../../agents/archive/archive-report.js';
import { formatProblem } from '../../agents/definition/config-error.js';
import type {
  AgentDefinition,
  ArchiveInput,
  FieldDefinition,
  FileInput,
  LineFormat,
} from '../../agents/definition/definition.js';
import type { ReaderConfig } from '../../agents/definition/far-config.js';
import {
  isLogstrataError,
  typeFacts,
  type LogstrataError,
  type RetentionOutlook,
} from '../../engine/index.js';
import {
  chooseAgent,
  noAgents,
  readAgentsFolder,
  describeChange,
  describeRetention,
  retentionOf,
  readSettings,
  type GlobalFlags,
  type Settings,
} from './options.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import {
  formatCount,
  formatCounted,
  formatPeriod,
  formatTable,
  printJson,
  printLines,
  tell,
} from './terminal.js';
import { withArchive } from './opened-archive.js';

interface CheckFlags extends GlobalFlags {
  readonly line?: string;
  readonly file?: readonly string[];
  readonly json?: boolean;
}

const examples = `
Examples:
  $ logstrata check                             all agents: fields, files, mistakes
  $ logstrata check nginx --line "$(tail -1 access.log)"    what one line becomes
  $ tail -1 app.log | logstrata check app --line -          from standard input
  $ logstrata check nginx --file access.log     what a whole file becomes

Exit code 1 if a file has an error or a line would be rejected.`;

/** The source of a field's value, as the agent's file names it. */
function describeSource(field: FieldDefinition): string {
  if (field.template !== undefined) return `template ${JSON.stringify(field.template)}`;
  return field.source;
}

function describeTimestamp(field: FieldDefinition): string {
  if (field.timestamp === undefined) return field.type === 'time' ? 'epoch milliseconds' : '';
  const { format, timezone } = field.timestamp;
  return timezone === undefined ? format : `${format} (${timezone})`;
}

function describeIndex(field: FieldDefinition): string {
  if (!typeFacts[field.type].hasFilters) return '';
  if (field.index === undefined) return 'by the data';
  return field.index === 'full' ? 'full' : field.index ? 'yes' : 'no';
}

function describeLines({ format, multiline }: LineFormat, where: string): string[] {
  const from = `  reads ${format} lines of ${where}`;
  return multiline === undefined
    ? [from]
    : [from, `  a record begins with each line that ${multiline.start} finds`];
}

function describeArchive({ globs, mode, lines }: ArchiveInput): string[] {
  const paths = globs.map(({ glob }) => glob).join(', ');
  if (lines !== undefined) return describeLines(lines, `${paths}, which are stored once`);
  return mode === 'import' ? [`  stores the files ${paths} once`] : [`  answers from ${paths}`];
}

/** Lines about the files that an agent follows. */
async function describePathOf(file: FileInput): Promise<string[]> {
  const { checkPath, describePath } = await import('./checked.js');
  return describePath(checkPath(file));
}

async function describeInput({ file, archive, system }: AgentDefinition): Promise<string[]> {
  const followed =
    file === undefined
      ? []
      : [
          ...describeLines(file, `${file.directory}, files ${file.namePattern}`),
          ...(await describePathOf(file)).map((line) => `  ${line}`),
        ];
  const archived = archive === undefined ? [] : describeArchive(archive);
  if (system === undefined) return [...followed, ...archived];
  const { intervalMs, disk, net } = system;
  const parts = [
    'this machine',
    ...(disk ? [`disk ${disk.path}`] : []),
    ...(net ? [`network ${net.interface}`] : []),
  ];
  return [`  takes figures every ${formatPeriod(intervalMs)}: ${parts.join(', ')}`];
}

/** By agent, what its retention would do to the stored records, or why that can't be determined. */
type Outlooks = ReadonlyMap<string, RetentionOutlook | LogstrataError>;

/** Opens the archive only for agents with a limited retention; the others lose no records. */
async function outlooksOf(settings: Settings, agents: readonly AgentDefinition[]): Promise<Outlooks> {
  const outlooks = new Map<string, RetentionOutlook | LogstrataError>();
  const bounded = agents.filter((agent) => {
    const { periodMs, bytesMax } = retentionOf(agent);
    return periodMs !== null || bytesMax !== null;
  });
  // A reader stores no records.
  if (settings.config.server.reader !== null) return outlooks;
  if (bounded.length === 0 || !existsSync(settings.dataFolder)) return outlooks;
  await withArchive(settings, 'read', 'check', async (archive) => {
    const stored = new Set(await archive.agents());
    for (const agent of bounded) {
      if (!stored.has(agent.name)) continue;
      try {
        outlooks.set(agent.name, await archive.retentionOutlook(agent.name, retentionOf(agent)));
      } catch (error) {
        if (!isLogstrataError(error)) throw error;
        outlooks.set(agent.name, error);
      }
    }
  });
  return outlooks;
}

function describeOutlook(agent: AgentDefinition, outlook: RetentionOutlook | LogstrataError): string[] {
  if ('kept' in outlook) return describeChange(agent.name, retentionOf(agent), outlook);
  return [`the effect on the stored records is unknown: ${outlook.message}`];
}

/** By agent, the report on the files of its archive, or why there is none. */
type Archives = ReadonlyMap<string, ArchiveReport | LogstrataError>;

async function archivesOf(settings: Settings, agents: readonly AgentDefinition[]): Promise<Archives> {
  const archives = new Map<string, ArchiveReport | LogstrataError>();
  for (const agent of agents) {
    if (agent.archive === undefined) continue;
    const { checkArchive } = await import('./checked.js');
    try {
      archives.set(agent.name, await checkArchive(agent, agent.archive, settings));
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      archives.set(agent.name, error);
    }
  }
  return archives;
}

/** Reports the problems with files of archives on standard error. Returns whether there are any. */
async function tellArchiveProblems(agents: readonly AgentDefinition[], archives: Archives): Promise<boolean> {
  let isWrong = false;
  for (const agent of agents) {
    const report = archives.get(agent.name);
    if (report === undefined) continue;
    const { archiveProblems } = await import('./checked.js');
    const problems = 'code' in report ? [`${agent.path}: ${report.message}`] : archiveProblems(agent, report);
    problems.forEach(tell);
    isWrong ||= problems.length > 0;
  }
  return isWrong;
}

async function describeAgent(
  agent: AgentDefinition,
  outlooks: Outlooks,
  archives: Archives,
): Promise<string[]> {
  const report = archives.get(agent.name);
  const lines = await describeFields(agent, outlooks);
  if (report === undefined || 'code' in report) return lines;
  const { describeArchiveReport } = await import('./checked.js');
  return [...lines.slice(0, -1), ...describeArchiveReport(agent, report), ''];
}

async function describeFields(agent: AgentDefinition, outlooks: Outlooks): Promise<string[]> {
  const outlook = outlooks.get(agent.name);
  const isInferred = agent.fields.length === 0;
  const table = isInferred
    ? []
    : formatTable(
        ['field', 'type', 'from', 'timestamp', 'filters', 'description'],
        agent.fields.map((field) => [
          field.name,
          field.type,
          describeSource(field),
          describeTimestamp(field),
          describeIndex(field),
          field.description ?? '',
        ]),
      );
  return [
    `${agent.name} (${agent.path}): ${isInferred ? 'the fields of its files' : formatCounted(agent.fields.length, 'field')}`,
    ...(await describeInput(agent)),
    `  keeps ${describeRetention(agent.retention)}`,
    ...(outlook === undefined ? [] : describeOutlook(agent, outlook).map((line) => `  ${line}`)),
    ...table.map((line) => `  ${line}`),
    ...agent.notes.map((note) => `  note: ${note}`),
    '',
  ];
}

async function forJson(agent: AgentDefinition, outlooks: Outlooks, archives: Archives): Promise<object> {
  const { file } = agent;
  const path = file === undefined ? undefined : await import('./checked.js');
  const outlook = outlooks.get(agent.name);
  const report = archives.get(agent.name);
  return {
    ...agent,
    ...(path === undefined ? {} : { pathReport: path.checkPath(file!) }),
    ...(outlook !== undefined && 'kept' in outlook ? { retentionOutlook: outlook } : {}),
    ...(report === undefined || 'code' in report ? {} : { archiveReport: report }),
  };
}

async function checkAll(settings: Settings, flags: CheckFlags): Promise<number> {
  const { agents, problems } = await readAgentsFolder(settings);
  const outlooks = await outlooksOf(settings, agents);
  const archives = await archivesOf(settings, agents);
  let isWrong = problems.length > 0 || agents.length === 0;
  if (flags.json === true) {
    const known: object[] = [];
    for (const agent of agents) known.push(await forJson(agent, outlooks, archives));
    await printJson({ agents: known, problems });
  } else {
    for (const agent of agents) await printLines(await describeAgent(agent, outlooks, archives));
    for (const problem of problems) tell(formatProblem(problem));
    for (const note of settings.config.notes) await printLines([`note: ${note}`]);
    if (agents.length === 0 && problems.length === 0) tell(noAgents(settings.agentsFolder));
    else
      await printLines([
        `${formatCounted(agents.length, 'agent')} ok, ${formatCounted(problems.length, 'problem')}`,
      ]);
  }
  isWrong = (await tellArchiveProblems(agents, archives)) || isWrong;
  return isWrong ? exitFailed : exitDone;
}

/** Checks the writer of a reader's configuration, and prints the agents and records that it has. */
async function checkReader(reader: ReaderConfig, { json }: CheckFlags): Promise<number> {
  const { checkWriter } = await import('./checked.js');
  const checked = await checkWriter(reader);
  if (json === true) await printJson(checked);
  else {
    const agents = checked.agents.map(
      ({ name, records, farRecords }) =>
        `  ${name}: ${formatCounted(records, 'record')}, ${formatCount(farRecords)} of them in the far tier`,
    );
    await printLines([`reader of the writer ${checked.writer}, which serves these agents:`, ...agents]);
  }
  return exitDone;
}

async function check(name: string | undefined, flags: CheckFlags): Promise<number> {
  const needsAgent = flags.line !== undefined ? 'line' : flags.file !== undefined ? 'file' : undefined;
  if (needsAgent !== undefined && name === undefined) {
    throw new UsageError(
      `--${needsAgent} needs the name of an agent`,
      `For example: logstrata check nginx --${needsAgent} "…"`,
    );
  }
  if (flags.line !== undefined && flags.file !== undefined)
    throw new UsageError('--line and --file cannot be combined: give a line or files');
  const settings = await readSettings(flags);
  const { reader } = settings.config.server;
  if (name === undefined) return reader === null ? checkAll(settings, flags) : checkReader(reader, flags);
  const agent = await chooseAgent(settings, name);
  if (flags.line !== undefined) {
    const { describeLineOf } = await import('./checked.js');
    return describeLineOf(agent, flags.line, settings, flags.json === true);
  }
  if (flags.file !== undefined) {
    const { checkFiles } = await import('./checked.js');
    return checkFiles(agent, flags.file, settings, flags.json === true);
  }
  const outlooks = await outlooksOf(settings, [agent]);
  const archives = await archivesOf(settings, [agent]);
  if (flags.json === true) await printJson(await forJson(agent, outlooks, archives));
  else await printLines((await describeAgent(agent, outlooks, archives)).slice(0, -1));
  return (await tellArchiveProblems([agent], archives)) ? exitFailed : exitDone;
}

/** Adds `logstrata check`: checks the agents' files, or shows what lines or files would become. */
export function addCheckCommand(program: Command): void {
  program
    .command('check')
    .summary('check the agent files, or show what lines become')
    .description('Checks the configuration and the agent files, and shows what lines become.')
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--line <text>', 'a line of the log; - reads it from standard input')
    .option('--file <file...>', 'log files: show what all their lines become, store nothing')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(async (agent: string | undefined, _flags: unknown, command: Command) => {
      process.exitCode = await check(agent, command.optsWithGlobals<CheckFlags>());
    });
}
