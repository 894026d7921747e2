import { sameColumns, withRemoved, type FieldType, type Schema } from '../../core/schema.js';
import { hourMs, importedPartition, partitionOfTime, type Position } from '../../core/cursor.js';
import { partitionMax } from '../../core/limits.js';
import type { Codec } from '../../parquet/compression.js';

/** Consecutive positions of one partition. */
export interface OrdinalRun {
  readonly partition: number;
  readonly firstOrdinal: number;
  readonly rows: number;
}

/** Consecutive rows of a segment that have consecutive ordinals: an entry of the sparse cursor index. */
export interface Run extends OrdinalRun {
  /** Row of the segment (not of the row group) that has `firstOrdinal`. */
  readonly firstRow: number;
}

/** One live sealed segment. */
export interface SegmentEntry {
  /** Path relative to the agent's folder: `dt=YYYY-MM-DD/<name>.parquet`. */
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  /** Rows of each row group, in file order. */
  readonly rowGroupRows: readonly number[];
  /** Ascending both by position and by row. */
  readonly runs: readonly Run[];
  /** Minimum and maximum of the placement field over all rows; null when no row has a value. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  readonly footerOffset: number;
  readonly footerBytes: number;
  /** crc32 of the footer's bytes. It is checked before any statistic in the footer is used. */
  readonly footerChecksum: number;
  readonly schemaVersion: number;
  readonly codec: Codec;
  /** Bytes of the gram filters in the file. */
  readonly gramFilterBytes: number;
  /** Bytes of the value filters in the file, their sketches included. */
  readonly valueFilterBytes: number;
  /** Bytes of the summary, which ends where the footer begins; 0 in a segment written before value filters were introduced. */
  readonly summaryBytes: number;
  /** Length of the segment's header, which follows the leading magic number. */
  readonly headerBytes: number;
  /** Files whose records this segment took over: the inputs of a compaction, or the hot file that was sealed. */
  readonly replaces: readonly string[];
  /** First partition whose records are live; retention has taken the earlier ones. Absent: all are live. */
  readonly liveFrom?: number | undefined;
  /** Set for records that were past the retention period when they were loaded: they are kept until this time (ms). Absent: they age by position. */
  readonly keepUntilMs?: number | undefined;
  /** Set where the file has a column for rows that rules of retention have removed: their number in each partition, ascending. */
  readonly removed?: readonly (readonly [partition: number, rows: number])[] | undefined;
  /** The rules of retention that have been applied to all rows (`ruleMark`). Absent: none. */
  readonly ruled?: readonly string[] | undefined;
  /** The segment's copy in the far tier, if it has one. Such a segment is not rewritten. */
  readonly far?: FarCopy | undefined;
  /** The segment was brought back from the far tier and is shipped again only on demand. It is not rewritten either. */
  readonly stays?: true | undefined;
}

/** The part of an entry that the segment's own header holds too. */
export type SegmentFacts = Omit<
  SegmentEntry,
  'file' | 'replaces' | 'liveFrom' | 'keepUntilMs' | 'removed' | 'ruled' | 'far' | 'stays'
>;

/** A hot file of the agent. At most the last one is still appended to. */
export interface HotEntry {
  /** Path relative to the agent's folder: `hot/<name>.arrows`. */
  readonly file: string;
  readonly schemaVersion: number;
  /** Committed length, known after a clean close or a failed write; null while the file grows. */
  readonly committedBytes: number | null;
  /** This manifest's ordinals, checkpoints and counters already include the batches below this length. */
  readonly foldedBytes: number;
  /** Positions of the rows below `foldedBytes`, in order. They tell what is lost if the file is damaged. */
  readonly runs: readonly Run[];
  /** Creation time by the clock (ms). The file is sealed when that day has ended. */
  readonly createdMs: number;
}

/**
 * How far one source file has been stored. The source is identified by its beginning, not by its name. All offsets and lengths refer to the
 * uncompressed content, except `packedBytes`.
 */
