import {
  conversionOf,
  LogstrataError,
  nearName,
  type Field,
  type ObjectStorage,
} from '../../engine/index.js';
import { hasColumns, type AgentDefinition, type ArchiveInput } from '../definition/definition.js';
import { FileFooters } from './file-footers.js';
import { findFiles, type FoundFile, type PathProblem } from './found-files.js';
import { FieldInference, isNumber, type ColumnVariant, type InferredColumn } from './inferred-fields.js';

/** Summary of the files of an archive. */
export interface ArchiveReport {
  readonly formats: readonly FormatCount[];
  /** Rows of Parquet and Arrow files; null for text. */
  readonly rows: number | null;
  /** The fields of Parquet and Arrow files, and how the files store them. Empty for text. */
  readonly columns: readonly InferredColumn[];
  /** Keys of folders. */
  readonly keys: readonly string[];
  /** Problems of files and folders that can't be read. */
  readonly problems: readonly PathProblem[];
  /** Why the columns can't be the agent's fields. */
  readonly fieldProblems: readonly string[];
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
  const common = { formats: countFormats(files), keys };
  if (!hasColumns(archive)) return { ...common, rows: null, columns: [], problems, fieldProblems: [] };
  const footers = await new FileFooters(objects).read(files, undefined, (read) =>
    onProgress(read, files.length),
  );
  const inference = new FieldInference();
  let rows = 0;
  for (const file of files) {
    const footer = footers.get(file.path)!;
    if (footer instanceof LogstrataError) {
      problems.push({ path: file.path, message: footer.message });
      continue;
    }
    inference.add(file, footer);
    rows += footer.rows;
  }
  const inferred = inference.finish(archive.infersFields ? archive.time : undefined);
  if (archive.infersFields)
    return { ...common, rows, columns: inferred.columns, problems, fieldProblems: inferred.problems };
  const listed = listedColumns(definition, inference.variants());
  return { ...common, rows, problems, ...listed };
}

/** The fields that an agent's file lists, and how the files store their columns. */
function listedColumns(
  { schema }: AgentDefinition,
  variants: ReadonlyMap<string, readonly ColumnVariant[]>,
): Pick<ArchiveReport, 'columns' | 'fieldProblems'> {
  const fieldProblems: string[] = [];
  const columns = schema.fields.map((field): InferredColumn => {
    const { name, type, attached } = field;
    const column = attached?.column ?? name;
    const found = variants.get(column);
    if (found === undefined && variants.size > 0) {
      const hint = nearName(column, [...variants.keys()]);
      fieldProblems.push(
        `the field "${name}" reads the column ${JSON.stringify(column)}, which no file has${hint}`,
      );
    }
    const unfit = found?.find((variant) => !takes(field, variant));
    if (unfit !== undefined) fieldProblems.push(misfit(field, unfit));
    return { field: { name, type, column, unit: attached?.unit }, variants: found ?? [] };
  });
  return { columns, fieldProblems };
}

/** Whether a field gets values from a column, rather than null in every row. */
function takes({ type, attached }: Field, variant: ColumnVariant): boolean {
  const isCounted = type === 'time' && attached?.unit !== undefined;
  return (isCounted && isNumber(variant.type)) || conversionOf(variant.type, type) !== 'toNull';
}

function misfit({ name, type }: Field, variant: ColumnVariant): string {
  const isUncounted = type === 'time' && isNumber(variant.type);
  const advice = isUncounted
    ? 'give the unit of its numbers (unit: s, ms, us or ns)'
    : `take type: ${variant.type}`;
  const column = `the column ${JSON.stringify(variant.name)} is ${variant.type} (${variant.stored}) in ${variant.path}`;
  return `the field "${name}" of type ${type} is null in every row of some files, because ${column}: ${advice}`;
}

function countFormats(files: readonly FoundFile[]): FormatCount[] {
  const counts = new Map<FoundFile['format'], { files: number; bytes: number }>();
  for (const { format, bytes } of files) {
    const count = counts.get(format) ?? { files: 0, bytes: 0 };
    counts.set(format, { files: count.files + 1, bytes: count.bytes + bytes });
  }
  return [...counts].map(([format, count]) => ({ format, ...count }));
}
