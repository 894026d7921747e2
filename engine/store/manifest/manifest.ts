import { sameColumns, type Schema } from '../../terms/schema.js';
import { hourMs, importedPartition, partitionOfTime, type Position } from '../../terms/cursor.js';
import { partitionMax } from '../../terms/limits.js';
import type { Codec } from '../../parquet/compression.js';
import type { FarCopy, FarLeftover } from './far-copy.js';

/** Positions of one partition that follow one another. */
export interface OrdinalRun {
  readonly partition: number;
  readonly firstOrdinal: number;
  readonly rows: number;
}

/** Rows that stand one after another in a segment and whose ordinals do too: the entry of the sparse cursor index. */
export interface Run extends OrdinalRun {
  /** Row of the segment (not of the row group) that holds `firstOrdinal`. */
  readonly firstRow: number;
}

/** One live sealed segment. */
export interface SegmentEntry {
  /** Path under the agent's folder: `dt=YYYY-MM-DD/<name>.parquet`. */
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  /** Rows of each row group, in the order of the file. */
  readonly rowGroupRows: readonly number[];
  /** Ascending, by position and by row. */
  readonly runs: readonly Run[];
  /** Bounds of the placement field over all rows; null when no row has one. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  readonly footerOffset: number;
  readonly footerBytes: number;
  /** crc32 of the footer's bytes, which are checked before any statistic in them is believed. */
  readonly footerChecksum: number;
  readonly schemaVersion: number;
  readonly codec: Codec;
  /** Bytes of the gram filters in the file. */
  readonly gramFilterBytes: number;
  /** Bytes of the value filters in the file, their sketches included. */
  readonly valueFilterBytes: number;
  /** Bytes of the summary, which ends where the footer begins; 0 in a segment that is older than value filters. */
  readonly summaryBytes: number;
  /** Length of the segment's header, behind the first magic number. */
  readonly headerBytes: number;
  /** Files whose records these are now: compaction's inputs, or the hot file that was sealed. */
  readonly replaces: readonly string[];
  /** First partition whose records are live: retention has taken those before. Absent: all are. */
  readonly liveFrom?: number | undefined;
  /** Records that were beyond retention when they were loaded are kept until then (ms). Absent: by their positions. */
  readonly keepUntilMs?: number | undefined;
  /** Its copy in the far tier. Such a segment is not written anew. Absent: it has none. */
  readonly far?: FarCopy | undefined;
  /** It was brought back from the far tier, and is not shipped unless somebody says so. Such a segment is not written anew either. */
  readonly stays?: true | undefined;
}

/** What a segment's own header can say of it. */
export type SegmentFacts = Omit<
  SegmentEntry,
  'file' | 'replaces' | 'liveFrom' | 'keepUntilMs' | 'far' | 'stays'
>;

/** A hot file that the manifest names. At most the last one is still appended to. */
export interface HotEntry {
  /** Path under the agent's folder: `hot/<name>.arrows`. */
  readonly file: string;
  readonly schemaVersion: number;
  /** Length that is known to be committed, from a clean close or a failed write; null while it grows. */
  readonly committedBytes: number | null;
  /** Batches below this length are counted in this manifest's ordinals, checkpoints and counters already. */
  readonly foldedBytes: number;
  /** Positions of the rows below `foldedBytes`, in their order: what damage there costs. */
  readonly runs: readonly Run[];
  /** When it was begun, by the clock (ms): it is sealed when that day has ended. */
  readonly createdMs: number;
}

/**
 * How far one source file has been stored. Its identity is what it begins with, not its name;
 * the bytes are those of the uncompressed content.
 */
export interface Checkpoint {
  /** crc-free identity: SHA-256 (hex) over the first `headBytes` bytes. */
  readonly headHash: string;
  readonly headBytes: number;
  /** First byte that is not stored yet. */
  readonly offset: number;
  /** The content up to `offset`, where it was read in one go: `xxh64:` and its XXH64 (hex). Else null. */
  readonly contentHash: string | null;
  /** SHA-256 (hex) of the last bytes before `offset`, at most `tailBytesMax`. Absent: there is no source, only a mark. */
  readonly tailHash?: string | undefined;
  /** Device and number of the file that was read, `dev:ino`; absent where there was none. */
  readonly inode?: string | undefined;
  /** The same for a compressed file that a load has read. Only the commit looks at it; it is not stored, since copies are known too. */
  readonly packedInode?: string | undefined;
  /** Length of that file where it is compressed and its content ends at `offset`; else absent. */
  readonly packedBytes?: number | undefined;
  /** The stored content ends inside a line that had no line end yet. */
  readonly endsInLine: boolean;
  /** `checkpointKey` of the checkpoint that this one went on from and takes the place of; absent when it began anew. */
  readonly continues?: string | undefined;
  /** Last known path, for people. */
  readonly path: string;
  /** Placement time of the last record (ms), where the next one goes if its time can't be read; null for none. */
  readonly lastTimeMs: number | null;
  readonly records: number;
  readonly rejected: number;
}