export interface Checkpoint {
  /** SHA-256 (hex) of the first `headBytes` bytes, which identifies the source. */
  readonly headHash: string;
  readonly headBytes: number;
  /** Offset of the first byte that is not stored yet. */
  readonly offset: number;
  /** `xxh64:` and the XXH64 (hex) of the content up to `offset`, if it was read in one pass; else null. */
  readonly contentHash: string | null;
  /** SHA-256 (hex) of the last bytes before `offset`, at most `tailBytesMax`. Absent: the checkpoint has no source and is only a mark. */
  readonly tailHash?: string | undefined;
  /** Hashes of the bytes before a series of offsets up to `offset`, by which a beginning of the source is recognised; absent if not known. */
  readonly samples?: string | undefined;
  /** Device and inode of the file that was read, `dev:ino`; absent if it was no file. */
  readonly inode?: string | undefined;
  /** When that file was created (ms); absent if not known. */
  readonly bornMs?: number | undefined;
  /**
   * The same for a compressed file that a load has read. Used only during the commit and not stored, because a copy of the file must be
   * recognised too.
   */
  readonly packedInode?: string | undefined;
  /** Length of the compressed file, if the source is compressed and its content ends at `offset`; else absent. */
  readonly packedBytes?: number | undefined;
  /** Number of the source among those with the same content that are sources of their own: 1 for the second. Absent: it is the first. */
  readonly copy?: number | undefined;
  /** Whether the stored content ends inside a line that had no line end yet. */
  readonly endsInLine: boolean;
  /** `checkpointKey` of the checkpoint that this one continues and replaces; absent when the source was read from its start. */
  readonly continues?: string | undefined;
  /** Last known path, for messages. */
  readonly path: string;
  /** Where the file was, if that path was a symbolic link. */
  readonly target?: string | undefined;
  /** Placement time of the last record (ms); null for none. The next record gets it if its own time cannot be read. */
  readonly lastTimeMs: number | null;
  readonly records: number;
  readonly rejected: number;
  /** What must be known to read on at `offset`, as its reader writes it, at most 64 KiB. Absent: nothing, or it is not known. */
  readonly reading?: string | undefined;
}

/** What one load has stored, and from which sources. It allows lost records to be restored. */
export interface LoadEntry {
  /** The clock (ms) by which the load placed records without a readable time, and records with times in the future. */
  readonly nowMs: number;
  /** The sources that gave records, in the order in which they were read. */
  readonly parts: readonly LoadedPart[];
  /** The positions of the load's records, one run for each partition, ascending. Within a partition they are in order of time and then of `parts`. */
  readonly runs: readonly LoadedRun[];
  /** The positions in `runs` whose records were removed on request, and so are not lost. Absent: none. */
  readonly removed?: readonly OrdinalRun[] | undefined;
  /** Set if the load stored records past the retention period: those in partitions below `below` are kept until `keepUntilMs`. */
  readonly beyond?: { readonly below: number; readonly keepUntilMs: number } | undefined;
}

/** The part of a source that a load has stored. */
export interface LoadedPart {
  /** How far the source was stored before the load; null for not at all. */
  readonly from: Checkpoint | null;
  /** How far the source is stored after the load. */
  readonly until: Checkpoint;
  /** Modification time of the file (ms), by which times without a year were completed. */
  readonly writtenMs: number;
}

/** The positions of one load in one partition. */
export interface LoadedRun extends OrdinalRun {
  /** Checksum of the placement times: the sum, modulo 2^32, of the squares of their milliseconds after the start of the hour. */
  readonly timesSum: number;
}

/** A file of rejected lines. */
export interface RejectedEntry {
  /** Path relative to the agent's folder: `rejected/<name>.jsonl`. */
  readonly file: string;
  readonly bytes: number;
  readonly lines: number;
  /** crc32 of the first `bytes` bytes of the file. */
  readonly checksum: number;
  /** Highest partition of the agent when the file was closed; retention ages the file by it. Absent until a manifest names the file. */
  readonly partition?: number | undefined;
}

/** A list of attached files. It is a file of its own, because thousands of attached files would make each manifest long. */
export interface AttachedList {
  /** Path relative to the agent's folder: `attached/<name>.list`. */
  readonly file: string;
  readonly bytes: number;
  /** crc32 of the file's bytes. */
  readonly checksum: number;
  /** Number of files in the list, and of their rows. */
  readonly files: number;
  readonly rows: number;
  /** Paths of their index files, relative to the agent's folder. */
  readonly indexes: readonly string[];
}

/** The committed state of an agent. Records and files that the newest manifest does not name do not exist. */
export interface Manifest {
  /** Increases by one with each publication. */
  readonly number: number;
  readonly agent: string;
  /** All schemas that records were stored with. Versions count from 1; the last schema is the current one. */
  readonly schemas: readonly { readonly version: number; readonly schema: Schema }[];
  readonly segments: readonly SegmentEntry[];
  readonly hot: readonly HotEntry[];
  /** Lists of files of other programs that are answered in place. */
  readonly attached: readonly AttachedList[];
  /** First partition whose rows of attached files are live; retention hides the earlier ones. Absent: all are live. */
  readonly attachedFrom?: number | undefined;
  /** Attempts to be dropped in the far tier. Absent: none. */
  readonly farLeftovers?: readonly FarLeftover[] | undefined;
  /** Next ordinal of every partition that ever held a record: `[partition, next]`, ascending. Entries are never removed. */
  readonly nextOrdinals: readonly (readonly [number, number])[];
  /** Smallest ordinal that any partition may assign. A rebuilt manifest raises it, because it does not know which ordinals were used. */
  readonly ordinalsFrom: number;
  /**
   * Highest partition that ever held a committed record; 0 for none. Live records are placed in no earlier one, unless they are late. Only
   * a removal of the records ahead of the clock lowers it.
   */
  readonly highestPartition: number;
  readonly checkpoints: readonly Checkpoint[];
  /** The loads, newest last. Older ones are dropped when the limit on their runs is exceeded or when retention has taken their records. */
  readonly loads: readonly LoadEntry[];
  readonly rejected: readonly RejectedEntry[];
  /** Counts over the agent's lifetime. */
  readonly counters: Counters;
  /** What retention has removed over the agent's lifetime. */
  readonly retired: Retired;
  /** How long records are kept. Absent: for ever. */
  readonly retention?: KeptPolicy | undefined;
}

