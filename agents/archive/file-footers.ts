import {
  encodeDeleted,
  innerColumn,
  isLogstrataError,
  LogstrataError,
  mapInOrder,
  readForeignFile,
  readForeignObject,
  type DeletedRows,
  type FileToImport,
  type ForeignColumn,
  type ForeignFile,
  type ForeignFormat,
  type ObjectStorage,
} from '../../engine/index.js';
import { valueFacts, type ColumnFacts } from './column-facts.js';
import type { FoundFile } from './found-files.js';
import type { TableReading } from './table-schema.js';

/** Number of footers that are read concurrently: each takes some megabytes at most, and mostly waits for the disk. */
const lanes = 4;

/** The footer of a Parquet or Arrow file. */
export interface Footer {
  readonly footerHash: string;
  readonly rows: number;
  /** See `ForeignFile.isOpen`. */
  readonly isOpen?: true | undefined;
  /** One shared list for all files that have the same columns. Of a file of a table, the columns of the table. */
  readonly columns: readonly ColumnFacts[];
  /** Set for a file of a table. */
  readonly reading?: TableReading;
  /** The rows that its table has deleted. `rows` counts them as well. */
  readonly deleted?: DeletedRows;
}

/** How the values of a file are read: by the keys of its folders, or by its table. */
export function readingOf(
  { keys, table }: FoundFile,
  { reading, deleted }: Pick<Footer, 'reading' | 'deleted'>,
): Pick<FileToImport, 'constants' | 'renamed' | 'deleted' | 'table'> {
  if (table === undefined || reading === undefined) return { constants: Object.fromEntries(keys) };
  const { schema, values, isRewritten, deletes } = table;
  const { renamed } = reading;
  return {
    constants: schema.constants(values, reading),
    ...(Object.keys(renamed).length === 0 ? {} : { renamed }),
    ...(deleted === undefined ? {} : { deleted }),
    table: { schema: schema.id, isRewritten, ...(deletes === undefined ? {} : { deletes: deletes.id }) },
  };
}

/** A footer, or the reason why it can't be read. */
export type FooterRead = Footer | LogstrataError;

interface KnownFooter {
  readonly bytes: number;
  readonly mtimeMs: number;
  readonly etag: string | undefined;
  readonly inode: string | undefined;
  readonly footer: FooterRead;
}

/** Caches the footers of Parquet and Arrow files; each is read once until its file changes. */
export class FileFooters {
  private readonly known = new Map<string, KnownFooter>();
  private readonly lists = new Map<string, readonly ColumnFacts[]>();

  /**
   * @param objects object storage for `s3://` paths
   * @param wanted names of columns; those of parts of a structure (`t.time`) are listed like columns
   */
  constructor(
    private readonly objects: ObjectStorage | undefined,
    private readonly wanted: readonly string[] = [],
  ) {}

  /** The footers of files, by path. Throws the signal's reason. */
  async read(
    files: readonly FoundFile[],
    signal?: AbortSignal,
    onProgress?: (read: number) => void,
  ): Promise<ReadonlyMap<string, FooterRead>> {
    const footers = new Map<string, FooterRead>();
    await mapInOrder(files, lanes, async (file) => {
      signal?.throwIfAborted();
      footers.set(file.path, await ofTable(await this.footerOf(file), file));
      onProgress?.(footers.size);
    });
    return footers;
  }

  /** Drops the footers of all other files. */
  keep(files: readonly FoundFile[]): void {
    const paths = new Set(files.map(({ path }) => path));
    for (const path of this.known.keys()) if (!paths.has(path)) this.known.delete(path);
  }

  private async footerOf(file: FoundFile): Promise<FooterRead> {
    const { path, format, bytes, mtimeMs, etag, inode } = file;
    const known = this.known.get(path);
    const isSame = known?.bytes === bytes && known.mtimeMs === mtimeMs && known.etag === etag;
    if (isSame && known.inode === inode) return known.footer;
    const footer = format === 'lines' ? noFooter(path) : await this.readFooter(file, format);
    // An I/O error is not cached: the file may be readable next time, e.g. with other permissions.
    if (!(footer instanceof LogstrataError) || footer.code !== 'io')
      this.known.set(path, { bytes, mtimeMs, etag, inode, footer });
    return footer;
  }

  private async readFooter(file: FoundFile, format: ForeignFormat): Promise<FooterRead> {
    try {
      const described = await this.describe(file, format);
      const { footerHash, rows, isOpen } = described;
      const named = await Promise.all(this.wanted.map((name) => innerColumn(described, name)));
      const parts = named.flatMap((found) => (found?.column.inner === undefined ? [] : found.column));
      return { footerHash, rows, isOpen, columns: this.shared(described, parts) };
    } catch (error) {
      if (isLogstrataError(error)) return error;
      throw error;
    }
  }

  private describe({ path, bytes, etag }: FoundFile, format: ForeignFormat): Promise<ForeignFile> {
    if (etag === undefined || this.objects === undefined) return readForeignFile(path, format);
    return readForeignObject(this.objects, { path, bytes, etag }, format);
  }

  /** Shares equal lists: thousands of files of a table have the same columns. */
  private shared(
    { columns, rowGroups }: ForeignFile,
    parts: readonly ForeignColumn[],
  ): readonly ColumnFacts[] {
    const facts = columns.map((column, i): ColumnFacts => {
      const { name, id, type, way, stored, reason, isUnsigned64 } = column;
      const chunks = rowGroups.flatMap(({ rows, chunks }) =>
        chunks[i]!.nullCount === rows ? [] : chunks[i]!,
      );
      const numbers = { ...(id === undefined ? {} : { id }), ...(isUnsigned64 ? { isUnsigned64 } : {}) };
      const common = { name, type, way, stored, reason, ...numbers };
      if (column.isNull === true || chunks.length === 0) return { ...common, isNull: true };
      return { ...common, ...valueFacts(column, chunks, Date.now()) };
    });
    for (const { name, type, way, stored, reason } of parts) facts.push({ name, type, way, stored, reason });
    const key = JSON.stringify(facts);
    const known = this.lists.get(key);
    if (known !== undefined) return known;
    this.lists.set(key, facts);
    return facts;
  }
}

/** The footer of a file, with the columns of its table and the rows that this has deleted. */
async function ofTable(footer: FooterRead, { path, table }: FoundFile): Promise<FooterRead> {
  if (footer instanceof LogstrataError || table === undefined) return footer;
  const { schema, deletes } = table;
  const reading = schema.reading(footer.columns);
  const own = { ...footer, columns: reading.columns, reading };
  if (deletes === undefined) return own;
  try {
    const ranges = await deletes.read();
    const end = ranges.at(-1)?.[1] ?? 0;
    if (end <= footer.rows) return { ...own, deleted: encodeDeleted(ranges) };
    const message = `${path} has ${footer.rows} rows, but its table has deleted row ${end} of it`;
    return new LogstrataError('damaged', message, { path });
  } catch (error) {
    if (isLogstrataError(error)) return error;
    throw error;
  }
}

function noFooter(path: string): LogstrataError {
  return new LogstrataError('unsupported', `${path} is a text file and has no columns`, { path });
}
