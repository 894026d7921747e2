import {
  isLogstrataError,
  LogstrataError,
  mapInOrder,
  readForeignFile,
  readForeignObject,
  timeUnits,
  type ForeignChunk,
  type ForeignColumn,
  type ForeignFile,
  type ForeignFormat,
  type ObjectStorage,
  type TimeUnit,
} from '../../engine/index.js';
import type { FoundFile } from './found-files.js';

/** Number of footers that are read concurrently: each takes some megabytes at most, and mostly waits for the disk. */
const lanes = 4;

/** Facts about a column of a file: its field type, its stored type, how it is decoded, and what the footer says of its values. */
export interface ColumnFacts extends Pick<
  ForeignColumn,
  'name' | 'type' | 'way' | 'stored' | 'reason' | 'isUnsigned64'
> {
  /** Whether the file has no value of it. */
  readonly isNull?: true | undefined;
  /** Whether it may have integers that a float can't represent exactly. */
  readonly isWide?: true | undefined;
  /** The unit in which its numbers are times of our days. */
  readonly unit?: TimeUnit | undefined;
  /** The year of its last time, where that is in the far future. */
  readonly farYear?: number;
}

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
    await mapInOrder(files, lanes, async (file) => {
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
      const described = await this.describe(file, format);
      const { footerHash, rows, isOpen } = described;
      return { footerHash, rows, isOpen, columns: this.shared(described) };
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
  private shared({ columns, rowGroups }: ForeignFile): readonly ColumnFacts[] {
    const facts = columns.map((column, i): ColumnFacts => {
      const { name, type, way, stored, reason, isUnsigned64 } = column;
      const chunks = rowGroups.flatMap(({ rows, chunks }) =>
        chunks[i]!.nullCount === rows ? [] : chunks[i]!,
      );
      const common = { name, type, way, stored, reason, ...(isUnsigned64 ? { isUnsigned64 } : {}) };
      if (column.isNull === true || chunks.length === 0) return { ...common, isNull: true };
      return { ...common, ...valueFacts(column, chunks, Date.now()) };
    });
    const key = JSON.stringify(facts);
    const known = this.lists.get(key);
    if (known !== undefined) return known;
    this.lists.set(key, facts);
    return facts;
  }
}

const yearMs = 365.25 * 86_400_000;

/** Times are expected from this one on, when logs began to be kept, and until a few years ahead. */
const ourDaysMs = Date.UTC(1990, 0, 1);
const aheadMs = 10 * yearMs;

/** What the bounds of a column's chunks say about its values. */
function valueFacts(
  { type, stored }: ForeignColumn,
  chunks: readonly ForeignChunk[],
  nowMs: number,
): Pick<ColumnFacts, 'isWide' | 'unit' | 'farYear'> {
  if (type !== 'time' && type !== 'int' && type !== 'float') return {};
  const min = chunks.reduce((least, chunk) => Math.min(least, boundOf(chunk.min)), Infinity);
  const max = chunks.reduce((most, chunk) => Math.max(most, boundOf(chunk.max)), -Infinity);
  if (type === 'time') {
    const isFar = max > nowMs + aheadMs;
    return isFar ? { farYear: Math.floor(1970 + max / yearMs) } : {};
  }
  const unit = (Object.keys(timeUnits) as TimeUnit[]).find((each) => {
    const ms = timeUnits[each].ms / timeUnits[each].perMs;
    return min * ms >= ourDaysMs && max * ms <= nowMs + aheadMs;
  });
  const isShort = type === 'float' || /^u?int(?:8|16|32)\b/i.test(stored);
  // Bounds that are not known are NaN, for which each comparison is false.
  const isWide = !isShort && !(min >= Number.MIN_SAFE_INTEGER && max <= Number.MAX_SAFE_INTEGER);
  return { ...(isWide ? { isWide } : {}), ...(unit === undefined ? {} : { unit }) };
}

function boundOf(bound: ForeignChunk['min']): number {
  return bound === null ? NaN : Number(bound.value);
}

function noFooter(path: string): LogstrataError {
  return new LogstrataError('unsupported', `${path} is a text file and has no columns`, { path });
}
