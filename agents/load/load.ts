import {
  type Checkpoint,
  checkpointKey,
  isLogstrataError,
  type LoadResult,
  type LoadSession,
  type LogstrataError,
} from '../../engine/index.js';
import {
  abandon,
  cancellationOf,
  readFileInto,
  type ReadFile,
  type StoreSettings,
  formatOf,
} from './load-file.js';
import { readColumnsInto } from './column-file.js';
import { EqualFiles, candidatesOf } from '../sources/source-cursor.js';
import { Restoring } from './load-rejected.js';
import {
  LoadJournal,
  type JournalItem,
  type FileTally,
  type LoadProgress,
  type LoadSummary,
} from './load-report.js';
import { SourceError } from '../sources/byte-source.js';

/** Options of loading files. */
export interface LoadFilesOptions extends StoreSettings {
  /** Paths as returned by `expandFiles`. */
  readonly files: readonly string[];
  /** Also store files that are known already, again. */
  readonly again?: boolean | undefined;
  /** Load all files as one unit: their records are sorted together, and become visible together or not at all. */
  readonly merge?: boolean | undefined;
  /**
   * Where the files are those of an archive: tells equal ones apart. Absent: a file whose content is stored is known, whatever
   * its path.
   */
  readonly equals?: EqualFiles | undefined;
  /** Called for a file none of whose records has a readable time; returns whether to store it nevertheless. If absent, it is stored. */
  readonly acceptUntimed?: ((file: UntimedFile) => Promise<boolean>) | undefined;
}

/** A file none of whose records has a time. Most likely its pattern or its time format is wrong. */
export interface UntimedFile {
  readonly path: string;
  readonly records: number;
  /** Name of the field that places records. */
  readonly field: string;
  /** A text that is not readable as a time; null where the lines have none. */
  readonly example: string | null;
}

/**
 * Loads files into an agent's store. Each file is a unit: its records become visible and durable together, or nothing of it
 * is kept. A file with a failure of its own is reported, and the others are loaded; a failure of the storage, or the signal,
 * ends the load, and finished files stay. With `merge`, all files are one unit, and a file that fails leaves nothing of any.
 *
 * Expected failures are in the summary, never thrown.
 */
export async function loadFiles(options: LoadFilesOptions): Promise<LoadSummary> {
  return new FilesLoad(options).run();
}

/** A load unit, whose session begins when there is something to store. */
class LoadUnit {
  private begun: Promise<LoadSession> | undefined;

  constructor(private readonly options: LoadFilesOptions) {}

  readonly session = (): Promise<LoadSession> => {
    const { store, codec, beyondRetention, definition } = this.options;
    this.begun ??= store.beginLoad({
      codec,
      beyondRetention,
      rejectedBytesMax: definition.rejectedBytesMax,
    });
    return this.begun;
  };

  async abort(): Promise<void> {
    await abandon(await this.begun?.catch(() => undefined));
  }
}

/** A file that is being loaded. */
interface FileInLoad extends JournalItem {
  read: ReadFile | null;
}

class FilesLoad {
  private readonly journal: LoadJournal;
  private readonly lost: Restoring;
  private readonly equals: EqualFiles;
  private stopped: LogstrataError | null = null;

  constructor(private readonly options: LoadFilesOptions) {
    this.equals = options.equals ?? new EqualFiles(undefined, options.openFile);
    this.lost = new Restoring(options);
    this.journal = new LoadJournal(options.files.length, options.onEvent);
  }

  async run(): Promise<LoadSummary> {
    const indexes = [...this.options.files.keys()];
    if (this.options.merge === true) {
      const mergedBytes = await this.loadUnit(indexes);
      return this.journal.summary(mergedBytes, this.stopped);
    }
    for (const index of indexes) {
      if (this.stopped === null) await this.loadUnit([index]);
      else this.journal.report(this.start(index), 'not_stored', null);
    }
    return this.journal.summary(0, this.stopped);
  }

