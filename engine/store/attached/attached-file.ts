import type { ForeignFormat } from '../../foreign/foreign-file.js';
import type { AttachedColumn } from '../../terms/schema.js';
import type { FileIndex } from './file-index.js';
import type { OrdinalRun } from '../manifest/manifest.js';

/** A file to attach: one that another program wrote, and that is answered from where it lies. */
export interface FileToAttach {
  /** Absolute. */
  readonly path: string;
  readonly format: ForeignFormat;
  /** What the names of its folders say, by column; null is the value of all rows, too. They win over columns of the same name. */
  readonly constants: Readonly<Record<string, string | null>>;
  /** Of an object, as it was listed: it is read as long as it is that version. */
  readonly object?: Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'> | undefined;
}

/** What tells whether a file is still the one that was attached. */
export interface FileIdentity {
  readonly bytes: number;
  /** When it was changed last (ms). Another time with the same footer is the same file. */
  readonly mtimeMs: number;
  /** `ForeignFile.footerHash`: the same in every copy. */
  readonly footerHash: string;
  /** Of an object: what its storage calls this version. */
  readonly etag?: string | undefined;
}

/** What is read of a file before it is attached: all that its entry needs but positions. */
export interface FilePlan extends Omit<FileToAttach, 'object'>, FileIdentity {
  /** Rows of each row group; their sum is at least 1. */
  readonly rowGroupRows: readonly number[];
  /** The clock (ms) by which rows without a readable time, and those of times to come, were placed. */
  readonly nowMs: number;
  /** The column whose times placed the rows; null where the agent had no field of type time. */
  readonly placedBy: AttachedColumn | null;
  /** Rows of each hour, ascending by hour: `[partition, rows]`. */
  readonly hours: readonly (readonly [partition: number, rows: number])[];
  /** Where the rows of each span go, `encodePlacements`: the hours are indexes in `hours`. */
  readonly placements: string;
  /** Bounds of the field that placed the rows; null when no row has a time. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
}

/** An attached file. */
export interface AttachedFile extends Omit<FilePlan, 'hours'> {
  /** 12 hexadecimal digits, never given twice. */
  readonly id: string;
  /** The positions of its rows, one run for each hour, ascending. In an hour they stand in the order of the file. */
  readonly runs: readonly OrdinalRun[];
  /** Absent until it has been indexed. */
  readonly index?: FileIndex | undefined;
}

/** Rows of a file. */
export function rowsOfFile({ rowGroupRows }: Pick<FilePlan, 'rowGroupRows'>): number {
  return rowGroupRows.reduce((sum, rows) => sum + rows, 0);
}
