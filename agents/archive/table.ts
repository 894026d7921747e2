import type { ObjectStamp, RowRanges } from '../../engine/index.js';
import type { TableSchema } from './table-schema.js';

/** The deleted rows of a file. */
export interface TableDeletes {
  /** Identifies them: equal where nothing has been deleted since. */
  readonly id: string;
  /** Throws `LogstrataError` where they can't be read. */
  read(): Promise<RowRanges>;
}

/** A live file of a table. */
export interface TableFile {
  readonly path: string;
  /** Values of the partition, by the names of columns in files. */
  readonly values: Readonly<Record<string, string | null>>;
  /** Whether its rows were in the table before, in files that it has replaced. */
  readonly isRewritten: boolean;
  /** Its deleted rows; absent where there are none. */
  readonly deletes?: TableDeletes | undefined;
  /** Of an object, what is known of it: the files of a table never change. */
  stamp?: ObjectStamp;
}

/** One state of a table. */
export interface TableState {
  /** As people name it: `version 12`. */
  readonly version: string;
  readonly schema: TableSchema;
  readonly files: Iterable<TableFile>;
}

/** A table, which is read as it moves on. */
export interface Table {
  /**
   * The newest state, or the one that is named. A later call may return one that is not the newest yet: files are rewritten only in a state of
   * its own, so that whoever follows the records gets those of files that are rewritten soon after they were added.
   */
  look(): Promise<TableState>;
}