/** A filter of a rule of retention: a record must have one of the values in the field. It is plain data, and names the field. */
export interface RuleFilter {
  readonly field: string;
  /** A field with the name and another type is another field. */
  readonly type: FieldType;
  /** As in the predicates of queries; `exists` has the value `true` or `false`. */
  readonly op: string;
  readonly values: readonly string[];
}

/** Records that match all filters are removed when they are older than this. */
export interface RetentionRule {
  readonly where: readonly RuleFilter[];
  readonly periodMs: number;
}

/** How long, and how many bytes, an agent's records are kept. Null means no limit. */
export interface RetentionPolicy {
  /** Age (ms) after which records are removed. */
  readonly periodMs: number | null;
  /** Limit on the bytes on disk. The oldest records are removed first; the newest partition always stays. */
  readonly bytesMax: number | null;
  /** Records that are kept for shorter. Absent: none. */
  readonly rules?: readonly RetentionRule[] | undefined;
}

/** The policy in force, and one that may be waiting to replace it. */
export interface KeptPolicy extends RetentionPolicy {
  /** A policy that was asked for and waits for its grace period: because it removes more than the one in force, or because time has leapt. */
  readonly pending?: PendingPolicy | undefined;
}

/** A policy that is to come into force later. */
export interface PendingPolicy extends RetentionPolicy {
  /** Set if time has leapt (see `hasLeapt`): until this policy is in force, no record is removed for its age. Absent: the policy in force goes on. */
  readonly leapt?: true | undefined;
  /** When it was first asked for, by the clock (ms). */
  readonly sinceMs: number;
  /** How long it waits from `sinceMs` on. */
  readonly graceMs: number;
}

/** What retention has removed. */
export interface Retired {
  readonly records: number;
  /** Bytes of the segments that were removed as a whole. */
  readonly bytes: number;
  readonly segments: number;
  /** All removed records were in partitions below this one. */
  readonly below: number;
}

export const nothingRetired: Retired = { records: 0, bytes: 0, segments: 0, below: 0 };

/** Counts of records, lines and values. */
export interface Counters {
  readonly records: number;
  readonly rejected: number;
  /** Values that could not be read as their field's type and are stored as null. */
  readonly unreadableValues: number;
  /** Byte sequences that were not UTF-8 and were replaced by U+FFFD. */
  readonly replacedBytes: number;
  /** Bytes of input lines. */
  readonly inputBytes: number;
}

export const noCounters: Counters = {
  records: 0,
  rejected: 0,
  unreadableValues: 0,
  replacedBytes: 0,
  inputBytes: 0,
};

/** The sums of two sets of counters. */
export function addCounters(a: Counters, b: Counters): Counters {
  return {
    records: a.records + b.records,
    rejected: a.rejected + b.rejected,
    unreadableValues: a.unreadableValues + b.unreadableValues,
    replacedBytes: a.replacedBytes + b.replacedBytes,
    inputBytes: a.inputBytes + b.inputBytes,
  };
}

/** The live runs of a segment. */
export function liveRuns(entry: SegmentEntry): readonly Run[] {
  const { runs, liveFrom } = entry;
  return liveFrom === undefined ? runs : runs.filter(({ partition }) => partition >= liveFrom);
}

/** Number of live records of a segment. */
export function liveRows(entry: SegmentEntry): number {
  const { removed = [], liveFrom = 0 } = entry;
  return removed.reduce((sum, [at, rows]) => (at < liveFrom ? sum : sum - rows), livePlaces(entry));
}

/** Number of positions in the live runs of a segment: those of its live records, and of rows that rules of retention have removed. */
export function livePlaces(entry: SegmentEntry): number {
  return liveRuns(entry).reduce((sum, { rows }) => sum + rows, 0);
}

/** The columns of a segment's file, if its fields are those of `schema`. */
export function storedSchema({ removed }: Pick<SegmentEntry, 'removed'>, schema: Schema): Schema {
  return removed === undefined ? schema : withRemoved(schema);
}