/** What one load has stored: which records, and of what. */
export interface LoadEntry {
  /** The clock (ms) by which it placed records without a readable time, and those of times to come. */
  readonly nowMs: number;
  /** The sources that gave records, in the order in which they were read. */
  readonly parts: readonly LoadedPart[];
  /** Ascending, one for each partition: there its records have these positions, in order of time and then of `parts`. */
  readonly runs: readonly LoadedRun[];
  /** The positions among these whose records somebody has removed: they are not lost. Absent: none. */
  readonly removed?: readonly OrdinalRun[] | undefined;
  /** Those in partitions below `below` were beyond retention, and are kept until then (ms); absent where none was. */
  readonly beyond?: { readonly below: number; readonly keepUntilMs: number } | undefined;
}

/** The part of a source's content that a load has stored. */
export interface LoadedPart {
  /** How far the source was stored before; null for not at all. */
  readonly from: Checkpoint | null;
  /** How far it is since. */
  readonly until: Checkpoint;
  /** When its file was changed last (ms), by which times were completed that name no year. */
  readonly writtenMs: number;
}

export interface LoadedRun extends OrdinalRun {
  /** The squares of the records' placement times (ms after the hour), summed up modulo 2^32. */
  readonly timesSum: number;
}

export interface RejectedEntry {
  /** Path under the agent's folder: `rejected/<name>.jsonl`. */
  readonly file: string;
  readonly bytes: number;
  readonly lines: number;
  /** crc32 of those bytes. */
  readonly checksum: number;
  /** Highest partition of the agent when it was closed, by which retention goes. Absent until a manifest names the file. */
  readonly partition?: number | undefined;
}

/** A list of attached files, which is a file of its own: thousands of them would make each manifest long. */
export interface AttachedList {
  /** Path under the agent's folder: `attached/<name>.list`. */
  readonly file: string;
  readonly bytes: number;
  /** crc32 of those bytes. */
  readonly checksum: number;
  /** How many files it names, and their rows. */
  readonly files: number;
  readonly rows: number;
  /** Files of their indexes, under the agent's folder. */
  readonly indexes: readonly string[];
}

/** The only truth about an agent's records: what it does not name does not exist. */
export interface Manifest {
  /** Counts up by one with each publication. */
  readonly number: number;
  readonly agent: string;
  /** The current schema is the last one. Versions count from 1. */
  readonly schemas: readonly { readonly version: number; readonly schema: Schema }[];
  readonly segments: readonly SegmentEntry[];
  readonly hot: readonly HotEntry[];
  /** Files of other programs that are answered from where they lie. */
  readonly attached: readonly AttachedList[];
  /** First partition of which their rows are live: retention hides those before. Absent: all are. */
  readonly attachedFrom?: number | undefined;
  /** What is to be dropped in the far tier. Absent: nothing. */
  readonly farLeftovers?: readonly FarLeftover[] | undefined;
  /** Next ordinal of every partition that ever held a record, for ever: `[partition, next]`, ascending. */
  readonly nextOrdinals: readonly (readonly [number, number])[];
  /** No ordinal below this is given any more, in any partition: a rebuilt manifest does not know which ones were. */
  readonly ordinalsFrom: number;
  /** Highest partition that ever held a committed record (`w` in semantics.md); 0 for none. */
  readonly highestPartition: number;
  readonly checkpoints: readonly Checkpoint[];
  /** What loads have given, the newest last: as far back as there is room for, and as retention has not taken it. */
  readonly loads: readonly LoadEntry[];
  readonly rejected: readonly RejectedEntry[];
  /** Counts over the agent's life. */
  readonly counters: Counters;
  /** What retention has taken, over the agent's life. */
  readonly retired: Retired;
  /** How long records are kept. Absent: for ever. */
  readonly retention?: KeptPolicy | undefined;
}

