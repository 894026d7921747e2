import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { findFiles } from '../../agents/archive/found-files.js';
import { fieldsYaml } from '../../agents/archive/inferred-fields.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { formatOfName } from '../../agents/definition/archive-input.js';
import type { ArchiveGlob, TableFormat } from '../../agents/definition/definition.js';
import { yamlText } from '../../agents/definition/yaml.js';
import { expandFiles } from '../../agents/load/load-paths.js';
import { isObjectPath } from '../../engine/index.js';
import { archiveProblems, checkArchive, describeArchiveReport, likelyTimes } from './check.js';
import type { Settings } from './options.js';
import { linesOf } from './terminal.js';

/** The file of an agent for existing Parquet or Arrow files, and what is in these, as lines for people. */
export interface NewArchive {
  readonly yaml: string;
  readonly lines: readonly string[];
  readonly problems: readonly string[];
}

/** Makes an agent for Parquet and Arrow files, which are named by a path, a folder or a pattern, or for a table. Returns undefined where neither is named. */
export async function newArchive(
  name: string,
  agentPath: string,
  named: readonly string[],
  settings: Settings,
): Promise<NewArchive | undefined> {
  const parts = await partsOf(named);
  if (parts === undefined) return undefined;
  const archive = `archive: { ${parts.join(', ')} }\n`;
  const agent = parseAgentFile(archive, agentPath, settings.dataFolder);
  const report = await checkArchive(agent, agent.archive!, settings);
  const { columns } = report;
  const hasTime = columns.some(({ field }) => field.type === 'time');
  const [time] = hasTime ? [] : likelyTimes(columns);
  const others = columns.filter(({ field }) => field.name !== time?.name);
  const fields = time === undefined ? [] : fieldsYaml([{ field: time, variants: [] }, ...others]);
  const comment = `# The agent "${name}" answers from these files. Show what is in them with\n#   logstrata check ${name}\n`;
  return {
    yaml: [comment + archive, ...fields.map((line) => `${line}\n`)].join(''),
    lines: linesOf(
      describeArchiveReport(agent, report),
      time !== undefined &&
        `note: the column ${JSON.stringify(time.column)} is taken as the time, by its bounds`,
    ),
    problems: archiveProblems(agent, report),
  };
}

/** The keys of the section `archive` for what is named: a table, or Parquet and Arrow files. Undefined where it is neither. */
async function partsOf(named: readonly string[]): Promise<readonly string[] | undefined> {
  const root = resolve(named[0]!);
  const table = named.length === 1 ? tableIn(root) : undefined;
  if (table !== undefined) return [`path: ${yamlText(root)}`, `format: ${table}`];
  const globs = (await Promise.all(named.map((each) => globsOf(each)))).flat();
  if (globs.length === 0 || globs.some(({ format }) => format === 'lines')) return undefined;
  const isByEnding = globs.every(({ glob, format }) => formatOfName(glob) === format);
  const paths = globs.map(({ glob }) => yamlText(glob));
  return [
    `path: ${paths.length === 1 ? paths[0]! : `[${paths.join(', ')}]`}`,
    ...(isByEnding ? [] : [`format: ${globs[0]!.format}`]),
  ];
}

/** The format of the table whose folder is named; undefined where it is none. */
function tableIn(root: string): TableFormat | undefined {
  if (existsSync(join(root, '_delta_log'))) return 'delta';
  const metadata = join(root, 'metadata');
  if (!existsSync(metadata)) return undefined;
  return readdirSync(metadata).some((name) => name.includes('.metadata.json')) ? 'iceberg' : undefined;
}

/** The patterns for what is named; of a folder, for the files of each format that it has. None where there are no such files. */
async function globsOf(named: string): Promise<ArchiveGlob[]> {
  if (isObjectPath(named)) return [{ glob: named, format: formatOfName(named) ?? 'parquet' }];
  const path = resolve(named);
  const stats = statSync(path, { throwIfNoEntry: false });
  const literal = path.replace(/[*?[\]{}()!\\]/g, '\\$&');
  if (stats?.isFile() === true) return [{ glob: literal, format: formatOfFile(path) }];
  if (stats?.isDirectory() === true) return globsOfFolder(literal);
  const [first] = await expandFiles([named]).catch(() => []);
  return [
    { glob: path, format: formatOfName(path) ?? (first === undefined ? 'lines' : formatOfFile(first)) },
  ];
}

async function globsOfFolder(folder: string): Promise<ArchiveGlob[]> {
  const everything = `archive: { path: ${yamlText(`${folder}/**/*`)}, format: parquet }`;
  const { files } = await findFiles(parseAgentFile(everything, 'all.yaml').archive!, undefined);
  const endings = new Set(files.map(({ path }) => /\.[a-z]+$/i.exec(path)?.[0] ?? ''));
  return [...endings].flatMap((ending) => {
    const format = formatOfName(ending);
    return format === undefined ? [] : [{ glob: `${folder}/**/*${ending}`, format }];
  });
}

/** The format of a file by its first bytes, or else by the ending of its name. */
function formatOfFile(path: string): ArchiveGlob['format'] {
  const beginning = Buffer.alloc(6);
  const file = openSync(path, 'r');
  try {
    readSync(file, beginning);
  } finally {
    closeSync(file);
  }
  const text = beginning.toString('latin1');
  return text === 'ARROW1' ? 'arrow' : text.startsWith('PAR1') ? 'parquet' : (formatOfName(path) ?? 'lines');
}
