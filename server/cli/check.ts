import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { reportArchive, type ArchiveReport } from '../../agents/archive/archive-report.js';
import {
  fieldsYaml,
  isNumber,
  timesIn,
  withFields,
  type InferredColumn,
  type InferredField,
} from '../../agents/archive/inferred-fields.js';
import { AgentFiles, type Survey } from '../../agents/collect/logs/agent-files.js';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import { LogNames } from '../../agents/collect/logs/log-names.js';
import {
  describeLine,
  type DescribedField,
  type LineDescription,
} from '../../agents/decode/describe-line.js';
import { formatProblem } from '../../agents/definition/config-error.js';
import {
  shownFolder,
  type AgentDefinition,
  type ArchiveInput,
  type FieldDefinition,
  type FileInput,
  type LineFormat,
} from '../../agents/definition/definition.js';
import type { ReaderConfig } from '../../agents/definition/far-config.js';
import { expressionOfShellPattern } from '../../agents/definition/file-captures.js';
import { yamlText } from '../../agents/definition/yaml.js';
import { tryFile, type FieldSummary, type FileTrial } from '../../agents/load/file-trial.js';
import { expandFiles } from '../../agents/load/load-paths.js';
import { describeSystemError } from '../../agents/sources/byte-source.js';
import {
  lineBytesMax,
  LogstrataError,
  openReader,
  typeFacts,
  WorkerPool,
  workersDefault,
  type RetentionOutlook,
} from '../../engine/index.js';
import { exitDone, exitFailed, expectedError, UsageError } from './failure.js';
import { openWriterClient, withArchive, withObjects } from './opened-archive.js';
import {
  chooseAgent,
  describeChange,
  describeRetention,
  noAgents,
  readAgentsFolder,
  readSettings,
  retentionOf,
  type GlobalFlags,
  type Settings,
} from './options.js';
import {
  cutEndToWidth,
  formatBytes,
  formatCount,
  formatCounted,
  formatPeriod,
  formatTable,
  formatTime,
  linesOf,
  oneLine,
  printable,
  printJson,
  printLines,
  screenWidth,
  showValue,
  tell,
  withProgress,
} from './terminal.js';

interface CheckFlags extends GlobalFlags {
  readonly line?: string;
  readonly file?: readonly string[];
}

/** What is found out about an agent besides its file. */
interface CheckedAgent {
  readonly agent: AgentDefinition;
  /** What its retention would do to the stored records, or why that can't be determined; undefined where it removes none. */
  readonly outlook: RetentionOutlook | LogstrataError | undefined;
  /** The files of its archive, or why they can't be examined. */
  readonly archive: ArchiveReport | LogstrataError | undefined;
  /** The logs that it follows. */
  readonly path: PathReport | undefined;
}

/** Opens the archive only for agents with a limited retention; the others lose no records. */
async function outlooksOf(
  settings: Settings,
  agents: readonly AgentDefinition[],
): Promise<ReadonlyMap<string, RetentionOutlook | LogstrataError>> {
  const outlooks = new Map<string, RetentionOutlook | LogstrataError>();
  const bounded = agents.filter((agent) => {
    const { periodMs, bytesMax, rules } = retentionOf(agent);
    return periodMs !== null || bytesMax !== null || rules !== undefined;
  });
  // A reader stores no records.
  if (settings.config.server.reader !== null) return outlooks;
  if (bounded.length === 0 || !existsSync(settings.dataFolder)) return outlooks;
  await withArchive(settings, 'read', 'check', async (archive) => {
    const stored = await archive.agents();
    for (const agent of bounded.filter(({ name }) => stored.includes(name)))
      outlooks.set(
        agent.name,
        await archive.retentionOutlook(agent.name, retentionOf(agent)).catch(expectedError),
      );
  });
  return outlooks;
}

