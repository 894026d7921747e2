import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { formatProblem } from '../../agents/definition/config-error.js';
import { lineFormatOf, shownFolder, type AgentDefinition } from '../../agents/definition/definition.js';
import { lacksZone } from '../../engine/times/timestamp.js';
import { expandFiles } from '../../agents/load/load-paths.js';
import { pathOf } from '../../agents/recognise/log-path.js';
import { recognise } from '../../agents/recognise/recognise.js';
import { readSample } from '../../agents/recognise/log-sample.js';
import type { Trial } from '../../agents/recognise/trial.js';
import { shellPath } from '../../agents/sources/paths.js';
import { fileSystemError, isAgentName, LogstrataError } from '../../engine/index.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import { newArchive, type NewArchive } from './new-archive.js';
import { noAgents, readAgentsFolder, readSettings, type GlobalFlags, type Settings } from './options.js';
import {
  cutEndToWidth,
  formatCount,
  formatCounted,
  formatTable,
  linesOf,
  oneLine,
  printJson,
  printLines,
  screenWidth,
  showValue,
  tell,
  writeRecords,
} from './terminal.js';

export interface NewFlags extends GlobalFlags {
  readonly log?: readonly string[];
  readonly print?: boolean;
  readonly force?: boolean;
}

/** Maximum number of files that are sampled; rotated files look like the newest one. */
const filesSampledMax = 3;

/** Widths of cells in columns, chosen so that a line has at most 80. */
const width = { field: 18, value: 44, line: 66 } as const;

/**
 * Runs `logstrata agent new`: recognises the format of logs, and writes the file of an agent for them. Returns the exit code. Throws `exists` where there is such a
 * file and neither `force` nor `print` is set; `invalid` for logs without a line.
 */
export async function newAgent(flags: NewFlags, name: string, logs: readonly string[]): Promise<number> {
  const log = [...(flags.log ?? []), ...logs];
  if (log.length === 0)
    throw new UsageError(
      'no log is named',
      `For example: logstrata agent new ${name} --log /var/log/nginx/access.log`,
    );
  if (!isAgentName(name)) {
    const rule = '1 to 128 letters, digits, ".", "_" and "-", and begins with a letter or a digit';
    throw new UsageError(`${JSON.stringify(name)} is not a valid agent name: a name has ${rule}`);
  }
  const settings = await readSettings(flags);
  const path = join(settings.agentsFolder, `${name}.yaml`);
  const known = [path, join(settings.agentsFolder, `${name}.yml`)].find((each) => existsSync(each));
  if (known !== undefined && flags.force !== true && flags.print !== true) {
    const message = `${known} already exists. Use --force to replace it, or --print to see what would be written`;
    throw new LogstrataError('exists', message);
  }
  const columnar = await newArchive(name, path, log, settings);
  if (columnar !== undefined) return writeArchive(flags, name, known ?? path, columnar);
  const files = await expandFiles(log);
  const globs = log.filter((each) => !existsSync(each));
  const trial = await recogniseFiles(name, path, pathOf(files, globs), files, settings);
  if (flags.print === true) {
    await writeRecords(Buffer.from(trial.yaml));
    describeTrial(trial, files).forEach(tell);
    return exitDone;
  }
  write(known ?? path, trial.yaml);
  await printLines([
    ...describeTrial(trial, files),
    '',
    `wrote ${known ?? path}`,
    '',
    ...nextSteps(name, log),
  ]);
  return trial.records > 0 ? exitDone : exitFailed;
}

/** Writes the file of an agent for Parquet or Arrow files, or for a table. */
async function writeArchive(
  { print }: NewFlags,
  name: string,
  path: string,
  { yaml, lines, problems }: NewArchive,
): Promise<number> {
  if (print === true) {
    await writeRecords(Buffer.from(yaml));
    [...lines, ...problems].forEach(tell);
    return exitDone;
  }
  write(path, yaml);
  const next = [
    '# attach and index the files',
    `logstrata index ${name}`,
    '# answer queries',
    'logstrata serve',
  ];
  await printLines([...lines, '', `wrote ${path}`, '', 'Next:', ...next.map((line) => `  ${line}`)]);
  problems.forEach(tell);
  return exitDone;
}

