import {
  isLogstrataError,
  LogstrataError,
  readForeignFile,
  readForeignObject,
  type ForeignColumn,
  type ForeignFile,
  type ForeignFormat,
  type ObjectStorage,
} from '../../engine/index.js';
import { inLanes } from '../sources/lanes.js';
import type { FoundFile } from './found-files.js';

/** Number of footers that are read concurrently: each takes some megabytes at most, and mostly waits for the disk. */
const lanes = 4;

/** Facts about a column of a file: its field type, its stored type, and how it is decoded. */
export type ColumnFacts = Pick<ForeignColumn, 'name' | 'type' | 'way' | 'stored' | 'reason' | 'isUnsigned64'>;

/** The footer of a Parquet or Arrow file. */
export interface Footer {
  readonly footerHash: string;
  readonly rows: number;
  /** See `ForeignFile.isOpen`. */
  readonly isOpen?: true | undefined;
  /** One shared list for all files that have the same columns. */
  readonly columns: readonly ColumnFacts[];
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

  /** @param objects object storage for `s3://` paths */
  constructor(private readonly objects: ObjectStorage | undefined) {}

  /** The footers of files, by path. Throws the signal's reason. */
  async read(
    files: readonly FoundFile[],
    signal?: AbortSignal,
    onProgress?: (read: number) => void,
  ): Promise<ReadonlyMap<string, FooterRead>> {
    const footers = new Map<string, FooterRead>();
    await inLanes(files, lanes, async (file) => {
      signal?.throwIfAborted();
      footers.set(file.path, await this.footerOf(file));
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
      const { footerHash, rows, isOpen, columns } = await this.describe(file, format);
      return { footerHash, rows, isOpen, columns: this.shared(columns) };
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
  private shared(columns: readonly ForeignColumn[]): readonly ColumnFacts[] {
    const facts = columns.map(({ name, type, way, stored, reason, isUnsigned64 }): ColumnFacts => {
      const common = { name, type, way, stored, reason };
      return isUnsigned64 === undefined ? common : { ...common, isUnsigned64 };
    });
    const key = JSON.stringify(facts);
    const known = this.lists.get(key);
    if (known !== undefined) return known;
    this.lists.set(key, facts);
    return facts;
  }
}

function noFooter(path: string): LogstrataError {
  return new LogstrataError('unsupported', `${path} is a text file and has no columns`, { path });
}