  /** Loads files as one unit. Returns the size of its segments. */
  private async loadUnit(indexes: readonly number[]): Promise<number> {
    const unit = new LoadUnit(this.options);
    const items: FileInLoad[] = [];
    let before: readonly Checkpoint[] | undefined;
    let known: readonly Checkpoint[] = [];
    try {
      for (const index of indexes) {
        const item = this.start(index);
        items.push(item);
        await this.restoreLost(item);
        if (before === undefined) known = before = await this.options.store.checkpoints();
        await this.read(item, unit, known);
        const checkpoint = item.read?.checkpoint ?? null;
        if (checkpoint === null || indexes.length === 1) continue;
        const replaced = [checkpoint.continues, checkpointKey(checkpoint)];
        known = [...known.filter((other) => !replaced.includes(checkpointKey(other))), checkpoint];
      }
      return await this.commitAndReport(items, unit, before ?? []);
    } catch (error) {
      await unit.abort();
      this.reportFailure(indexes, items, this.failure(error));
      return 0;
    }
  }

  private async commitAndReport(
    items: readonly FileInLoad[],
    unit: LoadUnit,
    before: readonly Checkpoint[],
  ): Promise<number> {
    const filled = items.filter(({ read }) => read?.outcome === 'new');
    const stored = filled.length === 0 ? undefined : await this.commit(filled, unit, before);
    if (stored === undefined) await unit.abort();
    const { id = null, bytesOnDisk = 0 } = stored ?? {};
    for (const item of items) {
      const outcome = item.read?.outcome ?? 'empty';
      if (outcome !== 'new') this.journal.report(item, outcome, null);
      else if (this.options.merge === true) this.journal.report(item, 'loaded', null, { load: id });
      else this.journal.report(item, 'loaded', null, { load: id, bytesOnDisk });
    }
    return bytesOnDisk;
  }

  private reportFailure(
    indexes: readonly number[],
    items: readonly FileInLoad[],
    failure: LogstrataError,
  ): void {
    const isOfFile = failure instanceof SourceError;
    const atFault =
      (isOfFile ? items.findLast(({ path }) => path === failure.path) : undefined) ?? items.at(-1);
    if (!isOfFile) this.stopped = failure;
    for (const [i, index] of indexes.entries()) {
      const item = items[i] ?? this.start(index);
      const hasFailed = item === atFault && failure.code !== 'cancelled';
      const isToldWhy = hasFailed || this.options.merge !== true;
      this.journal.report(item, hasFailed ? 'failed' : 'not_stored', isToldWhy ? failure : null);
    }
  }

  private start(index: number): FileInLoad {
    const item = this.journal.item(this.options.files[index]!, index, this.stopped === null);
    return { ...item, read: null };
  }

  /** Restores lost records of the file. Not with `again`, which stores the whole file once more. */
  private async restoreLost(item: FileInLoad): Promise<void> {
    if (this.options.again === true) return;
    this.options.signal?.throwIfAborted();
    await this.lost.restore(item.path, item.tally, (tally, phase, fraction) =>
      this.journal.progress({ ...item, tally }, phase, fraction),
    );
  }

  private async read(item: FileInLoad, unit: LoadUnit, checkpoints: readonly Checkpoint[]): Promise<void> {
    this.options.signal?.throwIfAborted();
    const format = await formatOf(this.options, item.path);
    const job = {
      path: item.path,
      source: item.index,
      checkpoints: this.options.again === true ? [] : checkpoints,
      equals: this.equals,
      session: unit.session,
      tally: item.tally,
      onProgress: (phase: LoadProgress['phase'], fraction: number) =>
        this.journal.progress(item, phase, fraction),
    };
    item.read =
      format === 'lines'
        ? await readFileInto(this.options, job)
        : await readColumnsInto(this.options, job, format);
    await this.requireTimes(item);
    if (item.read.checkpoint !== null && this.options.again !== true)
      item.read = { ...item.read, checkpoint: asCopy(item.read.checkpoint, checkpoints) };
  }

