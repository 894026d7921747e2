import { readdirSync, statSync, type Stats } from 'node:fs';
import { basename, join } from 'node:path';
import { type FieldDefinition, hasColumns, type AgentDefinition } from './definition.js';
import {
  type FieldType,
  fileSystemError,
  isAgentName,
  LogstrataError,
  nearName,
  type Schema,
} from '../../engine/index.js';
import { readFields, type FieldInputs } from './agent-fields.js';
import { readFileInput, readSystem } from './agent-input.js';
import { readArchiveInput } from './archive-input.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { readRetention } from './retention-input.js';
import { isUndated, timestampProblem } from '../../engine/times/timestamp.js';
import {
  type Place,
  joinNames,
  ProblemList,
  readConfigText,
  readRootSection,
  type YamlSection,
} from './yaml.js';

const machine: readonly (readonly [string, FieldType])[] = [
  ['time', 'time'],
  ['uptime', 'int'],
  ['la_1', 'float'],
  ['la_5', 'float'],
  ['la_15', 'float'],
  ['cpu_usage', 'float'],
  ['cpu_cores', 'int'],
  ['mem_usage', 'float'],
  ['mem_total', 'int'],
];

const disk: readonly (readonly [string, FieldType])[] = [
  ['disk_dev', 'string'],
  ['disk_usage', 'float'],
  ['disk_total', 'int'],
  ['disk_read_bytes', 'int'],
  ['disk_write_bytes', 'int'],
];

const net: readonly (readonly [string, FieldType])[] = [
  ['net_if', 'string'],
  ['net_rx_bytes', 'int'],
  ['net_tx_bytes', 'int'],
  ['net_rx_packets', 'int'],
  ['net_tx_packets', 'int'],
  ['net_rx_errors', 'int'],
  ['net_tx_errors', 'int'],
  ['net_rx_dropped', 'int'],
  ['net_tx_dropped', 'int'],
];

/** The fields that a `system` agent can report, in the order of its records where its file lists no fields. */
function systemFields(reports: { readonly disk: boolean; readonly net: boolean }): FieldDefinition[] {
  const rows = [...machine, ...(reports.disk ? disk : []), ...(reports.net ? net : [])];
  return rows.map(([name, type]) => ({ name, type, source: name }));
}

/** The valid agents of a folder, and the problems of the others. */
export interface AgentsFolder {
  readonly agents: readonly AgentDefinition[];
  readonly problems: readonly ConfigProblem[];
}

const filePattern = /^(.+)\.(yaml|yml)$/;

/**
 * Reads every `.yaml` and `.yml` file of a folder, except names that begin with a dot. An invalid file does not affect the
 * others. Throws `not_found` or `io` when the folder itself can't be read.
 *
 * @param dataFolder data folder of the archive, which must not contain an agent's logs
 */
export function readAgents(directory: string, dataFolder?: string): AgentsFolder {
  const agents: AgentDefinition[] = [];
  const problems: ConfigProblem[] = [];
  const files = listAgentFiles(directory);
  const names = files.map((file) => agentNameOf(file));
  files.forEach((file, i) => {
    const path = join(directory, file);
    if (names.indexOf(names[i]!) !== names.lastIndexOf(names[i]!)) {
      const other = files.find((candidate, k) => k !== i && names[k] === names[i])!;
      const message = `${file} and ${other} both define the agent "${names[i]!}": remove one of them`;
      problems.push({ file: path, line: 1, column: 1, message });
      return;
    }
    try {
      requireRegularFile(path);
      agents.push(readAgentFile(path, dataFolder));
    } catch (error) {
      if (error instanceof ConfigError) problems.push(...error.problems);
      else if (error instanceof LogstrataError)
        problems.push({ file: path, line: 1, column: 1, message: error.message });
      else throw error;
    }
  });
  return { agents, problems };
}