async function checkAgents(
  settings: Settings,
  agents: readonly AgentDefinition[],
): Promise<readonly CheckedAgent[]> {
  const outlooks = await outlooksOf(settings, agents);
  const checked: CheckedAgent[] = [];
  for (const agent of agents) {
    const { name, archive, file } = agent;
    checked.push({
      agent,
      outlook: outlooks.get(name),
      archive: archive && (await checkArchive(agent, archive, settings).catch(expectedError)),
      path: file && (await checkPath(file)),
    });
  }
  return checked;
}

function describeTimestamp({ timestamp, type }: FieldDefinition): string {
  if (timestamp === undefined) return type === 'time' ? 'epoch milliseconds' : '';
  const { format, timezone } = timestamp;
  return timezone === undefined ? format : `${format} (${timezone})`;
}

function describeIndex({ type, index }: FieldDefinition): string {
  if (!typeFacts[type].hasFilters) return '';
  if (index === undefined) return 'by the data';
  return index === 'full' ? 'full' : index ? 'yes' : 'no';
}

function describeLines({ format, payload, multiline, values }: LineFormat, where: string): string[] {
  return linesOf(
    `reads ${format} lines of ${where}`,
    payload && `the text of each container is ${payload}`,
    multiline && `a record begins with each line that ${multiline.start} finds`,
    values && 'a record is a value of JSON, whatever the lines',
    values !== undefined &&
      values.records.length > 0 &&
      `records are in the array ${values.records.join('.')}`,
  );
}

function describeArchive({ globs, mode, table, lines }: ArchiveInput): string[] {
  const paths = globs.map(({ glob }) => glob).join(', ');
  if (lines !== undefined) return describeLines(lines, `${paths}, which are stored once`);
  if (table !== undefined) return [`answers from the table ${paths} (${table.format})`];
  return mode === 'import' ? [`stores the files ${paths} once`] : [`answers from ${paths}`];
}

function describeInput({ agent: { file, archive, system }, path }: CheckedAgent): string[] {
  if (system !== undefined) {
    const { intervalMs, disk, net } = system;
    const parts = linesOf('this machine', disk && `disk ${disk.path}`, net && `network ${net.interface}`);
    return [`takes figures every ${formatPeriod(intervalMs)}: ${parts.join(', ')}`];
  }
  return linesOf(
    file && describeLines(file, `${shownFolder(file)}, files ${file.namePattern}`),
    path && describePath(path),
    archive && describeArchive(archive),
  );
}

function describeOutlook(agent: AgentDefinition, outlook: RetentionOutlook | LogstrataError): string[] {
  if ('kept' in outlook) return describeChange(agent.name, retentionOf(agent), outlook);
  return [`the effect on the stored records is unknown: ${outlook.message}`];
}

function fieldTable({ fields }: AgentDefinition): string[] {
  return formatTable(
    ['field', 'type', 'from', 'timestamp', 'filters', 'description'],
    fields.map((field) => [
      field.name,
      field.type,
      field.template === undefined ? field.source : `template ${JSON.stringify(field.template)}`,
      describeTimestamp(field),
      describeIndex(field),
      field.description ?? '',
    ]),
  );
}

/** An agent as lines for people. */
function describeAgent(checked: CheckedAgent): string[] {
  const { agent, outlook, archive } = checked;
  const fields = agent.fields.length;
  const below = linesOf(
    describeInput(checked),
    `keeps ${describeRetention(agent.retention)}`,
    outlook && describeOutlook(agent, outlook),
    fields > 0 && fieldTable(agent),
    agent.notes.map((note) => `note: ${note}`),
  );
  return linesOf(
    `${agent.name} (${agent.path}): ${fields === 0 ? 'the fields of its files' : formatCounted(fields, 'field')}`,
    below.map((line) => `  ${line}`),
    archive && !('code' in archive) && describeArchiveReport(agent, archive),
  );
}

