import { resolve } from 'node:path';
import { isObjectPath, objectPlace } from '../../engine/index.js';
import { isWithin, ownFilesReason, realPlace } from '../sources/paths.js';
import { fixedBeginning, keysOfGlob } from './file-captures.js';
import { lineFormats, lineKeys, readLineFormat } from './agent-input.js';
import type { ArchiveGlob, ArchiveInput, FileInput, TableFormat } from './definition.js';
import { type Place, joinNames, type YamlSection } from './yaml.js';

const archiveKeys = [
  'path',
  'format',
  'version',
  'snapshot',
  'mode',
  'time',
  'changed',
  'missing',
  ...lineKeys,
];

const tableFormats = ['delta', 'iceberg'] as const satisfies readonly TableFormat[];

/** The key that names a version of a table, by its format. */
const versionKeys = { delta: 'version', iceberg: 'snapshot' } as const satisfies Record<TableFormat, string>;

const archiveFormats = ['parquet', 'arrow', ...tableFormats, ...lineFormats] as const;

type ArchiveFormat = (typeof archiveFormats)[number];

/** Formats that are recognised by the ending of a file's name. Lines of text may have any name. */
const endings: ReadonlyMap<string, ArchiveGlob['format']> = new Map([
  ['parquet', 'parquet'],
  ['arrow', 'arrow'],
  ['arrows', 'arrow'],
  ['feather', 'arrow'],
  ['ipc', 'arrow'],
]);

/** The format of files whose names end like this; undefined where the ending does not tell. */
export function formatOfName(name: string): ArchiveGlob['format'] | undefined {
  return endings.get(/\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '');
}

/** Result of reading the `archive` section. */
export interface ReadArchiveInput {
  readonly input: ArchiveInput;
  /** The parsed fields that lines and folders provide; undefined where that is not known. */
  readonly sources: readonly string[] | undefined;
  /** Position of `time` in the file. */
  readonly timePlace: Place;
}

/**
 * Reads the `archive` section, for existing files. `file` is the `file` section of the same agent, if it also follows logs.
 * Returns undefined where there is no section, or it is invalid (the problems are then on the list).
 */
export function readArchiveInput(
  root: YamlSection,
  dataFolder: string | undefined,
  file:
    { readonly input: FileInput | undefined; readonly sources: readonly string[] | undefined } | undefined,
): ReadArchiveInput | undefined {
  const section = root.section('archive', archiveKeys);
  if (section === undefined) return undefined;
  const { folder } = section;
  const format = section.text('format') === undefined ? 'by ending' : section.oneOf('format', archiveFormats);
  const tableFormat = tableFormats.find((known) => known === format);
  const paths = readPaths(section, dataFolder, tableFormat !== undefined);
  const globs = format === undefined ? [] : readFormats(section, paths, format, file !== undefined);
  const isText = globs.some((glob) => glob.format === 'lines');
  if (isText && globs.some((glob) => glob.format !== 'lines')) {
    section.problem('path', 'path mixes Parquet or Arrow files with text files: make two agents of it');
  }
  const hasFormat = format !== undefined && format !== 'by ending';
  const lines = isText && hasFormat ? readLines(section, format, file?.input) : undefined;
  const mode = readMode(section, globs);
  const table = readTable(section, tableFormat, paths, mode);
  if (globs.length > 0 && !isText) refuseLineKeys(section);
  const changed = section.oneOf('changed', ['fail', 'replace']) ?? 'fail';
  const missing = section.oneOf('missing', ['fail', 'retire']) ?? 'fail';
  const unused = ['changed', 'missing'].find((key) => mode === 'import' && section.has(key));
  if (unused !== undefined) {
    const message = `${unused} is only for files that are queried in place; imported records are stored and do not change`;
    section.problem(unused, message);
  }
  const time = section.text('time');
  const { line, column } = section.place;
  const input: ArchiveInput = {
    folder,
    globs,
    mode,
    table,
    lines: lines?.format,
    time,
    changed,
    missing,
    infersFields: !isText && file === undefined && !root.has('fields'),
    place: { line, column },
  };
  const sources = isText ? withKeys(lines?.sources ?? file?.sources, globs) : undefined;
  return { input, sources, timePlace: section.placeOf('time') };
}

/** Reads which version of a table is wanted, and refuses what a table can't have. */
function readTable(
  section: YamlSection,
  format: TableFormat | undefined,
  paths: readonly string[],
  mode: ArchiveInput['mode'],
): ArchiveInput['table'] {
  for (const known of tableFormats) {
    const key = versionKeys[known];
    if (known !== format && section.has(key))
      section.problem(key, `${key} is only for a table with format: ${known}`);
  }
  if (format === undefined) return undefined;
  const key = versionKeys[format];
  const at = section.parsed(key, `the number of a ${key}`, (text) =>
    /^-?\d{1,19}$/.test(text) ? text : undefined,
  );
  if (paths.length > 1)
    section.problem('path', 'path must be the folder of one table: make an agent for each');
  if (mode === 'import')
    section.problem('mode', 'import is not for tables, whose files are rewritten: query them in place');
  if (section.has('missing'))
    section.problem('missing', 'missing is not for tables: their log says which files count');
  return { format, at };
}

