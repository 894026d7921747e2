import {
  closing,
  firstIndex,
  makeSchema,
  type WorkerPool,
  type AgentStore,
  type Checkpoint,
  checkpointKey,
  type Codec,
  fillTimes,
  type ForeignFormat,
  isLogstrataError,
  type LoadBatch,
  type LoadedPart,
  type LoadSession,
  LogstrataError,
  placementField,
} from '../../engine/index.js';
import { decodeSettings, type DecodeSettings } from '../decode/decode-task.js';
import {
  type FieldDefinition,
  type AgentDefinition,
  hasColumns,
  isTable,
  lineFormatOf,
} from '../definition/definition.js';
import { yearSource } from '../decode/field-writers.js';
import {
  FileLines,
  type FileFrame,
  type FileLinesOptions,
  type FrameConsumer,
} from '../decode/file-lines.js';
import type { DecodedBatch } from '../decode/lent-decoding.js';
import { headIdentity, type Reading, readingText, sha256 } from '../sources/source-position.js';
import { openAtKnownEnd, reopenAt, type SourceCursor, type EqualFiles } from '../sources/source-cursor.js';
import {
  isUndated,
  lacksYear,
  placeBehind,
  yearsBegin,
  type Written,
  type YearPlace,
  latestOf,
} from '../../engine/times/timestamp.js';
import { absolutePath, type OpenFile, openOnDisk } from '../sources/opened-file.js';
import { isOtherFolder, pathCaptures } from '../decode/path-captures.js';
import { toRejectedLines, type RejectedPlaces } from '../decode/rejected-lines.js';
import { type FileTally, type LoadEvent, type LoadProgress, noRecordError } from './load-report.js';
import { unrotatedName } from '../definition/file-captures.js';

/** Options of counting years. */
export interface YearsOptions extends Pick<FileLinesOptions, 'captures' | 'workers' | 'signal'> {
  /** Called with the number of bytes of the file that were read, before decompression. */
  readonly onRead: (fileBytesRead: number) => void;
}

/** The state of year counting at a content offset, relative to the first line, because the file's end is not known yet. */
interface Place {
  readonly offset: number;
  readonly years: readonly YearPlace[];
}

/**
 * Determines when the lines of a file were written whose times lack the year: at the latest when the file was last modified,
 * and one year earlier for each turn of the year that follows. To count these, the file is read once beforehand, as far as
 * it is not stored yet; not where the file's name gives the year, or where all times have one.
 */
export async function fileWritten(
  source: SourceCursor,
  decode: DecodeSettings,
  options: YearsOptions,
): Promise<(offset: number) => Written> {
  const byMs = source.part?.writtenMs ?? source.file.mtimeMs;
  const isCounted = ({ timestamp, template }: FieldDefinition): boolean =>
    timestamp !== undefined &&
    lacksYear(timestamp) &&
    (template !== undefined || !options.captures.has(yearSource));
  if (!decode.definition.fields.some(isCounted)) return () => ({ byMs });
  const onPiece = ({ bytesTaken }: SourceCursor): void => {
    options.signal?.throwIfAborted();
    options.onRead(bytesTaken);
  };
  const again = await reopenAt(source, source.known, onPiece);
  if (source.part !== undefined) again.endAt(source.part.offset);
  try {
    const years = new FileYears(again, decode, options, byMs);
    return await years.count();
  } finally {
    await again.close();
  }
}

/** Decodes only the undated times of a file, and counts its turns of the year. */
class FileYears implements FrameConsumer {
  private readonly places: Place[] = [];
  private running: readonly YearPlace[];

  constructor(
    private readonly source: SourceCursor,
    private readonly decode: DecodeSettings,
    private readonly options: YearsOptions,
    private readonly byMs: number,
  ) {
    this.running = this.decode.definition.fields
      .filter(({ timestamp }) => isUndated(timestamp))
      .map(() => yearsBegin);
  }

  async count(): Promise<(offset: number) => Written> {
    const { source, options, byMs } = this;
    const { definition, timezone } = this.decode;
    const fields = definition.fields.filter(({ timestamp }) => isUndated(timestamp));
    const schema = makeSchema(fields.map(({ name, type }) => ({ name, type })));
    const decode = decodeSettings({ ...definition, fields, schema }, timezone);
    // Frames are decoded in parallel, so each counts from its own beginning.
    const written = { byMs, years: fields.map(() => yearsBegin) };
    await new FileLines(source, { ...options, decode, writtenAt: () => written }, this).run();
    this.places.push({ offset: source.offset, years: this.running });
    const { places, running: last } = this;
    return (offset) => {
      const { years } =
        places[
          Math.max(
            1,
            firstIndex(places.length, (i) => places[i]!.offset > offset),
          ) - 1
        ]!;
      return { byMs, years: years.map((place, i) => countedBack(place, last[i]!)) };
    };
  }