function agentForJson({ agent, outlook, archive, path }: CheckedAgent): object {
  return {
    ...agent,
    ...(archive !== undefined && !('code' in archive) && agent.archive?.infersFields === true
      ? withFields(
          agent,
          archive.columns.map(({ field }) => field),
        )
      : {}),
    ...(path === undefined ? {} : { pathReport: path }),
    ...(outlook !== undefined && 'kept' in outlook ? { retentionOutlook: outlook } : {}),
    ...(archive === undefined || 'code' in archive ? {} : { archiveReport: archive }),
  };
}

/** Reports the problems with files of archives on standard error. Returns the exit code. */
function tellArchiveProblems(checked: readonly CheckedAgent[]): number {
  const problems = checked.flatMap(({ agent, archive }) => {
    if (archive === undefined) return [];
    return 'code' in archive ? [`${agent.path}: ${archive.message}`] : archiveProblems(agent, archive);
  });
  problems.forEach(tell);
  return problems.length > 0 ? exitFailed : exitDone;
}

async function checkAll(settings: Settings, { json }: CheckFlags): Promise<number> {
  const { agents, problems } = await readAgentsFolder(settings);
  const checked = await checkAgents(settings, agents);
  if (json === true) await printJson({ agents: checked.map(agentForJson), problems });
  else {
    for (const each of checked) await printLines([...describeAgent(each), '']);
    for (const problem of problems) tell(formatProblem(problem));
    await printLines(settings.config.notes.map((note) => `note: ${note}`));
    if (agents.length === 0 && problems.length === 0) tell(noAgents(settings.agentsFolder));
    else
      await printLines([
        `${formatCounted(agents.length, 'agent')} ok, ${formatCounted(problems.length, 'problem')}`,
      ]);
  }
  const code = tellArchiveProblems(checked);
  return problems.length > 0 || agents.length === 0 ? exitFailed : code;
}

/** Checks the writer of a reader's configuration, and prints the agents and records that it has. */
async function checkReader(reader: ReaderConfig, { json }: CheckFlags): Promise<number> {
  const { writer } = reader;
  const client = await openWriterClient(reader);
  const agents: { name: string; records: number; farRecords: number }[] = [];
  try {
    const workers = new WorkerPool(0);
    const archive = await openReader({ writer: client, cluster: undefined, lagMsMax: reader.lagMs, workers });
    const { served } = await archive.agents();
    for (const name of served.toSorted()) agents.push({ name, ...(await archive.counts(name)) });
  } finally {
    client.close();
  }
  if (json === true) await printJson({ writer, agents });
  else
    await printLines([
      `reader of the writer ${writer}, which serves these agents:`,
      ...agents.map(
        ({ name, records, farRecords }) =>
          `  ${name}: ${formatCounted(records, 'record')}, ${formatCount(farRecords)} of them in the far tier`,
      ),
    ]);
  return exitDone;
}

/** Runs `logstrata check`: checks the agents' files, or shows what lines or files would become. */
export async function check(flags: CheckFlags, name?: string): Promise<number> {
  const { line, file, json = false } = flags;
  const needsAgent = line !== undefined ? 'line' : file !== undefined ? 'file' : undefined;
  if (needsAgent !== undefined && name === undefined) {
    throw new UsageError(
      `--${needsAgent} needs the name of an agent`,
      `For example: logstrata check nginx --${needsAgent} "…"`,
    );
  }
  if (line !== undefined && file !== undefined)
    throw new UsageError('--line and --file cannot be combined: give a line or files');
  const settings = await readSettings(flags);
  const { reader } = settings.config.server;
  if (name === undefined) return reader === null ? checkAll(settings, flags) : checkReader(reader, flags);
  const agent = await chooseAgent(settings, name);
  if (line !== undefined) return describeLineOf(agent, line, settings, json);
  if (file !== undefined) return checkFiles(agent, file, settings, json);
  const checked = await checkAgents(settings, [agent]);
  if (json) await printJson(agentForJson(checked[0]!));
  else await printLines(describeAgent(checked[0]!));
  return tellArchiveProblems(checked);
}

