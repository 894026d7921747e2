import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { RE2JS } from 're2js';
import { lineBytesMax, LogstrataError } from '../../engine/index.js';
import { byteSizeShape, parseByteSize, parseDuration, durationShape, within } from './quantities.js';
import {
  containerParts,
  isOfContainers,
  isTable,
  type FileInput,
  type LineFormat,
  type Multiline,
  type Rotation,
  type SystemInput,
} from './definition.js';
import { LinePattern, startInstructionsMax } from './line-pattern.js';
import {
  expressionOfFolder,
  expressionOfShellPattern,
  kindOfFolder,
  pathComponents,
} from './file-captures.js';
import { isWithin, ownFilesReason, realPlace } from '../sources/paths.js';
import type { YamlSection } from './yaml.js';

/** The keys that say how lines are read. */
export const lineKeys = [
  'payload',
  'regex',
  'multiline',
  'records',
  'columns',
  'separator',
  'decimal',
  'encoding',
  'otherwise',
  'skip',
  'mask',
  'strip',
  'trim',
] as const;

/** The formats of lines. */
export const lineFormats = ['plain', 'json', 'logfmt', 'otlp', 'docker', 'cri', 'csv', 'tsv', 'w3c'] as const;

const fileKeys = ['path', 'format', ...lineKeys, 'rotate'];

/** Result of reading the `file` section. */
export interface ReadFileInput {
  /** Undefined where the section is invalid; the problems are then on the list. */
  readonly input: FileInput | undefined;
  /** The parsed fields that lines and file names provide; undefined where that is not known: for JSON, logfmt, or an invalid pattern. */
  readonly sources: readonly string[] | undefined;
  readonly rotate: Rotation | undefined;
}

/** Reads the `file` section: where lines come from, and their format. */
export function readFileInput(root: YamlSection, dataFolder: string | undefined): ReadFileInput | undefined {
  const section = root.section('file', fileKeys);
  if (section === undefined) return undefined;
  const rotate = readRotation(section);
  const place = readPath(section, dataFolder);
  const format = section.has('format') ? section.oneOf('format', lineFormats) : 'plain';
  const lines = readLineFormat(section, format);
  const nameCaptures = place?.captures;
  const known = lines.sources !== undefined && nameCaptures !== undefined;
  const sources = known ? [...new Set([...lines.sources, ...nameCaptures])] : undefined;
  if (lines.format === undefined || place === undefined) return { input: undefined, sources, rotate };
  const { captures: _, ...names } = place;
  return { input: { ...names, ...lines.format }, sources, rotate };
}

/** Reads the line format from the keys `lineKeys` of a section, and the parsed fields that the lines provide. */
export function readLineFormat(
  section: YamlSection,
  format: LineFormat['format'] | undefined,
): { readonly format: LineFormat | undefined; readonly sources: readonly string[] | undefined } {
  const regex = section.text('regex');
  const captures = regex === undefined ? undefined : readCaptures(section, 'regex', regex);
  if (format === 'plain' && !section.has('regex')) {
    section.missing('regex', "the format plain needs a regex, such as '^(?P<time>[^ ]+) (?P<message>.*)$'");
  }
  const ofContainers = format !== undefined && isOfContainers({ format });
  const payload = section.has('payload') ? section.oneOf('payload', ['plain', 'json', 'logfmt']) : 'plain';
  if (format !== undefined && !ofContainers && section.has('payload'))
    section.problem('payload', 'payload is only for the formats docker and cri');
  const textFormat = ofContainers ? payload : format;
  if (textFormat !== undefined && textFormat !== 'plain' && regex !== undefined) {
    section.problem(
      'regex',
      `regex is only for the format plain; lines of ${textFormat} name their fields themselves`,
    );
  }
  const values = readValues(section, format);
  const multiline = values === undefined ? readMultiline(section) : undefined;
  if (format === 'otlp' && multiline !== undefined)
    section.problem('multiline', 'multiline is not for the format otlp: its lines are whole');
  const table = readTable(section, format);
  if (format === undefined) return { format, sources: undefined };
  const otherwise = section.text('otherwise');
  const own = ofContainers && regex === undefined ? [] : captures;
  const attributes = format === 'docker' ? ['container.attrs.NAME'] : [];
  const given = ofContainers ? [...containerParts, ...attributes] : [];
  if (otherwise !== undefined) given.push(otherwise);
  const named = textFormat === 'plain' ? own : table.columns;
  const sources = named === undefined ? undefined : [...named, ...given];
  const prepared = { otherwise, ...readPreparing(section) };
  const texts = { payload: ofContainers ? payload : undefined, regex, multiline, values };
  return {
    format: { format, ...texts, ...table, ...prepared },
    sources,
  };
}