  reject(): Promise<void> {
    return Promise.resolve();
  }

  take({ base }: FileFrame, { batch, years }: DecodedBatch, isLast: boolean): Promise<void> {
    batch?.lease?.free();
    if (!isLast) return Promise.resolve();
    this.places.push({ offset: base, years: this.running });
    this.running = this.running.map((place, i) => placeBehind(place, years?.[i] ?? yearsBegin));
    return Promise.resolve();
  }

  hasRead(): void {
    this.options.onRead(this.source.bytesTaken);
  }
}

/** A place counted back from the last one. Undefined where the lines are not in order: each then has the latest possible year. */
function countedBack(place: YearPlace, last: YearPlace): YearPlace | undefined {
  return last.isOrdered ? { ...place, yearsBack: place.yearsBack - last.yearsBack } : undefined;
}

/** Settings for reading all files of a load. */
export interface ReadSettings {
  readonly store: AgentStore;
  readonly definition: AgentDefinition;
  /** Time zone of times that have none: an IANA name, `UTC`, `Local` or an offset. */
  readonly timezone: string;
  /** Clock, in milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
  /** Threads that decode lines; undefined to decode on the caller's thread. */
  readonly workers?: WorkerPool | undefined;
  /** Opens files; by default, files on disk. */
  readonly openFile?: OpenFile | undefined;
  /** Formats of files that an archive names; other files are recognised by their first bytes. */
  readonly formats?: ReadonlyMap<string, FoundFormat> | undefined;
}

/** Settings for storing what is read. */
export interface StoreSettings extends ReadSettings {
  readonly codec?: Codec | undefined;
  /** Also store records older than the agent's retention period, for that period from now on. */
  readonly beyondRetention?: boolean | undefined;
  readonly onEvent?: ((event: LoadEvent) => void) | undefined;
}

/** Format of a file: lines of text, or a columnar format. */
type FoundFormat = ForeignFormat | 'lines';

/**
 * Default limit on the bytes of rejected lines of one file: this multiple of the file's size, since each line is stored with
 * its reason and position, but at least `rejectedBytesMin`. A compressed file of almost no size may have gigabytes of
 * rejected lines.
 */
export const rejectedShare = 2;
export const rejectedBytesMin = 8 * 1024 * 1024;

/** A file to read into a load unit. */
export interface FileJob {
  readonly path: string;
  /** The path whose name gives field values, where it is not `path`. */
  readonly namedAs?: string;
  /** Distinguishes the files of one unit. */
  readonly source: number;
  /** Checkpoints by which the file may be recognised; empty to store it whatever is known. */
  readonly checkpoints: readonly Checkpoint[];
  /** Tells equal columnar files apart; absent where all of the file is read. */
  readonly equals?: EqualFiles;
  /** Returns the unit's session, which begins when there is something to store. */
  readonly session: () => Promise<LoadSession>;
  readonly tally: FileTally;
  readonly onProgress: (phase: LoadProgress['phase'], fraction: number) => void;
}

/** Result of reading a file to its end. */
export interface ReadFile {
  readonly outcome: 'new' | 'known' | 'empty';
  /** First bytes of the content. */
  readonly head: Uint8Array;
  /** Checkpoint of the file once the unit is committed; null when there is nothing to store. */
  readonly checkpoint: Checkpoint | null;
  /** The part of the file that its records come from; null when there are none. */
  readonly part: LoadedPart | null;
  /** Ids of attached files whose rows these records are; they are detached on commit. */
  readonly detaches?: readonly string[];
}

/**
 * Reads one file into a load unit, from the end of its archived content. Commits nothing.
 *
 * Throws `SourceError` for a problem of this file: unreadable, damaged, changed meanwhile, or no line that becomes a record.
 * Other errors are the storage's.
 */
export async function readFileInto(settings: ReadSettings, job: FileJob): Promise<ReadFile> {
  const onPiece = ({ file, bytesTaken }: SourceCursor): void => {
    settings.signal?.throwIfAborted();
    job.tally.fileBytes = file.size;
    job.tally.fileBytesRead = bytesTaken;
    job.onProgress('checking', fractionRead(job.tally));
  };
  // Of a followed log, a copy that was made too early lacks the last lines. All that it has is stored.
  const name = unrotatedName(job.namedAs ?? job.path);
  const wholes = job.checkpoints.filter(
    ({ contentHash, samples, path }) =>
      contentHash === null && samples !== undefined && unrotatedName(path) === name,
  );
  return closing(
    openAtKnownEnd(job.path, job.checkpoints, onPiece, {
      openFile: settings.openFile,
      wholes,
      isOther: isOtherFolder(settings.definition, job.path),
    }),
    (source) => new FileReading(settings, job, source).run(),
  );
}