/** Widths in columns of cells with texts from files, chosen so that a line has at most 80. */
const cellWidth = { field: 15, column: 15, stored: 18, read: 18 } as const;

/** Maximum number of problems that are listed. */
const problemsShownMax = 20;

/** Examines the files of an agent's archive, and shows progress. */
export async function checkArchive(
  agent: AgentDefinition,
  archive: ArchiveInput,
  settings: Settings,
): Promise<ArchiveReport> {
  return withProgress(`reading the archive of ${agent.name}`, ({ onFiles }) =>
    withObjects(settings, false, (objects) =>
      reportArchive(agent, archive, settings.dataFolder, objects, onFiles),
    ),
  );
}

/** The report as lines for people. */
export function describeArchiveReport(agent: AgentDefinition, report: ArchiveReport): string[] {
  const { formats, version, rows, columns, keys } = report;
  const counts = formats.map(
    ({ format, files, bytes }) => `${formatCounted(files, 'file')} of ${format}, ${formatBytes(bytes)}`,
  );
  const rowCount = rows === null || formats.length === 0 ? '' : `, ${formatCounted(rows, 'row')}`;
  return linesOf(
    `archive: ${counts.length === 0 ? 'no file found' : `${counts.join('; ')}${rowCount}`}`,
    version !== undefined && `the table is at ${version}`,
    report.renamed.map((message) => `note: ${message}`),
    keys.length > 0 && `folder names give the fields ${keys.join(', ')}`,
    columns.length > 0 && [...describePlacing(columns), ...columnTable(columns)],
    agent.archive?.infersFields === true &&
      columns.length > 0 && ['the same as a list, for the agent file:', ...fieldsYaml(columns)],
  );
}

function describePlacing(columns: readonly InferredColumn[]): string[] {
  const placing = columns.find(({ field }) => field.type === 'time');
  if (placing !== undefined) return [`rows are ordered by the field ${placing.field.name}`];
  const numbers = columns.filter(({ field }) => isNumber(field.type));
  const likely = likelyTimes(columns);
  return linesOf(
    'no field is of type time: rows are ordered by when they are attached',
    numbers.length > 0 &&
      'If a column of numbers is the time, list the fields and give its unit: s, ms, us or ns',
    likely.some(({ format }) => format !== undefined) &&
      'If a column of texts is the time, list the fields and give its format',
    likely.map(({ name, column, unit, format }) => {
      const how = unit === undefined ? `timestamp: { format: ${yamlText(format!)} }` : `unit: ${unit}`;
      return `  - { name: ${name}, type: time, source: ${yamlText(column)}, ${how} }`;
    }),
  );
}

/** The columns of numbers and texts that seem to be times, as fields. */
export function likelyTimes(columns: readonly InferredColumn[]): InferredField[] {
  return columns.flatMap(({ field, variants }) => {
    const { unit, format } = timesIn(variants);
    return unit === undefined && format === undefined ? [] : [{ ...field, type: 'time', unit, format }];
  });
}

function columnTable(columns: readonly InferredColumn[]): string[] {
  const rows = columns.flatMap(({ field, variants }) => {
    const column = field.column === field.name ? '' : cutEndToWidth(field.column, cellWidth.column);
    const first = [cutEndToWidth(field.name, cellWidth.field), field.type, column];
    const unit = field.unit === undefined ? '' : ` in ${field.unit}`;
    if (variants.length === 0) return [[...first, '', '']];
    return variants.map(({ stored, way, reason }, i) => [
      ...(i === 0 ? first : ['', '', '']),
      cutEndToWidth(`${stored}${unit}`, cellWidth.stored),
      cutEndToWidth(reason === '' ? way : `${way}: ${reason}`, cellWidth.read),
    ]);
  });
  return formatTable(['field', 'type', 'column', 'stored as', 'read'], rows);
}