  /** Throws `invalid` for a file without a single readable time, unless it is accepted. */
  private async requireTimes({ path, tally }: FileInLoad): Promise<void> {
    const { acceptUntimed, definition } = this.options;
    const { records, untimed, unreadable } = tally;
    if (acceptUntimed === undefined || records === 0 || untimed < records) return;
    const place = definition.fields.findIndex(({ type }) => type === 'time');
    const field = definition.fields[place]!.name;
    const example = unreadable.find((each) => each.field === place)?.example ?? null;
    if (await acceptUntimed({ path, records, field, example })) return;
    const why = example === null ? 'no line has one' : `such as ${JSON.stringify(example)}`;
    const message = `none of the ${records} records of ${path} has a readable "${field}" (${why}), so their place would be the time of the load. Correct the agent (logstrata check ${definition.name} --file), or use --force to store them anyway (logstrata load ${definition.name} FILE --force)`;
    throw new SourceError('invalid', message, { path });
  }

  private async commit(
    items: readonly FileInLoad[],
    unit: LoadUnit,
    before: readonly Checkpoint[],
  ): Promise<Pick<LoadResult, 'id' | 'bytesOnDisk'>> {
    const session = await unit.session();
    this.options.signal?.throwIfAborted();
    const sum = (value: (tally: FileTally) => number): number =>
      items.reduce((total, { tally }) => total + value(tally), 0);
    const checkpoints = items.flatMap(({ read }) => read?.checkpoint ?? []);
    const parts = items.flatMap(({ read }) => read?.part ?? []);
    const detaches = items.flatMap(({ read }) => read?.detaches ?? []);
    const counters = {
      unreadableValues: sum(({ unreadableValues }) => unreadableValues),
      replacedBytes: sum(({ replacedBytes }) => replacedBytes),
      inputBytes: sum(({ contentBytes }) => contentBytes),
    };
    const last = items.at(-1)!;
    try {
      const onProgress = (fraction: number) => this.journal.progress(last, 'writing', fraction);
      const check = () => this.requireStillNew(items, before);
      return await session.commit({ checkpoints, parts, detaches, counters, check }, onProgress);
    } catch (error) {
      // A file whose content can't be stored does not concern the others.
      if (!isLogstrataError(error) || error.code !== 'invalid') throw error;
      throw new SourceError('invalid', `${last.path}: ${error.message}`, { path: last.path, cause: error });
    }
  }

  /** Throws `conflict` where another process has stored the same lines meanwhile: they would be stored twice. */
  private async requireStillNew(items: readonly FileInLoad[], before: readonly Checkpoint[]): Promise<void> {
    if (this.options.again === true) return;
    const now = await this.options.store.checkpoints();
    const places = new Set(before.map(checkpointPlace));
    const added = now.filter((checkpoint) => !places.has(checkpointPlace(checkpoint)));
    for (const { path, read } of items) {
      if (read === null || read.checkpoint === null) continue;
      const { contentHash, offset } = read.checkpoint;
      // A checkpoint with the same length and another hash belongs to another file that begins alike.
      const conflicting = candidatesOf(added, read.head).some(
        (other) => other.contentHash === null || other.offset !== offset || other.contentHash === contentHash,
      );
      if (!conflicting) continue;
      const message = `another process stored ${path} while it was read, so this load stored nothing of it. Load it again for the rest`;
      throw new SourceError('conflict', message, { path });
    }
  }

  private failure(error: unknown): LogstrataError {
    const failure = cancellationOf(error, this.options.signal);
    if (!isLogstrataError(failure)) throw failure;
    return failure;
  }
}

function checkpointPlace(checkpoint: Checkpoint): string {
  return `${checkpointKey(checkpoint)}@${checkpoint.offset}`;
}

/** Numbers the checkpoint of a file whose content another file has that is stored as a source of its own. */
function asCopy(checkpoint: Checkpoint, others: readonly Checkpoint[]): Checkpoint {
  const equal = others.filter(
    (other) => other.contentHash === checkpoint.contentHash && checkpointKey(other) !== checkpoint.continues,
  );
  const keys = new Set(equal.map(checkpointKey));
  let copy: number | undefined;
  while (keys.has(checkpointKey({ ...checkpoint, copy }))) copy = (copy ?? 0) + 1;
  return copy === undefined ? checkpoint : { ...checkpoint, copy };
}