/** How long, and how much, an agent's records are kept. Null: without end. */
export interface RetentionPolicy {
  /** Age at which records go, in milliseconds. */
  readonly periodMs: number | null;
  /** Bytes on the disk; the oldest records go first. The newest partition stays, however large it is. */
  readonly bytesMax: number | null;
}

/** The policy that is in force. */
export interface KeptPolicy extends RetentionPolicy {
  /** One that was asked for and takes nothing yet: a stricter one, or any once time has leapt. */
  readonly pending?: PendingPolicy | undefined;
}

export interface PendingPolicy extends RetentionPolicy {
  /** Time has leapt: until this policy is in force, no record goes for its age. Absent: the policy of before goes on. */
  readonly leapt?: true | undefined;
  /** When it was asked for first, by the clock (ms). */
  readonly sinceMs: number;
  /** How long it waits from then on. */
  readonly graceMs: number;
}

export interface Retired {
  readonly records: number;
  /** Of the segments that left as a whole. */
  readonly bytes: number;
  readonly segments: number;
  /** All of them lay in partitions below this one. */
  readonly below: number;
}

export const nothingRetired: Retired = { records: 0, bytes: 0, segments: 0, below: 0 };

export interface Counters {
  readonly records: number;
  readonly rejected: number;
  /** Values that did not read as their field's type and are stored as null. */
  readonly unreadableValues: number;
  /** Byte sequences that were not UTF-8 and became U+FFFD. */
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

/** The runs of a segment that are live. */
export function liveRuns(entry: SegmentEntry): readonly Run[] {
  const { runs, liveFrom } = entry;
  return liveFrom === undefined ? runs : runs.filter(({ partition }) => partition >= liveFrom);
}

/** Records of a segment that are live. */
export function liveRows(entry: SegmentEntry): number {
  return liveRuns(entry).reduce((sum, { rows }) => sum + rows, 0);
}

/** Whether a segment's rows are in the far tier alone: then there is no file of it. */
export function isFarOnly({ far }: SegmentEntry): boolean {
  return far?.isOnly === true;
}

/**
 * The partition by which a run of a segment ages: its own, but for imported records the hour of the newest of their segment, since their
 * positions tell no time. Those of which none has a time are as the newest.
 */
export function ageingPartition({ timeMaxMs }: Pick<SegmentEntry, 'timeMaxMs'>, partition: number): number {
  if (partition !== importedPartition) return partition;
  return timeMaxMs === null ? partitionMax : partitionOfTime(timeMaxMs);
}

/** First position of a run's rows; the last is `rows - 1` ordinals on. */
export function runStart(run: Run): Position {
  return { partition: run.partition, ordinal: run.firstOrdinal };
}

/** The files of rejected lines that are known, each as the newest entry says: `hot` is newer. */
export function mergeRejected(
  known: readonly RejectedEntry[],
  hot: readonly RejectedEntry[],
): RejectedEntry[] {
  const files = new Map(known.map((entry) => [entry.file, entry]));
  for (const entry of hot) files.set(entry.file, entry);
  return [...files.values()];
}

/** The same files, each with the partition that retention goes by: `countWhile` for those that are new, or still grow. */
export function datedRejected(entries: readonly RejectedEntry[], partition: number): RejectedEntry[] {
  return entries.map((entry) => ({ ...entry, partition: entry.partition ?? partition }));
}

/** Adds a run, joining it to the last one where both rows and ordinals go on. */
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
 * The time that ages count from: the clock, but never beyond the newest position, so that a clock that jumps ahead makes
 * nothing old.
 */
export function ageReferenceMs(manifest: Pick<Manifest, 'highestPartition'>, nowMs: number): number {
  return Math.min(nowMs, (manifest.highestPartition + 1) * hourMs);
}

/** The newest version of the fields with the columns of `version`, which may want other filters: segments that are written anew take it. */
export function versionToWrite({ schemas }: Manifest, version: number): number {
  const own = schemas.find((known) => known.version === version)?.schema;
  const newest = schemas.findLast(({ schema }) => own !== undefined && sameColumns(schema, own));
  return newest?.version ?? version;
}

/** Segments whose filters are not those that the fields want: `compact` writes them anew, unless they have been shipped. */
export function segmentsToRefilter(manifest: Manifest): SegmentEntry[] {
  const known = manifest.schemas.map(({ version }) => version);
  const outdated = new Set(known.filter((version) => versionToWrite(manifest, version) !== version));
  return manifest.segments.filter(
    ({ summaryBytes, schemaVersion, far }) =>
      far === undefined && (summaryBytes === 0 || outdated.has(schemaVersion)),
  );
}