/**
 * Reads a part of a file again that an earlier load has stored. The source must be at the beginning of the part. Throws
 * `SourceError` as `readFileInto`, and where the content differs from that of `until`.
 */
export async function readPartInto(
  settings: ReadSettings,
  job: FileJob,
  source: SourceCursor,
  until: Checkpoint,
): Promise<void> {
  await new FileReading(settings, job, source).readLines();
  await source.requireUnchanged();
  source.requireContentOf(until);
}

class FileReading implements FrameConsumer {
  private lastTimeMs: number | null;
  private endsInLine = false;
  private reading: Reading | undefined;
  /** Number of the field that places records, or -1. */
  private readonly placed: number;
  /** Bytes that its rejected lines may still take. */
  private rejectedRoomBytes: number;
  private firstRejection: { readonly reason: string; readonly line: Uint8Array } | null = null;
  private writtenAt: (offset: number) => Written = () => ({ byMs: 0 });

  constructor(
    private readonly settings: ReadSettings,
    private readonly job: FileJob,
    private readonly source: SourceCursor,
  ) {
    const { known, file } = source;
    this.lastTimeMs = known?.lastTimeMs ?? null;
    this.placed = placementField(settings.definition.schema);
    job.tally.fileBytes = file.size;
    job.tally.continuedAt = known?.offset ?? null;
    this.rejectedRoomBytes =
      settings.definition.rejectedBytesMax === undefined
        ? Math.max(rejectedBytesMin, rejectedShare * file.size)
        : Infinity;
  }

  async run(): Promise<ReadFile> {
    const { tally } = this.job;
    const { source } = this;
    const { head, known } = source;
    await this.readLines();
    await source.requireUnchanged();
    tally.fileBytesRead = source.bytesTaken;
    if (tally.records + tally.rejected === 0) {
      return { outcome: known === null ? 'empty' : 'known', head, checkpoint: null, part: null };
    }
    if (known === null && tally.records === 0) {
      // The first line of a table does not show what is wrong with a row.
      const lines = lineFormatOf(this.settings.definition);
      const command =
        lines !== undefined && isTable(lines) ? undefined : `${source.unpackCommand} | head -n 1`;
      const content = {
        path: this.job.path,
        lines: tally.rejected,
        first: this.firstRejection!,
        firstLineCommand: command,
      };
      throw noRecordError(this.settings.definition.name, content);
    }
    const checkpoint = this.checkpoint();
    return { outcome: 'new', head, checkpoint, part: tally.records === 0 ? null : this.part(checkpoint) };
  }

  async readLines(): Promise<void> {
    const { source, job } = this;
    const { definition, timezone, workers, signal } = this.settings;
    const captures = pathCaptures(definition, job.namedAs ?? job.path);
    const decode = decodeSettings(definition, timezone);
    const options = { captures, workers, signal };
    const onRead = (fileBytesRead: number): void => this.progress('checking', fileBytesRead);
    const writtenAt = await fileWritten(source, decode, { ...options, onRead });
    this.writtenAt = writtenAt;
    const lines = new FileLines(source, { ...options, decode, writtenAt }, this);
    await lines.run();
    this.endsInLine = lines.endsInLine;
    this.reading = lines.reading;
  }

  private progress(phase: LoadProgress['phase'], fileBytesRead: number): void {
    const { tally, onProgress } = this.job;
    tally.fileBytesRead = fileBytesRead;
    onProgress(phase, fractionRead(tally));
  }

  hasRead(): void {
    const { offset, known, bytesTaken } = this.source;
    this.job.tally.contentBytes = offset - (known?.offset ?? 0);
    this.progress('reading', bytesTaken);
  }

  async reject({ bytes, base }: FileFrame, rejected: RejectedPlaces): Promise<void> {
    const { job, settings } = this;
    const session = await job.session();
    const writtenMs = (offset: number): number => latestOf(this.writtenAt(offset));
    const origin = { definition: settings.definition, file: job.path, base, writtenMs };
    for (const line of toRejectedLines(rejected, bytes, origin)) {
      this.firstRejection ??= { reason: line.reason, line: line.line.slice() };
      const keptBytes = await session.reject(line, this.rejectedRoomBytes);
      if (keptBytes === 0) job.tally.notKept++;
      this.rejectedRoomBytes = keptBytes === 0 ? 0 : this.rejectedRoomBytes - keptBytes;
    }
    job.tally.rejected += rejected.reasons.length;
  }

  async take(_lines: FileFrame, decoded: DecodedBatch): Promise<void> {
    const { tally } = this.job;
    const { batch, ...lost } = decoded;
    tally.add(lost);
    if (batch !== null) await this.append(batch, decoded.untimed);
  }