function listAgentFiles(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code === 'ENOENT') {
      const advice =
        '"logstrata agent new <name> --log <file>" creates it, with an agent for a log; or name another folder with --agents';
      throw new LogstrataError('not_found', `the agents folder ${directory} is not there: ${advice}`, {
        path: directory,
        cause,
      });
    }
    if (code !== 'ENOTDIR') throw fileSystemError(cause, 'list the agents folder', directory);
    throw new LogstrataError('io', `the agents folder ${directory} is not a folder`, {
      path: directory,
      cause,
    });
  }
  const files = names.filter((name) => !name.startsWith('.') && filePattern.test(name));
  return files.filter((name) => !isFolder(join(directory, name))).sort();
}

function isFolder(path: string): boolean {
  return statsOf(path)?.isDirectory() === true;
}

/** Reading a named pipe would wait for a program that writes to it. */
function requireRegularFile(path: string): void {
  if (statsOf(path)?.isFile() !== false) return;
  throw new LogstrataError('invalid', 'it is a named pipe or a device, where a file was expected', { path });
}

/** Null for a path that can't be inspected, such as a broken link; reading it then reports the error. */
function statsOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

function agentNameOf(path: string): string {
  return basename(path).replace(/\.ya?ml$/, '');
}

/** Reads one agent's file. Throws a `ConfigError` with all problems in it, `not_found` or `io`. */
export function readAgentFile(path: string, dataFolder?: string): AgentDefinition {
  return parseAgentFile(readConfigText(path), path, dataFolder);
}

/** Parses the text of an agent's file. `path` gives its name, and the folder that a relative `file.path` starts from. */
export function parseAgentFile(text: string, path: string, dataFolder?: string): AgentDefinition {
  const problems = new ProblemList(path);
  const name = agentNameOf(path);
  if (!isAgentName(name)) {
    const rule = '1 to 128 letters, digits, ".", "_" and "-", and begins with a letter or a digit';
    problems.add(
      { line: 1, column: 1 },
      `the name of the file is the name of the agent, and ${JSON.stringify(name)} is not valid: it must have ${rule}`,
    );
  }
  const root = readRootSection(text, problems, [
    'archive',
    'fields',
    'file',
    'rejected',
    'retention',
    'system',
  ]);
  const parts = root === undefined ? undefined : readParts(root, dataFolder);
  problems.throwIfAny();
  return { name, path, ...parts!, notes: problems.notes };
}

/** Reads all sections of an agent's file. Problems are added to the section's list; the result is valid only if there are none. */
function readParts(
  root: YamlSection,
  dataFolder: string | undefined,
): Omit<AgentDefinition, 'name' | 'path' | 'notes'> {
  const file = readFileInput(root, dataFolder);
  const archive = readArchiveInput(root, dataFolder, file);
  const rejectedBytesMax = root.section('rejected', ['max_bytes'])?.byteSize('max_bytes');
  const system = readSystem(root);
  const withColumns = hasColumns(archive?.input);
  const reported =
    system === undefined
      ? undefined
      : systemFields({ disk: system.disk !== undefined, net: system.net !== undefined });
  const sources = archive !== undefined ? archive.sources : file?.sources;
  const fields = readAgentFields(root, {
    reported,
    sources: reported === undefined ? sources : reported.map((field) => field.name),
    hasLines: file !== undefined || !withColumns,
    hasColumns: withColumns,
    mayLack: archive?.input.infersFields === true,
  });
  const schema = schemaOf(fields, withColumns);
  const retention = readRetention(root, schema);
  checkInputs(root);
  const { otherwise } = file?.input ?? archive?.input.lines ?? {};
  const reads = ({ template, source }: FieldDefinition): boolean =>
    template === undefined ? source === otherwise : template.includes(otherwise!);
  if (otherwise !== undefined && !fields.some(reads))
    root.problem(
      file === undefined ? 'archive' : 'file',
      `otherwise is ${JSON.stringify(otherwise)}, which no field reads: name the source of a field, such as message`,
    );
  if (archive?.input.time !== undefined && !archive.input.infersFields)
    checkTimeField(root, archive.timePlace, archive.input.time, fields);
  return {
    fields,
    schema,
    file: file?.input,
    archive: archive?.input,
    retention,
    rejectedBytesMax,
    rotate: file?.rotate,
    system,
  };
}

