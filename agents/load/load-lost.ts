import {
  type Codec,
  isLogstrataError,
  type LoadedPart,
  type LoadEntry,
  type LoadSession,
  type LostLoad,
} from '../../engine/index.js';
import { abandon, newTally, readPartInto, type FileTally, type ReadSettings } from './load-file.js';
import { readColumnPartInto } from './column-file.js';
import { formatOf } from './file-format.js';
import type { LoadProgress } from './load-report.js';
import { SourceError } from '../sources/source-error.js';
import { knownBeginnings, openPart } from '../sources/source-identity.js';

/** Options of restoring lost records. */
export interface RestoringOptions extends ReadSettings {
  /** The files of the command. */
  readonly files: readonly string[];
  readonly codec?: Codec | undefined;
}

/** Receives the progress of a file, and its counts so far. */
export type PartProgress = (tally: FileTally, phase: LoadProgress['phase'], fraction: number) => void;

/**
 * Restores records of earlier loads that were lost by damage. Reads again what those loads have read, in the same way; the
 * missing records get the positions back that they had. Existing records are unchanged.
 */
export class Restoring {
  private lost: readonly LostLoad[] | undefined;
  private readonly done = new Set<LoadEntry>();
  private readonly partsKnown = new Map<string, ReadonlySet<LoadedPart>>();

  constructor(private readonly options: RestoringOptions) {}

  /**
   * Restores the loads that read a file, each as one unit, and counts the restored records in `tally`. Throws `SourceError`
   * where the file gives other records than before, or where another file of the same load is missing; other errors are the
   * storage's. What was restored before an error stays.
   */
  async restore(path: string, tally: Pick<FileTally, 'restored'>, onProgress: PartProgress): Promise<void> {
    this.lost ??= await this.options.store.lostLoads();
    if (this.lost.length === 0) return;
    const parts = await this.partsIn(path);
    for (const lost of this.lost) {
      if (this.done.has(lost.load) || !lost.load.parts.some((part) => parts.has(part))) continue;
      tally.restored += await this.restoreLoad(lost, path, onProgress);
      this.done.add(lost.load);
    }
  }

  private readonly onPiece = (): void => this.options.signal?.throwIfAborted();

  /** The parts of damaged loads that a file contains. */
  private async partsIn(path: string): Promise<ReadonlySet<LoadedPart>> {
    const known = this.partsKnown.get(path);
    if (known !== undefined) return known;
    const parts = this.lost!.flatMap(({ load }) => load.parts);
    const ends = parts.map(({ until }) => until);
    const matches = new Set(await knownBeginnings(path, ends, this.onPiece, this.options.openFile));
    const found = new Set(parts.filter(({ until }) => matches.has(until)));
    this.partsKnown.set(path, found);
    return found;
  }

  private async restoreLoad(lost: LostLoad, path: string, onProgress: PartProgress): Promise<number> {
    const { store, codec } = this.options;
    const paths: string[] = [];
    for (const part of lost.load.parts) paths.push(await this.fileOf(part, path, lost));
    const session = await store.beginLoad({ restores: lost, ...(codec === undefined ? {} : { codec }) });
    try {
      for (const [source, part] of lost.load.parts.entries())
        await this.readPart(paths[source]!, source, part, session, onProgress);
      const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
      return (await session.commit({ checkpoints: [], counters })).records;
    } catch (error) {
      if (!isLogstrataError(error) || !(error.code === 'invalid' || error.code === 'conflict')) throw error;
      if (error instanceof SourceError) throw error;
      throw new SourceError(error.code, `${path}: ${error.message}`, { path, cause: error });
    } finally {
      await abandon(session);
    }
  }

  /** Path of the file of the command that contains a part: the one that is being loaded, or another. */
  private async fileOf(part: LoadedPart, path: string, { load, runs }: LostLoad): Promise<string> {
    for (const file of [path, ...this.options.files]) {
      try {
        if ((await this.partsIn(file)).has(part)) return file;
      } catch (error) {
        // A file that can't be read is reported when it is loaded itself.
        if (!(error instanceof SourceError)) throw error;
      }
    }
    const records = runs.reduce((sum, { rows }) => sum + rows, 0);
    const names = load.parts.map(({ until }) => until.path).join(', ');
    throw new SourceError(
      'invalid',
      `${path}: ${records} records of a load that merged ${load.parts.length} files (${names}) are lost. To restore them, name all of these files in ` +
        `one command; ${part.until.path}, with its content of that time, is missing`,
      { path },
    );
  }

  private async readPart(
    path: string,
    source: number,
    part: LoadedPart,
    session: LoadSession,
    onProgress: PartProgress,
  ): Promise<void> {
    const tally = newTally();
    const job = {
      path,
      namedAs: part.until.path,
      source,
      checkpoints: [],
      session: () => Promise.resolve(session),
      tally,
      onProgress: (phase: LoadProgress['phase'], fraction: number) => onProgress(tally, phase, fraction),
    };
    const format = await formatOf(this.options, path);
    if (format !== 'lines') return readColumnPartInto(this.options, job, format, part.until);
    const positioned = await openPart(path, part, this.onPiece, this.options.openFile);
    try {
      await readPartInto(this.options, job, positioned, part.until);
    } finally {
      await positioned.reader.close();
    }
  }
}
