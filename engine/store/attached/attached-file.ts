import type { ForeignFormat } from '../../foreign/foreign-file.js';
import type { AttachedColumn } from '../../terms/schema.js';
import type { FileIndex } from './file-index.js';
import type { OrdinalRun } from '../manifest/manifest.js';

/** A file to attach. Another program wrote it, and queries are answered from it in place. */
export interface FileToAttach {
  /** Absolute path. */
  readonly path: string;
  readonly format: ForeignFormat;
  /**
   * Column values given by the names of the file's folders (`key=value`), by column. They apply to all rows, null included, and take
   * precedence over columns of the same name.
   */
  readonly constants: Readonly<Record<string, string | null>>;
  /** For an object: the version that was listed. Only that version is read. */
  readonly object?: Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'> | undefined;
}

/** The attributes that tell whether a file is still the one that was attached. */
export interface FileIdentity {
  readonly bytes: number;
  /** Modification time (ms). A file with another time but the same footer counts as the same. */
  readonly mtimeMs: number;
  /** `ForeignFile.footerHash`, which is the same for every copy of the file. */
  readonly footerHash: string;
  /** For an object: the ETag of the version. */
  readonly etag?: string | undefined;
}

/** Everything about a file to attach except the positions of its rows. */
export interface FilePlan extends Omit<FileToAttach, 'object'>, FileIdentity {
  /** Number of rows of each row group. The sum is at least 1. */
  readonly rowGroupRows: readonly number[];
  /** The clock (ms) by which rows without a readable time, and rows with times in the future, were placed. */
  readonly nowMs: number;
  /** The column by whose times the rows were placed; null if the agent had no field of type time. */
  readonly placedBy: AttachedColumn | null;
  /** Number of rows of each hour, ascending: `[partition, rows]`. */
  readonly hours: readonly (readonly [partition: number, rows: number])[];
  /** The hours of the rows of each span, as encoded by `encodePlacements`. They are indexes into `hours`. */
  readonly placements: string;
  /** Minimum and maximum of the field that placed the rows; null if no row has a time. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
}

/** An attached file. */
export interface AttachedFile extends Omit<FilePlan, 'hours'> {
  /** 12 hexadecimal digits, never reused. */
  readonly id: string;
  /** The positions of the rows, one run for each hour, ascending. Within an hour the rows are in file order. */
  readonly runs: readonly OrdinalRun[];
  /** Absent until the file has been indexed. */
  readonly index?: FileIndex | undefined;
}

/** Number of rows of a file. */
export function rowsOfFile({ rowGroupRows }: Pick<FilePlan, 'rowGroupRows'>): number {
  return rowGroupRows.reduce((sum, rows) => sum + rows, 0);
}
