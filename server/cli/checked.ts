import { accessSync, constants, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fieldsYaml, isNumber, unitOf, type InferredColumn } from '../../agents/archive/inferred-fields.js';
import { reportArchive, type ArchiveReport } from '../../agents/archive/archive-report.js';
import type { AgentDefinition, ArchiveInput, FileInput } from '../../agents/definition/definition.js';
import { yamlText } from '../../agents/definition/yaml.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  withProgress,
  formatTable,
  cutEndToWidth,
  formatTime,
  printJson,
  printLines,
  oneLine,
  screenWidth,
  printable,
} from './terminal.js';
import { withObjects, openWriterDoor } from './opened-archive.js';
import type { Settings } from './options.js';
import { type FieldSummary, tryFile, type FileTrial } from '../../agents/load/file-trial.js';
import { expandFiles } from '../../agents/load/load-paths.js';
import {
  answeredValue,
  LogstrataError,
  typeFacts,
  WorkerPool,
  workersDefault,
  assertNever,
  lineBytesMax,
  openReader,
  type FieldType,
} from '../../engine/index.js';
import { exitDone, exitFailed } from './failure.js';
import {
  describeLine,
  type DescribedField,
  type LineDescription,
} from '../../agents/decode/describe-line.js';
import { LogNames } from '../../agents/collect/logs/log-names.js';
import { expressionOfShellPattern } from '../../agents/definition/file-captures.js';
import { describeSystemError } from '../../agents/sources/byte-source.js';
import type { ReaderConfig } from '../../agents/definition/far-config.js';

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
  return withProgress(`reading the archive of ${agent.name}`, (progress) =>
    withObjects(settings, false, (objects) =>
      reportArchive(agent, archive, settings.dataFolder, objects, (read, files) =>
        progress.update(read / files, `${formatCount(read)} of ${formatCounted(files, 'file')}`),
      ),
    ),
  );
}

/** The report as lines for people. */
export function describeArchiveReport(agent: AgentDefinition, report: ArchiveReport): string[] {
  const { formats, rows, columns, keys } = report;
  const counts = formats.map(
    ({ format, files, bytes }) => `${formatCounted(files, 'file')} of ${format}, ${formatBytes(bytes)}`,
  );
  const rowCount = rows === null || formats.length === 0 ? '' : `, ${formatCounted(rows, 'row')}`;
  return [
    `archive: ${counts.length === 0 ? 'no file found' : `${counts.join('; ')}${rowCount}`}`,
    ...(keys.length === 0 ? [] : [`folder names give the fields ${keys.join(', ')}`]),
    ...(columns.length === 0 ? [] : [...describePlacing(columns), ...columnTable(columns)]),
    ...(agent.archive?.infersFields === true && columns.length > 0
      ? ['the same as a list, for the agent file:', ...fieldsYaml(columns)]
      : []),
  ];
}

function describePlacing(columns: readonly InferredColumn[]): string[] {
  const placing = columns.find(({ field }) => field.type === 'time');
  if (placing !== undefined) return [`rows are ordered by the field ${placing.field.name}`];
  const numbers = columns.filter(({ field }) => isNumber(field.type));
  const likely = numbers.flatMap(({ field: { name, column }, variants }) => {
    const unit = unitOf(variants);
    if (unit === undefined) return [];
    return `  - { name: ${name}, type: time, source: ${yamlText(column)}, unit: ${unit} }`;
  });
  return [
    'no field is of type time: rows are ordered by when they are attached',
    ...(numbers.length === 0
      ? []
      : ['If a column of numbers is the time, list the fields and give its unit: s, ms, us or ns']),
    ...likely,
  ];
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
  return [
    `${path}: ${formatBytes(contentBytes)}, ${formatCounted(records, 'record')}, ${others}`,
    ...(records === 0 ? [] : ['', ...describeFields(fields, records)]),
    ...fields.flatMap(describeUnreadable),
    ...(replacedBytes === 0
      ? []
      : [`${formatCounted(replacedBytes, 'byte sequence')} that is not UTF-8 would become U+FFFD`]),
    ...(rejected === 0 ? [] : ['', ...describeUnmatched(unmatched, reasons)]),
  ];
}

function describeFields(fields: readonly FieldSummary[], records: number): string[] {
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
  const { min, max, frequent, distinct, type } = field;
  if (frequent.length === 0) return field.nulls === records ? 'none' : 'no frequent value';
  if (distinct === 1) return `always ${cutEndToWidth(shown(field, frequent[0]!.value), valueWidth)}`;
  const range =
    min === null || max === null || typeFacts[type].isBits === true
      ? []
      : [`${bound(type, min)} to ${bound(type, max)}`];
  if (type === 'time') return range[0]!;
  const different = distinct === null || distinct === records ? [] : [`${formatCount(distinct)} different`];
  // Values that hardly ever repeat are not worth listing.
  const often = frequent.filter(({ count }) => count * 200 >= records && count > 1);
  const most = often.map(({ value, count }) => {
    const share = Math.round((count * 100) / records);
    return `${cutEndToWidth(shown(field, value), valueWidth)} ${share === 0 ? '<1' : share}%`;
  });
  const first =
    distinct === records
      ? [`all different, such as ${cutEndToWidth(shown(field, frequent[0]!.value), valueWidth)}`]
      : [];
  const parts = [
    ...range,
    ...(most.length > 0 ? most : range.length > 0 ? different : [...different, ...first]),
  ];
  return parts.length === 0
    ? `such as ${cutEndToWidth(shown(field, frequent[0]!.value), valueWidth)}`
    : parts.join(', ');
}

