import type { FieldIndex, FieldType, ForeignFormat, Schema, TimeUnit } from '../../engine/index.js';
import { isUndated, type TimestampFormat } from '../times/timestamp.js';

/**
 * What one file of the agents' folder says, checked and with every default filled in. This is plain data:
 * `agent-file.ts` makes it, decoders and collectors read it.
 */
export interface AgentDefinition {
  /** The file's name without its ending, which is the `agent_name` of the route. */
  readonly name: string;
  /** The YAML file, as it was named to the reader. */
  readonly path: string;
  /** In the order of the response. None where they are those of the archive's files, which nobody has looked at yet. */
  readonly fields: readonly FieldDefinition[];
  /** The same fields as the engine stores them. */
  readonly schema: Schema;
  /** Logs that are followed. */
  readonly file?: FileInput;
  /** Files that lie there already. */
  readonly archive?: ArchiveInput;
  readonly retention?: Retention;
  readonly rotate?: Rotation;
  /** What the rejected lines that are kept may take, in bytes; absent for what is usual. */
  readonly rejectedBytesMax?: number;
  readonly system?: SystemInput;
  /** Sentences to say once at the start: keys that are accepted and not used (yet). */
  readonly notes: readonly string[];
}

export interface FieldDefinition {
  readonly name: string;
  readonly type: FieldType;
  /**
   * The parsed field (capture, key of JSON or logfmt, or of a folder) that gives the value; unused when there is a template. Of files of
   * Parquet and Arrow the column.
   */
  readonly source: string;
  readonly description?: string;
  /** Fields of type string or int: keep filters (true), larger ones (`full`, strings), or none (false); absent lets the data decide. */
  readonly index?: FieldIndex;
  /** Time fields: how the text reads. Absent: integers, milliseconds since the epoch. */
  readonly timestamp?: TimestampFormat;
  /** Time fields: what the numbers of a column count that is no time in files of Parquet and Arrow. */
  readonly unit?: TimeUnit;
  /** A Go template over the parsed fields (`template.ts`). */
  readonly template?: string;
}

/** How lines read. */
export interface LineFormat {
  readonly format: 'plain' | 'json' | 'logfmt';
  /** RE2 expression of a line; `plain` only. Its named captures are parsed fields. */
  readonly regex?: string;
  /** Records of several lines; absent where each line is one. */
  readonly multiline?: Multiline;
}

export interface FileInput extends LineFormat {
  /** Absolute path of the folder. */
  readonly directory: string;
  /** RE2 expression that the whole file name must match; its named captures are parsed fields. */
  readonly namePattern: string;
}

/** Files that lie there already: answered from where they lie (`in-place`), or stored once (`import`). */
export interface ArchiveInput {
  /** Absolute path of the folder that relative globs start from. */
  readonly folder: string;
  readonly globs: readonly ArchiveGlob[];
  readonly mode: 'in-place' | 'import';
  /** How lines read, where `file` does not say it. */
  readonly lines?: LineFormat;
  /** The field that places records, as it is written; absent for the first of type time. */
  readonly time?: string;
  /** What becomes of the rows of a file that has changed: queries that need them fail, or those of the new file take their place. */
  readonly changed: 'fail' | 'replace';
  /** The same of a file that is not there any more. */
  readonly missing: 'fail' | 'retire';
  /** The agent's fields are those of the files. */
  readonly infersFields: boolean;
  /** Where the section stands in the agent's file, for problems that its files show. */
  readonly place: { readonly line: number; readonly column: number };
}

/** Files by their paths, and what they are. */
export interface ArchiveGlob {
  /** As it is written. */
  readonly glob: string;
  readonly format: ForeignFormat | 'lines';
}

/** How lines make records: one begins with each line that `start` finds. */
export interface Multiline {
  /** RE2 expression. */
  readonly start: string;
  /** Silence after which a record that nothing follows is taken for whole, in milliseconds. */
  readonly timeoutMs: number;
  /** A record ends with so many lines… */
  readonly linesMax: number;
  /** …and before a line with which it would have more bytes, line ends included. A line alone may. */
  readonly bytesMax: number;
}

export interface Retention {
  /** Age at which records go, in milliseconds; null means never. */
  readonly periodMs: number | null;
  /** How often to look, in milliseconds. */
  readonly intervalMs: number;
  /** Bytes on the disk beyond which the oldest records go; null means any number. */
  readonly bytesMax: number | null;
  /** How long a change waits that takes more records than before, in milliseconds. */
  readonly graceMs: number;
}

export type RotationMethod = 'truncate' | 'rename';

export interface Rotation {
  readonly method: RotationMethod;
  /** A file of this size is rotated; null when none is given. */
  readonly sizeBytes: number | null;
  /** Command to run afterwards. */
  readonly run?: string;
}

export interface SystemInput {
  /** Time between two records. */
  readonly intervalMs: number;
  /** A path on the file system to report on. */
  readonly disk?: { readonly path: string };
  /** Name of a network interface, or `default`. */
  readonly net?: { readonly interface: string };
}

/** How the lines of an agent read; undefined for one that has none. */
export function lineFormatOf({ file, archive }: AgentDefinition): LineFormat | undefined {
  return file ?? archive?.lines;
}

/** Whether some files of an archive have columns: those of Parquet and Arrow. */
export function hasColumns(archive: Pick<ArchiveInput, 'globs'> | undefined): boolean {
  return archive?.globs.some(({ format }) => format !== 'lines') === true;
}

/** Whether the times of an agent need to be told when its lines were written. */
export function hasUndatedTimes({ fields }: AgentDefinition): boolean {
  return fields.some(({ timestamp }) => isUndated(timestamp));
}