/** Whether a segment's rows are only in the far tier, so that it has no local file. */
export function isFarOnly({ far }: SegmentEntry): boolean {
  return far?.isOnly === true;
}

/**
 * The partition by which a run of a segment ages. This is the run's own partition, except for imported records, whose positions tell no
 * time: they age by the hour of the newest record of their segment. If none of those has a time, they age as the newest possible.
 */
export function ageingPartition({ timeMaxMs }: Pick<SegmentEntry, 'timeMaxMs'>, partition: number): number {
  if (partition !== importedPartition) return partition;
  return timeMaxMs === null ? partitionMax : partitionOfTime(timeMaxMs);
}

/** Position of the run's first row. The last row is `rows - 1` ordinals higher. */
export function runStart(run: Run): Position {
  return { partition: run.partition, ordinal: run.firstOrdinal };
}

/** Merges entries of files of rejected lines. For a file in both lists the entry of `hot`, which is newer, is taken. */
export function mergeRejected(
  known: readonly RejectedEntry[],
  hot: readonly RejectedEntry[],
): RejectedEntry[] {
  const files = new Map(known.map((entry) => [entry.file, entry]));
  for (const entry of hot) files.set(entry.file, entry);
  return [...files.values()];
}

/** Sets the partition by which retention ages each file that has none yet: files that are new, or still grow. */
export function datedRejected(entries: readonly RejectedEntry[], partition: number): RejectedEntry[] {
  return entries.map((entry) => ({ ...entry, partition: entry.partition ?? partition }));
}

/** Appends a run, or extends the last one if both rows and ordinals are contiguous. */
export function addRun(runs: Run[], { partition, firstOrdinal, firstRow, rows }: Run): void {
  const last = runs.at(-1);
  if (
    last !== undefined &&
    last.partition === partition &&
    last.firstOrdinal + last.rows === firstOrdinal &&
    last.firstRow + last.rows === firstRow
  ) {
    runs[runs.length - 1] = { ...last, rows: last.rows + rows };
  } else {
    runs.push({ partition, firstOrdinal, firstRow, rows });
  }
}

/**
 * The time from which ages are counted: the clock, but at most the end of the newest partition. A clock that jumps ahead therefore makes no
 * record old.
 */
export function ageReferenceMs(manifest: Pick<Manifest, 'highestPartition'>, nowMs: number): number {
  return Math.min(nowMs, (manifest.highestPartition + 1) * hourMs);
}

/** The newest schema version with the same columns as `version`; it may ask for other filters. Rewritten segments take it. */
export function versionToWrite({ schemas }: Manifest, version: number): number {
  const own = schemas.find((known) => known.version === version)?.schema;
  const newest = schemas.findLast(({ schema }) => own !== undefined && sameColumns(schema, own));
  return newest?.version ?? version;
}

/** Segments whose filters are not those that their fields ask for. `compact` rewrites them, unless they have been shipped. */
export function segmentsToRefilter(manifest: Manifest): SegmentEntry[] {
  const known = manifest.schemas.map(({ version }) => version);
  const outdated = new Set(known.filter((version) => versionToWrite(manifest, version) !== version));
  return manifest.segments.filter(
    ({ summaryBytes, schemaVersion, far }) =>
      far === undefined && (summaryBytes === 0 || outdated.has(schemaVersion)),
  );
}

/**
 * A copy in the far tier (a cluster) of all rows of a sealed segment's file. Rows of it that are no longer live locally are not answered
 * from the copy either.
 */
export interface FarCopy {
  /** Id of the segment in the far tier, 16 hexadecimal digits. It is the same for all attempts to ship the segment. */
  readonly unit: string;
  /** Id of the attempt whose rows are read, 16 hexadecimal digits. Rows of other attempts are ignored. */
  readonly attempt: string;
  /** Index of its shard in the configuration, from 0. */
  readonly shard: number;
  /** Number of rows, as counted on every replica. */
  readonly rows: number;
  /** Bytes that were sent. */
  readonly bytes: number;
  /** Checksum of the rows' values: see `FarChecksum`. */
  readonly checksum: string;
  /** Time of the count (ms). */
  readonly shippedMs: number;
  /** Whether the local file is no longer read, so that the far tier has the only copy of these rows. */
  readonly isOnly: boolean;
}

/** One attempt to ship a segment. Its rows in the cluster carry `unit` and `attempt`. */
export type FarAttempt = Pick<FarCopy, 'unit' | 'attempt' | 'shard'>;

/** An attempt whose rows in the cluster are to be dropped, at once or if the attempt fails. */
export interface FarLeftover extends FarAttempt {
  /**
   * For an attempt under way, when it began (ms). Otherwise the time since which it cannot be a copy any more: queries that began before
   * may still read it.
   */
  readonly sinceMs: number;
  /** The segment that is shipped, while the attempt is under way. */
  readonly file?: string | undefined;
}