/** Reads `archive.path`: one glob or a list of them, as written; or the folder of a table. */
function readPaths(
  section: YamlSection,
  dataFolder: string | undefined,
  isTable: boolean,
): readonly string[] {
  const paths = section.texts('path') ?? [];
  if (!section.has('path'))
    section.missing(
      'path',
      "the files, by a pattern such as '/archive/nginx/**/*.parquet', or a list of patterns",
    );
  else if (paths.length === 0) section.problem('path', 'path is an empty list: name at least one file');
  for (const path of paths) {
    if (path === '' || (path.endsWith('/') && !isTable)) {
      const message = `path must end with a pattern for file names, such as '*.parquet': ${JSON.stringify(path)}`;
      section.problem('path', message);
    } else if (/\(\?P?</.test(path)) {
      const message =
        'path is a glob, which has no captures: values of folders come from key=value names, or from "file" with a path that has the captures';
      section.problem('path', `${message}: ${JSON.stringify(path)}`);
    } else if (path.startsWith('!')) {
      section.problem('path', `path can't exclude files: ${JSON.stringify(path)} begins with "!"`);
    } else if (isObjectPath(path)) {
      const problem = objectGlobProblem(path);
      if (problem !== undefined) section.problem('path', `path ${problem}: ${JSON.stringify(path)}`);
    } else if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) {
      section.problem(
        'path',
        `path ${JSON.stringify(path)} is not supported: name objects as s3://bucket/key, and files by their path`,
      );
    } else if (
      dataFolder !== undefined &&
      isWithin(realPlace(resolve(section.folder, fixedBeginning(path))), realPlace(dataFolder))
    ) {
      section.problem('path', `path is inside the data folder ${dataFolder}: ${ownFilesReason}`);
    }
  }
  return paths;
}

/** The problem with a pattern of objects, or undefined. */
function objectGlobProblem(glob: string): string | undefined {
  const { bucket, key } = objectPlace(glob);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(bucket))
    return 'must name one bucket, as in s3://bucket/nginx/*.parquet';
  return key === '' ? 'names a bucket but no objects; write for example s3://bucket/*.parquet' : undefined;
}

/** Reads the format of the files of each glob. */
function readFormats(
  section: YamlSection,
  paths: readonly string[],
  format: ArchiveFormat | 'by ending',
  hasLines: boolean,
): readonly ArchiveGlob[] {
  return paths.flatMap((glob): ArchiveGlob[] => {
    if (format === 'parquet' || format === 'arrow') return [{ glob, format }];
    if (tableFormats.some((known) => known === format)) return [{ glob, format: 'parquet' }];
    if (format !== 'by ending') return [{ glob, format: 'lines' }];
    const ending = formatOfName(glob);
    if (ending !== undefined) return [{ glob, format: ending }];
    if (hasLines) return [{ glob, format: 'lines' }];
    section.missing(
      'format',
      `${joinNames(archiveFormats, 'or')}; names that end with ${joinNames(
        [...endings.keys()].map((each) => `.${each}`),
        'or',
      )} need no format, but ${JSON.stringify(glob)} does not end that way`,
    );
    return [];
  });
}

/** Reads the format of the archive's lines: that of the `file` section, or else as the section says. */
function readLines(
  section: YamlSection,
  format: ArchiveFormat,
  file: FileInput | undefined,
): Partial<ReturnType<typeof readLineFormat>> {
  if (file === undefined)
    return readLineFormat(section, lineFormats.find((known) => known === format) ?? 'plain');
  if (format !== file.format) {
    section.problem(
      'format',
      `file.format (${file.format}) also applies to the lines of the archive: remove format here`,
    );
  }
  const own = lineKeys.find((key) => section.has(key));
  if (own !== undefined) section.problem(own, `"file" already says how to parse lines: remove ${own} here`);
  return {};
}

/** Reads the mode. By default, text is imported and columnar files are queried in place. */
function readMode(section: YamlSection, globs: readonly ArchiveGlob[]): ArchiveInput['mode'] {
  const isText = globs.some(({ format }) => format === 'lines');
  const mode = section.oneOf('mode', ['in-place', 'import']) ?? (isText ? 'import' : 'in-place');
  if (mode === 'in-place' && isText) {
    section.problem(
      'mode',
      'in-place is only for Parquet and Arrow files. Lines of text must be stored: mode: import',
    );
  }
  return mode;
}

function refuseLineKeys(section: YamlSection): void {
  for (const key of lineKeys) {
    if (!section.has(key)) continue;
    section.problem(key, `${key} is only for lines of text, but these files have columns`);
  }
}

/**
 * Adds the keys of the `key=value` folders in the globs to the fields that lines provide. Undefined for globs with `**`,
 * which may match folders with other keys.
 */
function withKeys(
  sources: readonly string[] | undefined,
  globs: readonly ArchiveGlob[],
): readonly string[] | undefined {
  if (sources === undefined || globs.some(({ glob }) => glob.includes('**'))) return undefined;
  return [...new Set([...sources, ...globs.flatMap(({ glob }) => keysOfGlob(glob))])];
}