function shown({ type }: FieldSummary, value: bigint | number | string): string {
  return showValue(type, value);
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
  if (value === null && !unreadable) return 'null (not in the line)';
  return showValue(type, value);
}

function describeRecord(description: LineDescription & { outcome: 'record' }): string[] {
  const { fields, parsed } = description;
  const texts = parsed.map(({ name, text }) => [
    name,
    text === null ? '(did not match)' : printable(JSON.stringify(text)),
  ]);
  const unreadable = fields.filter((field) => field.unreadable);
  const screen = screenWidth();
  const width = screen === null ? null : screen - indent.length;
  return [
    'The line parses into',
    ...formatTable(['part', 'text'], texts, [], width).map((line) => indent + line),
    '',
    'and is stored as',
    ...formatTable(
      ['field', 'type', 'value'],
      fields.map((field) => [field.name, field.type, describeValue(field)]),
      [],
      width,
    ).map((line) => indent + line),
    ...unreadable.map(
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
  await printLines(describe(description, agent));
  return code;
}

function describe(description: LineDescription, { file }: AgentDefinition): string[] {
  switch (description.outcome) {
    case 'record':
      return [...describeRecord(description), ...continuation(description)];
    case 'blank':
      return ['A blank line: it is skipped, neither stored nor rejected.'];
    case 'rejected':
      return [
        `The line would be rejected: ${description.reason}`,
        ...(file?.regex === undefined ? [] : [`The pattern is ${file.regex}`]),
        ...continuation(description),
      ];
    default:
      return assertNever(description);
  }
}

function continuation({ continues }: LineDescription): string[] {
  if (!continues) return [];
  return ['note: multiline.start does not match this line, so in a log it continues the record before it'];
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
  /** Names of both kinds that the current user may not read. */
  readonly unreadable: readonly string[];
  /**
   * Where nothing matches because the name was written as a shell pattern such as `app-*.log`: the pattern, and the regular expression to
   * write instead. Else null.
   */
  readonly shellPattern: { readonly pattern: string; readonly expression: string } | null;
}

/** Examines the folder of an agent's logs. */
export function checkPath({ directory, namePattern }: FileInput): PathReport {
  let entries: readonly string[];
  try {
    entries = readdirSync(directory);
  } catch (error) {
    const { message } = describeSystemError(error, directory);
    return { problem: message, logs: [], rotated: 0, unreadable: [], shellPattern: null };
  }
  const names = new LogNames(namePattern);
  const found = entries.flatMap((entry) => names.read(entry) ?? []);
  const inOrder = found.toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  const unreadable = inOrder.filter(({ name }) => !isReadable(join(directory, name)));
  return {
    problem: null,
    logs: inOrder.filter(({ direct }) => direct).map(({ name }) => name),
    rotated: found.filter(({ direct }) => !direct).length,
    unreadable: unreadable.map(({ name }) => name),
    shellPattern: found.length === 0 ? shellPatternFor(namePattern, entries) : null,
  };
}

function shellPatternFor(pattern: string, entries: readonly string[]): PathReport['shellPattern'] {
  const expression = expressionOfShellPattern(pattern);
  if (expression === undefined) return null;
  const names = new LogNames(expression);
  return entries.some((entry) => names.read(entry) !== null) ? { pattern, expression } : null;
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
  if (logs.length + rotated === 0) return ['note: no file there matches; a server waits for one'];
  const generations = formatCounted(rotated, 'rotated one');
  const rest = rotated === 0 ? '' : logs.length === 0 ? generations : `, and ${generations}`;
  const there = [
    `there ${logs.length + rotated === 1 ? 'is' : 'are'} ${namesOf(logs)}${rest}`,
    ...(unreadable.length === 0
      ? []
      : [
          `note: this user has no permission to read ${namesOf(unreadable)}; a server that runs as this user has none either`,
        ]),
  ];
  return there;
}

function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, shownMax).join(', ');
  return names.length > shownMax ? `${formatCount(names.length)} files: ${shown}, …` : shown;
}

/** The agents of the writer that a reader would query, with their numbers of records. */
export interface CheckedWriter {
  readonly writer: string;
  readonly agents: readonly {
    readonly name: string;
    readonly records: number;
    readonly farRecords: number;
  }[];
}

/** Connects to the writer of a reader's configuration. Throws `unavailable` where it can't be reached or refuses. */
export async function checkWriter(reader: ReaderConfig): Promise<CheckedWriter> {
  const door = await openWriterDoor(reader);
  try {
    const workers = new WorkerPool(0);
    const archive = await openReader({ door, cluster: undefined, lagMsMax: reader.lagMs, workers });
    const agents = [];
    const { served } = await archive.agents();
    for (const name of served.toSorted()) agents.push({ name, ...(await archive.counts(name)) });
    return { writer: reader.writer, agents };
  } finally {
    door.close();
  }
}

/** A stored value for people: bool as a word, a time also as a date, a string as JSON with control characters escaped. */
export function showValue(type: FieldType, value: bigint | number | string | boolean | null): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return printable(JSON.stringify(value));
  return type === 'time' ? `${value} (${formatTime(Number(value))} UTC)` : String(answeredValue(type, value));
}
