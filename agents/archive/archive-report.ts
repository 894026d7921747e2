import { LogstrataError, nearName, type ObjectStorage, type Schema } from '../../engine/index.js';
import { hasColumns, type AgentDefinition, type ArchiveInput } from '../definition/definition.js';
import { FileFooters, type Footer } from './file-footers.js';
import { findFiles, type FoundFile, type PathProblem } from './found-files.js';
import {
  FieldInference,
  fitsField,
  isNumber,
  typeOfVariants,
  type ColumnVariant,
  type InferredColumn,
  type InferredField,
  type InferredFields,
  withFields,
} from './inferred-fields.js';
import { schemaOf } from '../definition/agent-file.js';
import { yamlText } from '../definition/yaml.js';
import { ConfigError } from '../definition/config-error.js';
import type { CollectLog } from '../collect/logs/collect-log.js';

/** Summary of the files of an archive. */
export interface ArchiveReport {
  readonly formats: readonly FormatCount[];
  /** The version of the table that these are the files of. */
  readonly version?: string;
  /** Rows of Parquet and Arrow files; null for text. */
  readonly rows: number | null;
  /** The fields of Parquet and Arrow files, and how the files store them. Empty for text. */
  readonly columns: readonly InferredColumn[];
  /** Keys of folders. */
  readonly keys: readonly string[];
  /** Problems of files and folders that can't be read. */
  readonly problems: readonly PathProblem[];
  /** Why the agent's fields, or the one that places records, do not fit the columns. */
  readonly fieldProblems: readonly string[];
  /** Columns that are no fields although the agent's fields are those of its files, and why. */
  readonly leftOut: readonly string[];
  /** Columns whose names could not be made the names of their fields. */
  readonly renamed: readonly string[];
}

/** Number and total size of the files of one format. */
export interface FormatCount {
  readonly format: FoundFile['format'];
  readonly files: number;
  readonly bytes: number;
}

/**
 * Searches all files of an archive and reads the footers of columnar ones. Throws `limit` for too many files.
 *
 * @param objects object storage for `s3://` paths
 * @param onProgress receives the number of files read, of how many
 */
export async function reportArchive(
  definition: AgentDefinition,
  archive: ArchiveInput,
  dataFolder: string | undefined,
  objects: ObjectStorage | undefined,
  onProgress: (read: number, files: number) => void,
): Promise<ArchiveReport> {
  const found = await findFiles(archive, dataFolder, objects);
  const { files } = found;
  const problems = [...found.problems];
  const keys = [...new Set(files.flatMap((file) => [...file.keys.keys()]))];
  const version = found.table === undefined ? {} : { version: found.table.version };
  const common = { formats: countFormats(files), ...version, keys };
  if (!hasColumns(archive))
    return { ...common, rows: null, columns: [], problems, fieldProblems: [], leftOut: [], renamed: [] };
  const footers = await new FileFooters(objects, sourcesOf(definition)).read(files, undefined, (read) =>
    onProgress(read, files.length),
  );
  const inference = new FieldInference();
  const read: [string, Footer][] = [];
  let rows = 0;
  for (const file of files) {
    const footer = footers.get(file.path)!;
    if (footer instanceof LogstrataError) {
      problems.push({ path: file.path, message: footer.message });
      continue;
    }
    inference.add(file, footer);
    read.push([file.path, footer]);
    rows += footer.rows - (footer.deleted?.rows ?? 0);
  }
  const inferred = inference.finish(archive.infersFields ? archive.time : undefined);
  const {
    columns,
    problems: fieldProblems,
    leftOut,
    renamed,
  } = archive.infersFields ? inferred : listedColumns(definition, inference.variants());
  const placing = columns.find(({ field }) => field.type === 'time')?.field;
  if (placing !== undefined) problems.push(...placingProblems(placing, read, archive.mode, keys));
  return { ...common, rows, columns, problems, fieldProblems, leftOut, renamed };
}

/** The columns that an agent's file names, as far as they are known before the files are read. */
export function sourcesOf({ fields, archive }: Pick<AgentDefinition, 'fields' | 'archive'>): string[] {
  return [...fields.map(({ source }) => source), ...(archive?.time === undefined ? [] : [archive.time])];
}

/** Files that lack the column that places records, and files whose times are in the far future. */
function placingProblems(
  { column: name }: InferredField,
  files: readonly (readonly [string, Footer])[],
  mode: ArchiveInput['mode'],
  keys: readonly string[],
): PathProblem[] {
  const rest = mode === 'import' ? 'its rows have no time' : 'it is left out';
  const means = `which places records: ${rest}`;
  return files.flatMap(([path, { columns, rows }]) => {
    const column = columns.find((each) => each.name === name);
    const problems: PathProblem[] = [];
    if (column?.farYear !== undefined) problems.push({ path, message: farAhead(path, name, column.farYear) });
    const isNone = column === undefined ? !keys.includes(name) : column.isNull && column.type !== 'time';
    if (isNone === true && rows > 0)
      problems.push({
        path,
        message: `${path} has no times in the column ${JSON.stringify(name)}, ${means}`,
      });
    return problems;
  });
}

function farAhead(path: string, column: string, year: number): string {
  return `${path}: the column ${JSON.stringify(column)}, which places records, has times up to the year ${year}`;
}