/** The problems of the files, one line each; of many, the first ones and the number of the others. */
export function archiveProblems({ path }: AgentDefinition, report: ArchiveReport): string[] {
  const lines = [
    ...[...report.fieldProblems, ...report.leftOut].map((message) => `${path}: ${message}`),
    ...report.problems.map(({ message }) => message),
  ];
  const more = lines.length - problemsShownMax;
  if (more <= 0) return lines;
  return [...lines.slice(0, problemsShownMax), `… and ${formatCounted(more, 'problem')} more`];
}

/** Width of the output in columns. */
const columns = 80;
const nameWidth = 18;
const valueWidth = 24;

/**
 * Parses whole files by an agent's definition, and prints what they would become. Stores nothing. Returns exit code 1 where a line would be
 * rejected. Throws `invalid` for an agent that reads no lines.
 */
export async function checkFiles(
  agent: AgentDefinition,
  patterns: readonly string[],
  settings: Settings,
  asJson: boolean,
): Promise<number> {
  if (agent.fields.length === 0 || (agent.file === undefined && agent.archive?.lines === undefined)) {
    throw new LogstrataError('invalid', `agent ${agent.name} reads no lines`);
  }
  const files = await expandFiles(patterns);
  const workers = new WorkerPool(workersDefault());
  const trials: FileTrial[] = [];
  try {
    for (const path of files) {
      const trial = await withProgress(path, (progress) =>
        tryFile(path, {
          definition: agent,
          timezone: settings.config.server.timezone,
          workers,
          onProgress: (fraction, records) => progress.update(fraction, formatCounted(records, 'record')),
        }),
      );
      trials.push(trial);
      if (!asJson) await printLines([...(trials.length > 1 ? [''] : []), ...describeTrial(trial)]);
    }
  } finally {
    await workers.close();
  }
  if (asJson) await printJson(trials.length === 1 ? trials[0] : trials);
  return trials.some(({ rejected }) => rejected > 0) ? exitFailed : exitDone;
}

function describeTrial(trial: FileTrial): string[] {
  const { path, contentBytes, records, rejected, unmatched, reasons, replacedBytes, fields } = trial;
  if (records + rejected === 0) return [`${path}: no lines`];
  const others =
    rejected === 0 ? 'every line matches' : `${formatCounted(rejected, 'line')} would be rejected`;
  return linesOf(
    `${path}: ${formatBytes(contentBytes)}, ${formatCounted(records, 'record')}, ${others}`,
    records > 0 && ['', ...describeTrialFields(fields, records)],
    fields.flatMap(describeUnreadable),
    replacedBytes > 0 &&
      `${formatCounted(replacedBytes, 'byte sequence')} that is not UTF-8 would become U+FFFD`,
    rejected > 0 && ['', ...describeUnmatched(unmatched, reasons)],
  );
}

function describeTrialFields(fields: readonly FieldSummary[], records: number): string[] {
  const rows = fields.map((field) => [
    cutEndToWidth(field.name, nameWidth),
    field.type,
    formatCount(field.nulls),
    describeValues(field, records),
  ]);
  const lines = formatTable(['field', 'type', 'nulls', 'values'], rows, [2]);
  return lines.map((line) => cutEndToWidth(line, columns));
}

/** Describes the values of a field: a range for numbers and times, and the most frequent values. */
function describeValues(field: FieldSummary, records: number): string {
  const { min, max, frequent, distinct, type, nulls } = field;
  const shown = (value: bigint | number | string): string =>
    cutEndToWidth(showValue(type, value), valueWidth);
  const [first] = frequent;
  if (first === undefined) return nulls === records ? 'none' : 'no frequent value';
  if (distinct === 1) return `always ${shown(first.value)}`;
  const range =
    min !== null &&
    max !== null &&
    typeFacts[type].isBits !== true &&
    `${bound(type, min)} to ${bound(type, max)}`;
  if (type === 'time' && range !== false) return range;
  // Values that hardly ever repeat are not worth listing.
  const often = frequent.filter(({ count }) => count * 200 >= records && count > 1);
  const most = often.map(({ value, count }) => {
    const share = Math.round((count * 100) / records);
    return `${shown(value)} ${share === 0 ? '<1' : share}%`;
  });
  const parts = linesOf(
    range,
    most,
    most.length === 0 && distinct !== null && distinct !== records && `${formatCount(distinct)} different`,
    most.length === 0 &&
      range === false &&
      distinct === records &&
      `all different, such as ${shown(first.value)}`,
  );
  return parts.length === 0 ? `such as ${shown(first.value)}` : parts.join(', ');
}

