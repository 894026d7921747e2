import {
  closing,
  isLogstrataError,
  placementField,
  type Checkpoint,
  type FileToImport,
  type ForeignFormat,
  type ImportedRows,
} from '../../engine/index.js';
import { archiveKeys, isOtherFolder } from '../decode/path-captures.js';
import { headIdentity, sha256, tailBytesMax } from '../sources/source-position.js';
import { absolutePath } from '../sources/opened-file.js';
import { asSourceError, SourceError } from '../sources/byte-source.js';
import { candidatesOf, changedWhileRead, SourceCursor } from '../sources/source-cursor.js';
import { asUntil, nullsIn, type FileJob, type ReadFile, type ReadSettings } from './load-file.js';

/**
 * Reads the rows of a Parquet or Arrow file into a load unit, with the same values that queries of such a file in place
 * give. Commits nothing. A file whose bytes are stored already, whatever its name, is `known`; `EqualFiles` says of which.
 *
 * Throws `SourceError` for a problem of this file; other errors are the storage's.
 */
export async function readColumnsInto(
  settings: ReadSettings,
  job: FileJob,
  format: ForeignFormat,
): Promise<ReadFile> {
  return closing(SourceCursor.open(job.path, settings.openFile), (source) =>
    new ColumnFileReading(settings, job, source, format).run(),
  );
}

/** Reads a file again that an earlier load has stored. Throws as `readColumnsInto`, and where its bytes differ from those of `until`. */
export async function readColumnPartInto(
  settings: ReadSettings,
  job: FileJob,
  format: ForeignFormat,
  until: Checkpoint,
): Promise<void> {
  await closing(SourceCursor.open(job.path, settings.openFile), (source) =>
    new ColumnFileReading(settings, job, source, format).readAgain(until),
  );
}

class ColumnFileReading {
  private readonly file: FileToImport;
  private readonly isOther: (path: string) => boolean;
  private lastTimeMs: number | null = null;
  /** The error with which the storage failed, as opposed to errors of the file. */
  private storageFailure: unknown;

  constructor(
    private readonly settings: ReadSettings,
    private readonly job: FileJob,
    private readonly source: SourceCursor,
    format: ForeignFormat,
  ) {
    const keys = archiveKeys(settings.definition.archive, job.namedAs ?? job.path);
    const { etag, size: bytes } = source.file;
    const mtimeMs = Math.floor(source.file.mtimeMs);
    this.file = {
      path: absolutePath(job.path),
      format,
      ...(etag === undefined ? {} : { object: { bytes, mtimeMs, etag } }),
      constants: Object.fromEntries(keys),
    };
    this.isOther = isOtherFolder(settings.definition, job.path);
    job.tally.fileBytes = bytes;
  }

  async run(): Promise<ReadFile> {
    const { job, source, isOther } = this;
    const { head } = source;
    const { size, inode, mtimeMs } = source.file;
    this.requireUnpacked();
    const contentHash = await this.hash();
    const candidates = candidatesOf(job.checkpoints, head, isOther);
    const equal = candidates.filter((known) => known.offset === size && known.contentHash === contentHash);
    if (await job.equals?.isStored(this.file.path, inode, equal))
      return { outcome: 'known', head, checkpoint: null, part: null };
    await this.requireWhole(candidates);
    const footerHash = await this.readRows();
    await source.requireSameFile();
    const { tally } = job;
    if (tally.records === 0) return { outcome: 'empty', head, checkpoint: null, part: null };
    const checkpoint: Checkpoint = {
      ...headIdentity(head),
      contentHash,
      tailHash: sha256(await source.fileEnd(tailBytesMax)),
      inode,
      offset: size,
      endsInLine: false,
      path: this.file.path,
      lastTimeMs: this.lastTimeMs,
      records: tally.records,
      rejected: 0,
    };
    const part = { from: null, until: asUntil(checkpoint), writtenMs: Math.floor(mtimeMs) };
    return { outcome: 'new', head, checkpoint, part, detaches: await this.attached(footerHash) };
  }

  async readAgain(until: Checkpoint): Promise<void> {
    const { source } = this;
    if (source.file.size !== until.offset || (await this.hash()) !== until.contentHash)
      throw changedWhileRead(this.job.path);
    await this.readRows();
    await source.requireSameFile();
  }

  private requireUnpacked(): void {
    const { compression, unpackCommand } = this.source;
    const { path } = this.job;
    if (compression === 'none') return;
    const message = `${path} is compressed with ${compression}, so it can't be read as ${this.file.format}: decompress it first (${unpackCommand})`;
    throw new SourceError('unsupported', message, { path, offset: 0 });
  }

  /**
   * An Arrow stream may be stored before it has an end, and grow then. Throws `conflict` in that case: its first rows must
   * not be stored twice.
   */
  private async requireWhole(candidates: readonly Checkpoint[]): Promise<void> {
    const { size } = this.source.file;
    for (const { offset, contentHash, records } of candidates) {
      if (offset >= size || (await this.hash(offset)) !== contentHash) continue;
      const { path } = this.job;
      const message = `${path} has grown, and ${records} records of it are stored already. Remove them (logstrata remove ${this.settings.definition.name} --load), then load the file again`;
      throw new SourceError('conflict', message, { path });
    }
  }

  private hash(bytes?: number): Promise<string> {
    const { store, signal } = this.settings;
    const onProgress = (fraction: number): void => this.progress('checking', fraction);
    return this.ofFile(() => store.hashFile(this.file, { bytes, onProgress, signal }));
  }

  private readRows(): Promise<string> {
    const { store, signal } = this.settings;
    return this.ofFile(() => store.readRows(this.file, (rows) => this.take(rows), signal));
  }

  private async take({ batch, fraction, bytes, unreadable, replaced }: ImportedRows): Promise<void> {
    const { job, settings } = this;
    const { tally } = job;
    try {
      const session = await job.session();
      const placed = placementField(settings.definition.schema);
      // Count before appending, because the session may take over the batch's memory.
      tally.untimed += placed < 0 ? 0 : nullsIn(batch, placed);
      this.lastTimeMs = await session.append(batch, job.source, this.lastTimeMs);
    } catch (error) {
      this.storageFailure = error;
      throw error;
    }
    const unreadableValues = unreadable.reduce((sum, { values }) => sum + values, 0);
    const contentBytes = Math.round(bytes);
    tally.add({ records: batch.length, contentBytes, replacedBytes: replaced, unreadable, unreadableValues });
    this.progress('reading', fraction);
  }

  private progress(phase: 'checking' | 'reading', fraction: number): void {
    const { tally, onProgress } = this.job;
    tally.fileBytesRead = Math.round(fraction * tally.fileBytes);
    onProgress(phase, fraction);
  }

  /**
   * Ids of the attached files whose rows these are: the one that is attached under the same path, and those with the same
   * footer that are not at their paths any more.
   */
  private async attached(footerHash: string): Promise<readonly string[]> {
    const { job, file, isOther } = this;
    const isMoved = (other: { path: string; footerHash: string }): boolean =>
      other.footerHash === footerHash && job.equals?.isThere(other.path) !== true && !isOther(other.path);
    const attached = await this.settings.store.attachedFiles();
    return attached.filter((other) => other.path === file.path || isMoved(other)).map(({ id }) => id);
  }

  /** Calls `work`; turns its errors into `SourceError` where they are problems of this file alone. */
  private async ofFile<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const isOther = error === this.storageFailure || this.settings.signal?.aborted === true;
      if (isOther || !isLogstrataError(error) || error.code === 'closed') throw error;
      throw asSourceError(error, this.job.path);
    }
  }
}