interface AgentFieldInputs extends FieldInputs {
  /** The fields that a `system` agent reports. */
  readonly reported: readonly FieldDefinition[] | undefined;
  /** Whether the agent may have no fields, because the archive's files give them. */
  readonly mayLack: boolean;
}

function readAgentFields(root: YamlSection, inputs: AgentFieldInputs): readonly FieldDefinition[] {
  const { reported, mayLack } = inputs;
  const named = root.has('fields') ? readFields(root, inputs) : undefined;
  if (named === undefined && reported === undefined && !mayLack)
    root.missing('fields', 'an agent needs a list of at least one field, such as "- name: time"');
  if (reported === undefined) return named ?? [];
  return named?.map((field) => withoutFormat(field, root)) ?? reported;
}

/** Checks that an agent has one kind of input: lines, existing files, or figures. */
function checkInputs(root: YamlSection): void {
  for (const other of ['file', 'archive']) {
    if (!root.has(other) || !root.has('system')) continue;
    root.problem('system', `an agent has "${other}" or "system", not both: make two agents of it`);
  }
  if (root.has('file') || root.has('archive') || root.has('system')) return;
  root.missing(
    'file',
    'it says where the lines come from and how to parse them (path, format and regex). An agent for existing files has ' +
      '"archive" instead, an agent for figures of this machine "system"',
  );
}

/**
 * Checks `archive.time`. Records are placed by the first field of type time, and `archive.time` must name that field, by its
 * name or its column.
 */
function checkTimeField(
  root: YamlSection,
  place: Place,
  name: string,
  fields: readonly FieldDefinition[],
): void {
  const first = fields.find(({ type }) => type === 'time');
  const field = fields.find((each) => each.name === name) ?? fields.find(({ source }) => source === name);
  if (field !== undefined && field === first) return;
  const names = fields.filter(({ type }) => type === 'time').map((each) => each.name);
  const message =
    field === undefined
      ? `time names no field${nearName(name, names)}: the fields of type time are ${joinNames(names, 'and') || 'none'}`
      : field.type !== 'time'
        ? `time must name a field of type time, but "${name}" is of type ${field.type}`
        : `time must be the first field of type time, which is "${first!.name}": move "${name}" before it`;
  root.problem(place, message);
}

/** Removes the timestamp format from a field of a `system` agent, whose times are not text. */
function withoutFormat(field: FieldDefinition, root: YamlSection): FieldDefinition {
  const { timestamp, ...rest } = field;
  if (timestamp === undefined) return field;
  root.note(`the timestamp of "${field.name}" is ignored: figures have their time in milliseconds`);
  return rest;
}

/** The engine's schema of the fields; `withColumns` where they are also read from columns of files. */
export function schemaOf(fields: readonly FieldDefinition[], withColumns: boolean): Schema {
  return {
    fields: fields.map(({ name, type, index, source, unit, template, timestamp }) => {
      const column = template === undefined ? source : name;
      // Of times without a year, only a line tells when it was written.
      const isDated =
        timestamp !== undefined && timestampProblem(timestamp) === undefined && !isUndated(timestamp);
      const texts = isDated && unit === undefined ? timestamp : undefined;
      const isOther = withColumns && (column !== name || unit !== undefined || texts !== undefined);
      return {
        name,
        type,
        ...(index === undefined ? {} : { index }),
        ...(isOther ? { attached: { column, ...(unit === undefined ? {} : { unit }), ...texts } } : {}),
      };
    }),
  };
}