function bound(type: FieldSummary['type'], value: bigint | number): string {
  return type === 'time' ? formatTime(Number(value)) : String(value);
}

function describeUnreadable({ name, type, unreadable, example }: FieldSummary): string[] {
  if (unreadable === 0) return [];
  const text = cutEndToWidth(JSON.stringify(example ?? ''), valueWidth);
  return [
    `note: ${formatCounted(unreadable, 'value')} of ${name} would be null: not of type ${type}, such as ${text}`,
  ];
}

function describeUnmatched(unmatched: FileTrial['unmatched'], reasons: FileTrial['reasons']): string[] {
  const counts = reasons
    .slice(0, 5)
    .map(({ reason, lines }) => `${formatCount(lines)} × ${cutEndToWidth(reason, columns - 12)}`);
  return [
    ...counts,
    'the first rejected lines:',
    ...unmatched.flatMap(({ line, reason, text }) => [
      `  line ${formatCount(line)}: ${cutEndToWidth(oneLine(text), columns - 10 - formatCount(line).length)}`,
      ...(reasons.length > 1 ? [`    ${cutEndToWidth(reason, columns - 4)}`] : []),
    ]),
  ];
}

const indent = '  ';

function describeValue({ type, value, unreadable }: DescribedField): string {
  return value === null && !unreadable ? 'null (not in the line)' : showValue(type, value);
}

function describeRecord({ fields, parsed }: LineDescription & { outcome: 'record' }): string[] {
  const screen = screenWidth();
  const table = (header: readonly string[], rows: readonly (readonly string[])[]): string[] =>
    formatTable(header, rows, [], screen && screen - indent.length).map((line) => indent + line);
  return [
    'The line parses into',
    ...table(
      ['part', 'text'],
      parsed.map(({ name, text }) => [name, text === null ? '(did not match)' : showValue('string', text)]),
    ),
    '',
    'and is stored as',
    ...table(
      ['field', 'type', 'value'],
      fields.map((field) => [field.name, field.type, describeValue(field)]),
    ),
    ...fields
      .filter(({ unreadable }) => unreadable)
      .map(
        ({ name, type, text }) =>
          `note: ${name} can't be read as ${type === 'int' ? 'an int' : `a ${type}`}, so it is null. Its text is ${printable(JSON.stringify(text))}`,
      ),
  ];
}

/**
 * Prints what a line, or a record of several lines, would become. Uses the decoder of `load`. `-` reads the text from standard input.
 * Returns exit code 1 where the line would be rejected.
 */
export async function describeLineOf(
  agent: AgentDefinition,
  text: string,
  settings: Settings,
  asJson: boolean,
): Promise<number> {
  const line = text === '-' ? await readStandardInput() : text;
  const description = describeLine(agent, line, { timezone: settings.config.server.timezone, now: Date.now });
  const code = description.outcome === 'rejected' ? exitFailed : exitDone;
  if (asJson) {
    await printJson(description);
    return code;
  }
  await printLines(describeText(description, agent));
  return code;
}

function describeText(description: LineDescription, { file }: AgentDefinition): string[] {
  const { outcome, continues } = description;
  if (outcome === 'blank') return ['A blank line: it is skipped, neither stored nor rejected.'];
  return linesOf(
    outcome === 'record'
      ? describeRecord(description)
      : linesOf(
          `The line would be rejected: ${description.reason}`,
          file?.regex !== undefined && `The pattern is ${file.regex}`,
        ),
    description.outcome === 'record' &&
      description.records > 1 &&
      `note: the text has ${description.records} records; this is the first`,
    continues &&
      'note: multiline.start does not match this line, so in a log it continues the record before it',
  );
}

