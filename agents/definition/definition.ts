import type {
  FieldIndex,
  FieldType,
  ForeignFormat,
  Retention,
  Schema,
  TimeUnit,
} from '../../engine/index.js';
import { isUndated, type TimestampFormat } from '../../engine/times/timestamp.js';

/**
 * The content of one file of the agents' folder, validated and with all defaults filled in. Plain data: `agent-file.ts`
 * makes it, decoders and collectors read it.
 */
export interface AgentDefinition {
  /** The file's name without its ending; the `agent_name` of the route. */
  readonly name: string;
  /** Path of the YAML file, as it was given. */
  readonly path: string;
  /** In the order of the response. Empty where the fields are those of the archive's files and these have not been read yet. */
  readonly fields: readonly FieldDefinition[];
  /** The same fields as the engine's schema. */
  readonly schema: Schema;
  /** Logs to follow. */
  readonly file?: FileInput | undefined;
  /** Existing files. */
  readonly archive?: ArchiveInput | undefined;
  readonly retention?: Retention | undefined;
  readonly rotate?: Rotation | undefined;
  /** Limit on the bytes of kept rejected lines; absent for the default. */
  readonly rejectedBytesMax?: number | undefined;
  readonly system?: SystemInput | undefined;
  /** Messages to log once at the start: about keys that are accepted but not used (yet). */
  readonly notes: readonly string[];
}

/** A field of an agent. */
export interface FieldDefinition {
  readonly name: string;
  readonly type: FieldType;
  /**
   * The parsed field (capture, key of JSON or logfmt, or key of a folder) that gives the value; for Parquet and Arrow files,
   * the column. Not used with a template.
   */
  readonly source: string;
  readonly description?: string | undefined;
  /**
   * For fields of type string or int: build filters (true), larger ones (`full`, strings only), or none (false). Absent:
   * decided by the data.
   */
  readonly index?: FieldIndex | undefined;
  /** For time fields: the format of the text. Absent: integers, milliseconds since the epoch. */
  readonly timestamp?: TimestampFormat | undefined;
  /** For time fields read from a column of numbers in Parquet and Arrow files: the unit of the numbers. */
  readonly unit?: TimeUnit | undefined;
  /** A Go template over the parsed fields (`template.ts`). */
  readonly template?: string | undefined;
}

/** Encoding of text that is not UTF-8. */
export type Encoding = 'utf-16le' | 'utf-16be' | 'latin1' | 'windows-1252';

/** Format of lines. */
export interface LineFormat {
  /** `docker` and `cri` are logs of containers, whose texts have the format `payload`; the last three are tables. */
  readonly format: 'plain' | 'json' | 'logfmt' | 'otlp' | 'docker' | 'cri' | 'csv' | 'tsv' | 'w3c';
  readonly payload?: 'plain' | 'json' | 'logfmt' | undefined;
  /** RE2 expression of a line, or of a container's text, for `plain` only. Its named captures are the parsed fields. */
  readonly regex?: string | undefined;
  /** How several lines form a record; absent where each line is one. */
  readonly multiline?: Multiline | undefined;
  /** Records are values of JSON, whatever the lines. `records` is the path of the array with them; empty for none. */
  readonly values?: { readonly records: readonly string[] } | undefined;
  /** Names of a table's columns, for files without a header; `csv` and `tsv` only. */
  readonly columns?: readonly string[] | undefined;
  /** For `csv`: the ASCII character between values; absent for a comma. */
  readonly separator?: string | undefined;
  /** For `csv`: the character before the fraction of a `float`; absent for a point. */
  readonly decimal?: string | undefined;
  /** The part that gets the text of a line that is no record of its format; absent where such a line is rejected. */
  readonly otherwise?: string | undefined;
  /** The encoding of content that does not begin with a byte order mark; absent for UTF-8. */
  readonly encoding?: Encoding | undefined;
  /** RE2 expression of lines that are skipped. */
  readonly skip?: string | undefined;
  /** RE2 expressions of what is masked before anything is stored: their groups, without groups all that they match. */
  readonly mask?: readonly string[] | undefined;
  /** Whether escape sequences of terminals are removed. */
  readonly strip?: 'ansi' | undefined;
  /** Whether blanks at both ends of a line are removed. */
  readonly trim?: boolean | undefined;
}