/** The fields that an agent's file lists, and how the files store their columns. */
function listedColumns(
  { schema }: AgentDefinition,
  variants: ReadonlyMap<string, readonly ColumnVariant[]>,
): InferredFields {
  const problems: string[] = [];
  const columns = schema.fields.map((field): InferredColumn => {
    const { name, type, attached } = field;
    const column = attached?.column ?? name;
    const found = variants.get(column);
    if (found === undefined && variants.size > 0) {
      const hint = nearName(column, [...variants.keys()]);
      problems.push(
        `the field "${name}" reads the column ${JSON.stringify(column)}, which no file has${hint}`,
      );
    }
    const shown = { name, type, column, unit: attached?.unit, format: attached?.format };
    const unfit = found?.find((variant) => !fitsField(shown, variant));
    if (unfit !== undefined) problems.push(misfit(shown, unfit, found!));
    const other = found?.find(
      ({ unit }) => unit !== undefined && shown.unit !== undefined && unit !== shown.unit,
    );
    if (other !== undefined) problems.push(wrongUnit(shown, other));
    return { field: shown, variants: found ?? [] };
  });
  return { columns, problems, leftOut: [], renamed: [] };
}

function misfit({ name, type }: InferredField, unfit: ColumnVariant, all: readonly ColumnVariant[]): string {
  const isUncounted = type === 'time' && isNumber(unfit.type);
  const advice = isUncounted
    ? `give the unit of its numbers (unit: ${unfit.unit ?? 's, ms, us or ns'})`
    : type === 'time' && unfit.format !== undefined
      ? `give the format of its texts (timestamp: { format: ${yamlText(unfit.format)} })`
      : `take type: ${typeOfVariants(all)}`;
  const column = `the column ${JSON.stringify(unfit.name)} is ${unfit.type} (${unfit.stored}) in ${unfit.path}`;
  const rows = isNumber(type) && unfit.type === 'int' ? 'some rows' : 'every row';
  return `the field "${name}" of type ${type} is null in ${rows} of some files, because ${column}: ${advice}`;
}

function wrongUnit({ name, unit }: InferredField, variant: ColumnVariant): string {
  return `the field "${name}" takes the numbers of the column ${JSON.stringify(variant.name)} for times in ${unit}, but they are times of our days only in ${variant.unit}: unit: ${variant.unit}`;
}

function countFormats(files: readonly FoundFile[]): FormatCount[] {
  const counts = new Map<FoundFile['format'], { files: number; bytes: number }>();
  for (const { format, bytes } of files) {
    const count = counts.get(format) ?? { files: 0, bytes: 0 };
    counts.set(format, { files: count.files + 1, bytes: count.bytes + bytes });
  }
  return [...counts].map(([format, count]) => ({ format, ...count }));
}

/** Limit on the notes about columns that are left out. */
const notesMax = 20;

/**
 * Completes the definition of an agent whose fields are the columns of its files: with the stored fields, or else with those
 * that all of its files have. Throws `ConfigError` where there are none, or none that `archive.time` means.
 *
 * @param stored the schema that the agent has in the archive; it saves reading thousands of footers at each start
 */
export async function completedDefinition(
  definition: AgentDefinition,
  stored: Schema | undefined,
  dataFolder: string | undefined,
  objects: ObjectStorage | undefined,
  onProgress: (read: number, files: number) => void,
): Promise<AgentDefinition> {
  const { archive, path, name } = definition;
  if (archive?.infersFields !== true) return definition;
  const known = stored?.fields.map((field) => ({
    name: field.name,
    type: field.type,
    source: field.attached?.column ?? field.name,
    ...(field.attached?.unit === undefined ? {} : { unit: field.attached.unit }),
  }));
  const placing = known?.find(({ type }) => type === 'time');
  if (known !== undefined && [undefined, placing?.name, placing?.source].includes(archive.time))
    return { ...definition, fields: known, schema: schemaOf(known, true) };
  const { columns, fieldProblems, leftOut, renamed, problems } = await reportArchive(
    definition,
    archive,
    dataFolder,
    objects,
    onProgress,
  );
  const why = [...fieldProblems];
  if (columns.length === 0) {
    const unread = problems[0] === undefined ? 'no file was found' : problems[0].message;
    why.push(`the agent "${name}" lists no fields, and its archive has none: ${unread}`);
  }
  if (why.length > 0)
    throw new ConfigError(why.map((message) => ({ file: path, ...archive.place, message })));
  const notes = [...definition.notes, ...[...leftOut, ...renamed].slice(0, notesMax)];
  const fields = columns.map(({ field }) => field);
  return { ...withFields(definition, fields), notes };
}

/** Limit on the problems that are listed: more than that usually have one cause. All are counted. */
const listedMax = 100;

/** The problems of an archive's files and folders. Each is logged once, and listed until it is solved. */
export class FileProblems {
  private readonly files = new Map<string, string>();
  private search = new Map<string, string>();

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** Replaces the problems of the previous search by those of a new one. */
  ofSearch(problems: readonly PathProblem[]): void {
    const before = this.search;
    this.search = new Map(problems.map(({ path, message }) => [path, message]));
    for (const { path, message } of problems) if (before.get(path) !== message) this.tell(path, message);
  }

  /** Records a problem of one file. */
  ofFile(path: string, message: string): void {
    if (this.files.get(path) === message) return;
    this.files.set(path, message);
    this.tell(path, message);
  }

  /** Removes the problem of a file. */
  clear(path: string): void {
    this.files.delete(path);
  }

  /** The number of problems. */
  get count(): number {
    return this.search.size + this.files.size;
  }

  /** The first of the problems. */
  list(): PathProblem[] {
    const listed: PathProblem[] = [];
    for (const [path, message] of [...this.search, ...this.files].slice(0, listedMax))
      listed.push({ path, message });
    return listed;
  }

  private tell(path: string, message: string): void {
    this.log.error({ agent: this.agent, path }, message);
  }
}