async function recogniseFiles(
  name: string,
  agentPath: string,
  path: string,
  files: readonly string[],
  settings: Settings,
): Promise<Trial> {
  const newest = files.toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  const sampled = newest.slice(0, filesSampledMax);
  const comments = [
    `The agent "${name}": its fields, and how its lines are parsed. Try a line with`,
    `  logstrata check ${name} --line '…'`,
  ];
  const trial = recognise(await readSample(sampled), {
    agentPath,
    timezone: settings.config.server.timezone,
    path,
    comments,
  });
  if (trial !== undefined) return trial;
  const which = sampled.length === 1 ? `${sampled[0]!} has` : 'the files have';
  throw new LogstrataError('invalid', `${which} no line yet, so the format cannot be recognised`);
}

function write(path: string, text: string): void {
  const folder = resolve(path, '..');
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, text);
  } catch (error) {
    throw fileSystemError(error, 'write', path);
  }
}

/** The result as lines for people. */
function describeTrial(trial: Trial, files: readonly string[]): string[] {
  const { candidate, lines, unmatchedLines, records, definition } = trial;
  const what = files.length === 1 ? files[0]! : formatCounted(files.length, 'file');
  const matched = lines - unmatchedLines;
  const several = records === matched ? '' : `, in ${formatCounted(records, 'record')}`;
  const undated = definition.fields.filter(({ type }) => type === 'time').length === 0;
  return linesOf(
    candidate.isLastResort === true ? `${what}:` : `${what}: ${candidate.title}`,
    candidate.isLastResort === true
      ? 'no format was recognised: each line becomes a record with its text'
      : `${formatCount(matched)} of ${formatCounted(lines, 'line')} read match${several}`,
    describeUnmatched(trial),
    '',
    describeFields(trial),
    candidate.note?.map((text, i) => `${i === 0 ? 'note: ' : '      '}${text}`),
    undated &&
      candidate.note === undefined &&
      'note: no time was found in the lines: records are ordered by their arrival',
    restNote(trial),
    encodingNote(trial),
    colourNote(trial),
    textNote(trial),
    orderNote(trial),
    zoneNote(trial),
  );
}

/** What becomes of lines that are no records of the format. */
function restNote({ definition, skippedLines }: Trial): string[] {
  const { otherwise } = definition.file ?? {};
  return linesOf(
    skippedLines > 0 &&
      `note: ${formatCounted(skippedLines, 'line')} that begin${skippedLines === 1 ? 's' : ''} with # would be skipped (skip)`,
    otherwise !== undefined && [
      `note: a line of another format becomes a record with its text in ${otherwise} and`,
      '      the time of the record before it. To have such lines rejected, remove otherwise',
    ],
  );
}

function encodingNote({ definition, replacedBytes }: Trial): string[] {
  const { encoding } = definition.file ?? {};
  return linesOf(
    encoding !== undefined && `note: the log is not UTF-8 and is read as ${encoding} (encoding)`,
    replacedBytes > 0 &&
      `note: ${formatCounted(replacedBytes, 'byte')} of the values ${replacedBytes === 1 ? 'is' : 'are'} not UTF-8 and would be stored as \ufffd`,
  );
}

function colourNote({ first }: Trial): string[] {
  if (!first.flat().some((value) => typeof value === 'string' && value.includes('\u001b['))) return [];
  return [
    `note: values contain terminal colour codes, which hide times and levels. Make the`,
    `      program write its log without colours; many do so if NO_COLOR=1 is set`,
  ];
}

function textNote({ candidate }: Trial): string[] {
  return candidate.fields.flatMap(({ name, unlikeFloat }) =>
    unlikeFloat === undefined
      ? []
      : [
          `note: ${name} is text, because a number would not give back ${JSON.stringify(unlikeFloat)} as it is`,
          `      written. If it is a measure, write: type: float`,
        ],
  );
}

function orderNote({ candidate }: Trial): string[] {
  const { timestamp, otherOrder } = candidate.fields.find((field) => field.otherOrder !== undefined) ?? {};
  if (timestamp === undefined || otherOrder === undefined) return [];
  return [
    `note: the dates do not show which part is the day and which the month. They are`,
    `      read as '${timestamp.format}'. If that is wrong, write:`,
    `      timestamp: { format: '${otherOrder}' }`,
  ];
}