  private async append(batch: LoadBatch, untimed: readonly number[]): Promise<void> {
    const session = await this.job.session();
    const { definition, now } = this.settings;
    fillTimes(definition.schema, batch, untimed, now(), [
      { rows: batch.length, previousTimeMs: this.lastTimeMs },
    ]);
    // Count before appending, because the session may take over the batch's memory.
    this.job.tally.untimed += this.placed < 0 ? 0 : nullsIn(batch, this.placed);
    this.lastTimeMs = await session.append(batch, this.job.source, this.lastTimeMs);
    this.job.tally.records += batch.length;
  }

  private checkpoint(): Checkpoint {
    const { source, job, endsInLine, lastTimeMs } = this;
    const identity = { ...headIdentity(source.head), contentHash: source.digest() };
    const { known, compression, position } = source;
    const { inode, size } = source.file;
    // A collector's checkpoint under another inode belongs to that file: two files may have the same content so far, so it
    // is not continued.
    const others = known !== null && known.contentHash === null && known.inode !== inode;
    return {
      ...identity,
      tailHash: sha256(position.tail),
      ...(compression === 'none' ? { inode } : { packedInode: inode, packedBytes: size }),
      offset: position.offset,
      endsInLine,
      continues: known === null || others ? undefined : checkpointKey(known),
      path: absolutePath(job.path),
      lastTimeMs,
      records: (known?.records ?? 0) + job.tally.records,
      rejected: (known?.rejected ?? 0) + job.tally.rejected,
      ...readingText(this.reading),
    };
  }

  /** The range that was read. With it, the same lines can be read again and recognised as the same. */
  private part(checkpoint: Checkpoint): LoadedPart {
    const { known, file } = this.source;
    return {
      from: withoutContinues(known),
      until: asUntil(checkpoint),
      writtenMs: Math.floor(file.mtimeMs),
    };
  }
}

/** The fields of a checkpoint that give the end of a part of a source. */
export function asUntil(checkpoint: Checkpoint): Checkpoint {
  const { continues: _, tailHash: _tail, inode: _inode, ...rest } = checkpoint;
  const { packedInode: _packedInode, packedBytes: _packedBytes, reading: _reading, ...until } = rest;
  return until;
}

/** Number of rows without a value in a field. */
export function nullsIn({ columns, length }: LoadBatch, field: number): number {
  const { validity } = columns[field]!;
  if (validity === null) return 0;
  let present = 0;
  for (let row = 0; row < length; row++) present += (validity[row >> 3]! >> (row & 7)) & 1;
  return length - present;
}

function withoutContinues(checkpoint: Checkpoint | null): Checkpoint | null {
  if (checkpoint === null) return null;
  const { continues: _, ...rest } = checkpoint;
  return rest;
}

function fractionRead({ fileBytesRead, fileBytes }: FileTally): number {
  return fileBytes === 0 ? 1 : Math.min(1, fileBytesRead / fileBytes);
}

/** Discards what a session has not committed. Files that can't be removed now are removed when the store is next opened. */
export async function abandon(session: LoadSession | undefined): Promise<void> {
  try {
    await session?.abort();
  } catch (error) {
    // The failure that led here is the one to report.
    if (!isLogstrataError(error)) throw error;
  }
}

/** Replaces the reason of an aborted signal by the error `cancelled`; returns any other error as it is. */
export function cancellationOf(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted !== true || error !== signal.reason) return error;
  return new LogstrataError('cancelled', 'the load was cancelled', { cause: error });
}

/** First bytes of columnar files: Parquet, Arrow files, and Arrow streams. */
const beginnings: readonly (readonly [format: FoundFormat, bytes: Uint8Array])[] = [
  ['parquet', Buffer.from('PAR1')],
  ['arrow', Buffer.from('ARROW1')],
  ['arrow', Uint8Array.of(0xff, 0xff, 0xff, 0xff)],
];

/**
 * The format of a file. Where the archive does not state it, its first bytes tell. A file with an unknown beginning has the
 * archive's columnar format, or is lines of text where the agent also reads lines. Throws `SourceError`.
 */
export async function formatOf(
  { definition, formats, openFile = openOnDisk }: Pick<ReadSettings, 'definition' | 'formats' | 'openFile'>,
  path: string,
): Promise<FoundFormat> {
  const { archive, file } = definition;
  const known = formats?.get(path);
  if (known !== undefined) return known;
  if (archive === undefined || archive.mode !== 'import' || !hasColumns(archive)) return 'lines';
  const opened = await openFile(path);
  try {
    const head = await opened.read(0, 8);
    const found = beginnings.find(([, bytes]) => bytes.every((byte, i) => head[i] === byte));
    return found?.[0] ?? (file === undefined ? archive.globs[0]!.format : 'lines');
  } finally {
    await opened.bytes.close();
  }
}