/** Reads how the rows of a table are written. */
function readTable(
  section: YamlSection,
  format: LineFormat['format'] | undefined,
): Pick<LineFormat, 'columns' | 'separator' | 'decimal'> {
  const of = (
    key: (typeof lineKeys)[number],
    formats: readonly LineFormat['format'][],
    why: string,
  ): void => {
    if (section.has(key) && format !== undefined && !formats.includes(format))
      section.problem(key, `${key} is only for the format ${formats.join(' and ')}; ${why}`);
  };
  of('columns', ['csv', 'tsv'], 'other formats have the names in their lines, or in the regex');
  of('separator', ['csv'], 'tsv has tabs, and w3c says itself what it has');
  of('decimal', ['csv'], 'other formats write numbers with a point');
  if (format !== undefined && isTable({ format }) && section.has('multiline'))
    section.problem(
      'multiline',
      `multiline is not for tables; in csv, quotation marks keep the lines of a value together`,
    );
  const columns = section.texts('columns');
  const twice = columns?.find((name, i) => columns.indexOf(name) < i);
  if (section.has('columns') && (columns?.length === 0 || twice !== undefined))
    section.problem(
      'columns',
      twice === undefined
        ? 'columns is empty: name at least one'
        : `columns has ${JSON.stringify(twice)} twice`,
    );
  const separator = section.parsed('separator', "one ASCII character, such as ';' or '\\t'", (text) =>
    text === '\\t' ? '\t' : /^[\t !#-~]$/.test(text) ? text : undefined,
  );
  const decimal = section.oneOf('decimal', [',', '.']);
  if (decimal === ',' && section.has('format') && (separator ?? ',') === ',' && format === 'csv')
    section.problem('decimal', "decimal is also the separator: add separator: ';'");
  return { columns, separator, decimal: decimal === '.' ? undefined : decimal };
}

/** A record normally ends when the next one begins. An exception and its stack trace are written at once, so one second is ample. */
const multilineTimeoutMs = { default: 1000, min: 1, max: 3_600_000 };

/** The stack traces of deep recursion have some thousand lines. */
const multilineLines = { default: 2000, min: 1, max: 1_000_000 };

const encodings = ['utf-16le', 'utf-16be', 'latin1', 'windows-1252'] as const;

/** Reads what happens to a line before it is parsed. */
function readPreparing(section: YamlSection): Omit<LineFormat, 'format'> {
  const skip = section.text('skip');
  if (skip !== undefined) readCaptures(section, 'skip', skip);
  const mask = section.texts('mask');
  for (const pattern of mask ?? []) readCaptures(section, 'mask', pattern);
  if (mask?.length === 0) section.problem('mask', 'mask must be a pattern, or a list of them');
  const encoding = section.oneOf('encoding', encodings);
  return { encoding, skip, mask, strip: section.oneOf('strip', ['ansi']), trim: section.boolean('trim') };
}

/** Reads `multiline: json` and `records`: values of JSON, whatever the lines. Undefined where neither is there. */
function readValues(section: YamlSection, format: LineFormat['format'] | undefined): LineFormat['values'] {
  const isWord = section.scalar('multiline')?.toLowerCase() === 'json';
  const records = section.text('records');
  if (!isWord && records === undefined) return undefined;
  const key = isWord ? 'multiline' : 'records';
  if (format !== undefined && format !== 'json')
    section.problem(key, `${isWord ? 'multiline: json' : key} is only for the format json`);
  if (!isWord && section.has('multiline'))
    section.problem('multiline', 'multiline can only be json where there is "records"');
  const path = records?.split('.') ?? [];
  if (path.some((name) => name === ''))
    section.problem('records', 'records must be a key, or keys joined by dots, such as Records');
  return { records: path };
}

/** Reads `file.multiline`: which lines begin a record. */
function readMultiline(file: YamlSection): Multiline | undefined {
  const section = file.section('multiline', ['start', 'timeout', 'max_lines', 'max_bytes']);
  if (section === undefined) return undefined;
  const start = section.text('start');
  if (start !== undefined) readCaptures(section, 'start', start, startInstructionsMax);
  else if (!section.has('start'))
    section.missing(
      'start',
      "an expression that finds the first line of a record, such as '^\\d{4}-\\d\\d-\\d\\d '",
    );
  const { min, max } = multilineTimeoutMs;
  const timeoutMs = section.parsed(
    'timeout',
    `${durationShape}, from 1ms to 1h`,
    within(parseDuration, min, max),
  );
  const linesMax = section.integer('max_lines', multilineLines);
  const bytesMax = section.parsed(
    'max_bytes',
    `${byteSizeShape}, at most 1mb`,
    within(parseByteSize, 1, lineBytesMax),
  );
  return {
    start: start ?? '',
    timeoutMs: timeoutMs ?? multilineTimeoutMs.default,
    linesMax: linesMax ?? multilineLines.default,
    bytesMax: bytesMax ?? lineBytesMax,
  };
}

/** Where the files of an agent are, and the names that their path captures; these are undefined where an expression is invalid. */
type ReadPath = Pick<FileInput, 'directory' | 'folderPatterns' | 'namePattern'> & {
  readonly captures: readonly string[] | undefined;
};

/** Reads `file.path`: folders, of which those from the first pattern on may vary, and an expression for file names. */
function readPath(section: YamlSection, dataFolder: string | undefined): ReadPath | undefined {
  const path = section.text('path');
  if (path === undefined) {
    if (!section.has('path'))
      section.missing('path', "a folder and an expression for file names, such as '/var/log/app/.*\\.log'");
    return undefined;
  }
  const folders = pathComponents(path);
  const written = folders.pop()!;
  if (written === '') {
    section.problem(
      'path',
      `path must end with an expression for file names, not with "/": ${JSON.stringify(path)}`,
    );
    return undefined;
  }
  const first = folders.findIndex((each) => kindOfFolder(each) !== 'literal');
  const varying = first < 0 ? [] : folders.splice(first);
  const directory = resolve(section.folder, folders.length === 0 ? '.' : `${folders.join('/')}/`);
  if (dataFolder !== undefined && isWithin(realPlace(directory), realPlace(dataFolder))) {
    const message = `path is inside the data folder ${dataFolder}: ${ownFilesReason}`;
    section.problem('path', message);
  }
  const namePattern = (isExpression(written) ? undefined : expressionOfShellPattern(written)) ?? written;
  if (varying.length === 0)
    return { directory, namePattern, captures: readCaptures(section, 'path', namePattern) };
  if (varying.includes('..'))
    section.problem('path', 'path must not have ".." after the first folder that is a pattern');
  noteLiteral(section, directory, varying);
  const folderPatterns = varying.filter((each) => each !== '' && each !== '.').map(expressionOfFolder);
  const read = [...folderPatterns, namePattern].map((each) => readCaptures(section, 'path', each));
  const captures = read.some((each) => each === undefined) ? undefined : read.flatMap((each) => each ?? []);
  const twice = captures?.find((name, i) => captures.indexOf(name) < i);
  if (twice !== undefined) section.problem('path', `path captures ${twice} more than once`);
  return { directory, folderPatterns, namePattern, captures };
}

function isExpression(text: string): boolean {
  try {
    RE2JS.compile(text);
    return true;
  } catch {
    return false;
  }
}

/** Notes folders whose names are the patterns themselves: folders in a path were once taken literally. */
function noteLiteral(section: YamlSection, directory: string, varying: readonly string[]): void {
  varying.forEach((name, i) => {
    if (kindOfFolder(name) === 'literal' || !existsSync(resolve(directory, ...varying.slice(0, i + 1))))
      return;
    const message = `${JSON.stringify(name)} in path is a pattern for names of folders, although there is a folder with this very name; for that folder alone, write ${RE2JS.quote(name)}`;
    section.note(message, 'path');
  });
}

/** The names of an expression's captures; undefined, and a problem on the list, for one that is invalid or too large. */
function readCaptures(
  section: YamlSection,
  key: string,
  pattern: string,
  instructionsMax?: number,
): readonly string[] | undefined {
  try {
    return new LinePattern(pattern, undefined, instructionsMax).groupNames;
  } catch (error) {
    if (!(error instanceof LogstrataError)) throw error;
    section.problem(key, `${key} is ${error.message}`);
    return undefined;
  }
}

/** Reads `file.rotate`: when and how a log is rotated once it is stored. */
function readRotation(file: YamlSection): Rotation | undefined {
  const section = file.section('rotate', ['method', 'size', 'max_size', 'run']);
  if (section === undefined) return undefined;
  const method = section.oneOf('method', ['truncate', 'rename']);
  if (!section.has('method')) section.missing('method', 'truncate or rename');
  const sizeBytes = section.byteSize('size');
  const olderBytes = section.byteSize('max_size');
  if (section.has('size') && section.has('max_size')) {
    section.problem('max_size', 'max_size is the old name of size: keep only one of them');
  }
  if (!section.has('size') && !section.has('max_size'))
    section.note('file.rotate has no size, so nothing is rotated');
  const run = section.text('run');
  if (method === undefined) return undefined;
  const rotation = { method, sizeBytes: sizeBytes ?? olderBytes ?? null };
  return run === undefined || run === '' ? rotation : { ...rotation, run };
}

const systemIntervalDefaultMs = 60_000;

/** Some figures come from other programs, which take tens of milliseconds. */
const systemIntervalMinMs = 1000;

/** Reads `system`: which figures of this machine to take, and how often. */
export function readSystem(root: YamlSection): SystemInput | undefined {
  const section = root.section('system', ['interval', 'disk', 'net', 'disk_path']);
  if (section === undefined) return undefined;
  const interval = section.parsed(
    'interval',
    `${durationShape}, and at least 1s`,
    within(parseDuration, systemIntervalMinMs),
  );
  const disk = section.section('disk', ['path']);
  const olderPath = section.text('disk_path');
  if (olderPath !== undefined)
    section.note(`system.disk_path is the older way to write "disk: { path: ${olderPath} }"`);
  if (olderPath !== undefined && disk !== undefined) {
    section.problem('disk_path', 'disk_path is the old name of disk.path: keep only one of them');
  }
  const net = section.section('net', ['interface']);
  const diskPath = disk === undefined ? olderPath : (disk.text('path') ?? '/');
  return {
    intervalMs: interval ?? systemIntervalDefaultMs,
    ...(diskPath === undefined ? {} : { disk: { path: resolve(section.folder, diskPath) } }),
    ...(net === undefined ? {} : { net: { interface: net.text('interface') ?? 'default' } }),
  };
}