function zoneNote({ definition }: Trial): string[] {
  const time = definition.fields.find(({ type }) => type === 'time');
  const { timestamp } = time ?? {};
  if (timestamp === undefined || timestamp.timezone !== undefined || !lacksZone(timestamp)) return [];
  return [
    `note: the times have no zone and are read in server.timezone, which is UTC unless`,
    `      configured. If that is wrong, write: timestamp: { …, timezone: Europe/Oslo }`,
  ];
}

function describeUnmatched({ unmatchedLines, unmatched }: Trial): string[] {
  if (unmatchedLines === 0) return [];
  return [
    `${formatCounted(unmatchedLines, 'line')} of them ${unmatchedLines === 1 ? 'does' : 'do'} not. The first:`,
    ...unmatched.flatMap(({ text, reason }) => [
      `  ${cutEndToWidth(oneLine(text), width.line)}`,
      `    ${reason}`,
    ]),
  ];
}

/** A table of the fields with their values in the first record. */
function describeFields({ definition, first }: Trial): string[] {
  const record = first[0];
  const rows = definition.fields.map(({ name, type }, i) => [
    cutEndToWidth(name, width.field),
    type,
    record === undefined ? '' : cutEndToWidth(showValue(type, record[i] ?? null), width.value),
  ]);
  return formatTable(['field', 'type', 'the first record'], rows);
}

function nextSteps(name: string, log: readonly string[]): string[] {
  const shown = log.map((file) => (/^[\w./-]+$/.test(file) ? file : shellPath(file)));
  const files = shown.length > 3 ? `${shown[0]!} …` : shown.join(' ');
  const generations = log.length === 1 && basename(log[0]!).includes('*') ? files : rotated(shown);
  return [
    'Next:',
    '  # parse the whole file, store nothing',
    `  logstrata check ${name} --file ${shown[0]!}`,
    '  # store the existing files',
    `  logstrata load ${name} ${generations}`,
    '  # follow the log from now on, and answer queries',
    '  logstrata serve',
  ];
}

/** A pattern for the log and its rotated files, quoted so that the shell does not expand it. */
function rotated(shown: readonly string[]): string {
  if (shown.length > 1 || /^\$?'/.test(shown[0]!)) return shown.join(' ');
  return `'${shown[0]!}*'`;
}

function describeReading(agent: AgentDefinition): string {
  const { file, archive, system } = agent;
  if (file !== undefined) return `${shownFolder(file)}/${file.namePattern}`;
  if (archive !== undefined) return archive.globs.map(({ glob }) => glob).join(', ');
  return system === undefined ? '' : 'this machine';
}

function describeFormat(agent: AgentDefinition): string {
  const lines = lineFormatOf(agent);
  if (lines !== undefined)
    return (lines.multiline ?? lines.values) === undefined ? lines.format : `${lines.format}, several lines`;
  if (agent.archive?.table !== undefined) return `${agent.archive.table.format} table`;
  return agent.system === undefined ? 'files in place' : 'figures';
}

/** Runs `logstrata agent list`. */
export async function listAgents(flags: GlobalFlags): Promise<number> {
  const settings = await readSettings(flags);
  const { agents, problems } = await readAgentsFolder(settings);
  if (flags.json === true) {
    const known = agents.map((agent) => ({
      name: agent.name,
      path: agent.path,
      format: describeFormat(agent),
      reads: describeReading(agent),
      fields: agent.fields.length,
    }));
    await printJson({ agents: known, problems });
  } else if (agents.length > 0) {
    const rows = agents.map((agent) => [
      agent.name,
      describeFormat(agent),
      formatCounted(agent.fields.length, 'field'),
      describeReading(agent),
    ]);
    await printLines(formatTable(['agent', 'format', 'fields', 'reads'], rows, [], screenWidth()));
  }
  for (const problem of problems) tell(formatProblem(problem));
  if (agents.length === 0 && problems.length === 0) tell(noAgents(settings.agentsFolder));
  return agents.length > 0 && problems.length === 0 ? exitDone : exitFailed;
}