/** Reads a line from standard input. Throws `limit` where it is longer than a line of a log may be. */
async function readStandardInput(): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > lineBytesMax + 2) {
      throw new LogstrataError('limit', `standard input has more than one line of ${lineBytesMax} bytes`);
    }
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** Maximum number of names that are shown. */
const shownMax = 3;

/** What `file.path` matches at present. */
export interface PathReport {
  /** Why the folder can't be read; null where it can. */
  readonly problem: string | null;
  /** Names that match as they are, in natural order (numbers by value). */
  readonly logs: readonly string[];
  /** Number of names that match once the endings of rotation and compression are removed. */
  readonly rotated: number;
  /** Names of both kinds that the current user may not read, and such folders. */
  readonly unreadable: readonly string[];
  /**
   * Where nothing matches because the name was written as a shell pattern such as `app-*.log`: the pattern, and the regular expression to
   * write instead. Else null.
   */
  readonly shellPattern: { readonly pattern: string; readonly expression: string } | null;
}

/** Examines the folders of an agent's logs. */
export async function checkPath(file: FileInput): Promise<PathReport> {
  let found: Survey;
  try {
    readdirSync(file.directory);
    found = await surveyOf(file);
  } catch (error) {
    const { message } = describeSystemError(error, file.directory);
    return { problem: message, logs: [], rotated: 0, unreadable: [], shellPattern: null };
  }
  const { appeared, failures } = found;
  const inOrder = appeared.toSorted((a, b) =>
    a.name.name.localeCompare(b.name.name, 'en', { numeric: true }),
  );
  const unreadable = inOrder.filter(({ path }) => !isReadable(path));
  return {
    problem: null,
    logs: inOrder.filter(({ name }) => name.direct).map(({ name }) => name.name),
    rotated: inOrder.filter(({ name }) => !name.direct).length,
    unreadable: [...unreadable.map(({ name }) => name.name), ...failures.map(({ path }) => path)],
    shellPattern: appeared.length === 0 ? await shellPatternFor(file) : null,
  };
}

function surveyOf(file: FileInput): Promise<Survey> {
  return new AgentFiles(realLogFiles, file.directory, new LogNames(file), undefined).survey(Date.now());
}

async function shellPatternFor(file: FileInput): Promise<PathReport['shellPattern']> {
  const pattern = file.namePattern;
  const expression = expressionOfShellPattern(pattern);
  if (expression === undefined) return null;
  const { appeared } = await surveyOf({ ...file, namePattern: expression });
  return appeared.length > 0 ? { pattern, expression } : null;
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** The report as lines for people. */
export function describePath({ problem, logs, rotated, unreadable, shellPattern }: PathReport): string[] {
  if (problem !== null) return [`note: ${problem}; a server waits for it`];
  if (shellPattern !== null)
    return [
      'note: no file there matches: the name in path is a regular expression.',
      `      ${shellPattern.pattern} of a shell is written ${shellPattern.expression} here`,
    ];
  const denied =
    unreadable.length > 0 &&
    `note: this user has no permission to read ${namesOf(unreadable)}; a server that runs as this user has none either`;
  if (logs.length + rotated === 0)
    return linesOf('note: no file there matches; a server waits for one', denied);
  const generations = formatCounted(rotated, 'rotated one');
  const rest = rotated === 0 ? '' : logs.length === 0 ? generations : `, and ${generations}`;
  return linesOf(`there ${logs.length + rotated === 1 ? 'is' : 'are'} ${namesOf(logs)}${rest}`, denied);
}

function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, shownMax).join(', ');
  return names.length > shownMax ? `${formatCount(names.length)} files: ${shown}, …` : shown;
}