/** Whether lines of a format are rows of a table. */
export function isTable({ format }: Pick<LineFormat, 'format'>): boolean {
  return format === 'csv' || format === 'tsv' || format === 'w3c';
}

/** Logs to follow: their folders, names and format. */
export interface FileInput extends LineFormat {
  /** Absolute path of the folder, or of the one that contains the folders that `folderPatterns` match. */
  readonly directory: string;
  /** RE2 expressions that the names of the folders below `directory` must match, one for each level; absent for no level. */
  readonly folderPatterns?: readonly string[];
  /** RE2 expression that must match the whole file name; its named captures are parsed fields. */
  readonly namePattern: string;
}

/** The folders with an agent's logs, as one path with expressions where names vary. */
export function shownFolder({ directory, folderPatterns = [] }: FileInput): string {
  return [directory, ...folderPatterns].join('/');
}

/** Existing files: queried in place (`in-place`), or stored once (`import`). */
export interface ArchiveInput {
  /** Absolute path of the folder that relative globs start from. */
  readonly folder: string;
  readonly globs: readonly ArchiveGlob[];
  readonly mode: 'in-place' | 'import';
  /** Set where the only glob is the folder of a table: its format, and the version that is wanted; the newest if absent. */
  readonly table?: { readonly format: TableFormat; readonly at: string | undefined } | undefined;
  /** Format of lines, where `file` does not give it. */
  readonly lines?: LineFormat | undefined;
  /** The field that places records, as written; absent for the first of type time. */
  readonly time?: string | undefined;
  /** For a file that has changed: queries that need its rows fail, or the new file's rows replace them. */
  readonly changed: 'fail' | 'replace';
  /** For a file that is gone: queries that need its rows fail, or its rows are retired. */
  readonly missing: 'fail' | 'retire';
  /** Whether the agent's fields are the columns of the files. */
  readonly infersFields: boolean;
  /** Position of the section in the agent's file, for reporting problems of the archive's files. */
  readonly place: { readonly line: number; readonly column: number };
}

/** The formats of tables. */
export type TableFormat = 'delta' | 'iceberg';

/** A glob, and the format of its files. */
export interface ArchiveGlob {
  /** As written. */
  readonly glob: string;
  readonly format: ForeignFormat | 'lines';
}

/** How lines form records: each line that matches `start` begins one. */
export interface Multiline {
  /** RE2 expression. */
  readonly start: string;
  /** Milliseconds without new data after which a record is complete although no other follows. */
  readonly timeoutMs: number;
  /** A record ends after this many lines … */
  readonly linesMax: number;
  /** … and before a line that would make it larger than this, line ends included. A single line may be larger. */
  readonly bytesMax: number;
}

/** `truncate` empties a log in place; `rename` gives it another name. */
export type RotationMethod = 'truncate' | 'rename';

/** When and how logs are rotated. */
export interface Rotation {
  readonly method: RotationMethod;
  /** Size at which a file is rotated; null where none is given. */
  readonly sizeBytes: number | null;
  /** Command to run after a rotation. */
  readonly run?: string | undefined;
}

/** The figures of this machine to record. */
export interface SystemInput {
  /** Milliseconds between two records. */
  readonly intervalMs: number;
  /** A path on the file system to report. */
  readonly disk?: { readonly path: string };
  /** Name of a network interface, or `default`. */
  readonly net?: { readonly interface: string };
}

/** The line format of an agent; undefined for an agent without lines. */
export function lineFormatOf({ file, archive }: AgentDefinition): LineFormat | undefined {
  return file ?? archive?.lines;
}

/** The parts that a container's line gives to its text; Docker's also have `container.attrs.NAME`. */
export const containerParts = ['container.text', 'container.stream', 'container.time'] as const;

/** Whether the lines are those of a container runtime, around what a container writes. */
export function isOfContainers({ format }: Pick<LineFormat, 'format'>): boolean {
  return format === 'docker' || format === 'cri';
}

/** Whether some files of an archive are columnar, i.e. Parquet or Arrow. */
export function hasColumns(archive: Pick<ArchiveInput, 'globs'> | undefined): boolean {
  return archive?.globs.some(({ format }) => format !== 'lines') === true;
}

/** Whether the times of an agent can only be completed by knowing when its lines were written. */
export function hasUndatedTimes({ fields }: AgentDefinition): boolean {
  return fields.some(({ timestamp }) => isUndated(timestamp));
}
