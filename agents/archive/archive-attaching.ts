import { setTimeout as delay } from 'node:timers/promises';
import { sourcesOf, type FileProblems } from './archive-report.js';
import { type ArchiveOptions, type ArchiveStatus, ArchiveTask, lookMs, retryMs } from './archive-task.js';
import { type FoundFile, type FoundFiles, type PathProblem, findFiles } from './found-files.js';
import { type KnownFile, discover, filesToRead, type Discovery } from './discovery.js';
import { FieldGrowth } from './inferred-fields.js';
import { FileFooters, readingOf, type Footer, type FooterRead } from './file-footers.js';

/** Progress of attaching the files of an agent's archive, which are queried in place. */
export interface AttachStatus extends ArchiveStatus {
  /** Files that are still to be indexed; null where that is not known yet. */
  readonly filesToIndex: number | null;
  readonly version: AttachRound['version'];
}

/** The changes of one round. */
export interface AttachRound {
  readonly attached: number;
  readonly rows: number;
  readonly moved: number;
  readonly removed: number;
  /** The version of the table that is answered; null where the files are no table. */
  readonly version: string | null;
  /** Files that are still being written. */
  readonly waiting: number;
  /** Current problems of files and folders. */
  readonly problems: readonly PathProblem[];
}

/** Delay before the next attempt at a file that could not be indexed: to fail, it may have to be read to its end. */
const indexRetryMs = 600_000;

interface IndexFailure {
  readonly path: string;
  readonly untilMs: number;
}

/** Tracks attached files that can't be indexed for now, so that the others are. */
class IndexFailures {
  /** By the file's id. */
  private readonly failed = new Map<string, IndexFailure>();
  private unreadable: readonly string[] = [];

  constructor(private readonly problems: FileProblems) {}

  /** Takes the result of a search: the attached files, and the paths that have a problem. */
  look(attached: readonly KnownFile[], wrong: ReadonlySet<string>): void {
    this.unreadable = attached.filter(({ path }) => wrong.has(path)).map(({ id }) => id);
    const paths = new Map(attached.map(({ id, path }) => [id, path]));
    for (const [id, { path }] of this.failed) if (wrong.has(path) || paths.get(id) !== path) this.indexed(id);
  }

  /** Ids of the files that are not to be tried now. */
  ids(nowMs: number): ReadonlySet<string> {
    const ids = new Set(this.unreadable);
    for (const [id, { untilMs }] of this.failed) if (nowMs < untilMs) ids.add(id);
    return ids;
  }

  /** Records that a file can't be indexed. */
  fail(id: string, path: string, message: string, nowMs: number): void {
    this.failed.set(id, { path, untilMs: nowMs + indexRetryMs });
    this.problems.ofFile(path, `can't be indexed: ${message}`);
  }

  /** Forgets the failure of a file. */
  indexed(id: string): void {
    const failure = this.failed.get(id);
    if (failure === undefined) return;
    this.failed.delete(id);
    this.problems.clear(failure.path);
  }
}

/** Number of files that one commit attaches. The first ones can be queried before all are attached, but each commit has a fixed cost. */
const batchFiles = 64;

/** Indexing pauses for as long as it works: queries need the disk and the threads too. */
const restFraction = 1;

/** Number of files that are indexed before the folders may be searched again. */
const indexedAtOnce = 4;

/** Receives the number of files read, of how many. */
export type AttachProgress = (filesRead: number, files: number) => void;

/**
 * Attaches the files of an archive that are queried in place, the newest first, and tracks them: they may move, change or
 * vanish, and new ones come. A failure of a file is reported once, and the other files are attached.
 */
export class ArchiveAttaching extends ArchiveTask {
  private readonly footers: FileFooters;
  private readonly growth: FieldGrowth;
  private readonly indexFailures: IndexFailures;
  private filesToIndex: number | null = null;
  private version: string | null = null;

  constructor(options: ArchiveOptions) {
    super(options, { pauses: 'attaching pauses', continues: 'attaching continues' });
    const { definition, log } = options;
    this.footers = new FileFooters(options.objects, sourcesOf(definition));
    this.growth = new FieldGrowth(definition, (message) => log.warn({ agent: definition.name }, message));
    this.indexFailures = new IndexFailures(this.problems);
  }

  /** The current progress. */
  status(): AttachStatus {
    return { ...this.progress(), filesToIndex: this.filesToIndex, version: this.version };
  }

  protected override async look(signal: AbortSignal): Promise<number> {
    const startedMs = performance.now();
    await this.round(signal);
    const tookMs = performance.now() - startedMs;
    await this.index(signal, startedMs + lookMs);
    return this.untilNextLook(tookMs) - (performance.now() - startedMs);
  }

  /** Searches the archive once, and attaches what it finds. Throws the signal's reason, and what the storage throws. */
  async round(signal: AbortSignal, onProgress?: AttachProgress): Promise<AttachRound> {
    const { archive, dataFolder, objects, store, now, definition } = this.options;
    const found = await findFiles(archive, dataFolder, objects);
    const known = await store.attachedFiles();
    const footers = await this.footers.read(filesToRead(known, found.files), signal);
    this.footers.keep(found.files);
    const columns = archive.infersFields ? undefined : new Set(definition.fields.map(({ source }) => source));
    let discovery = discover(known, found, footers, { ...archive, columns }, now());
    const wrong: PathProblem[] = [...found.problems, ...discovery.problems];
    const wanted = discovery.adds.filter((file) => this.mayBeAttached(file, wrong));
    let ready = await this.notStored(wanted, wrong);
    this.version = found.table?.version ?? null;
    if (found.table !== undefined && isHalfReadable(known, found, discovery, ready)) {
      const [{ glob: path }, { version }] = [archive.globs[0]!, found.table];
      const message = `${version} of the table ${path} is not answered yet: it removes files or rows, and not all that it has can be read`;
      wrong.push({ path, message });
      ready = [];
      discovery = { ...discovery, moves: [], remakes: [], removes: [] };
    }
    this.hasFound(found.files, ready.length, discovery.waits.length);
    if (ready.length > 0)
      this.tell('attaching archive files', { files: found.files.length, left: ready.length });
    const counts = await this.apply(discovery, ready, footers, wrong, signal, onProgress);
    this.problems.ofSearch(wrong);
    this.indexFailures.look(await store.attachedFiles(), new Set(wrong.map(({ path }) => path)));
    this.filesLeft = 0;
    if (counts.attached > 0) this.filesToIndex = null;
    if (counts.attached + counts.moved + counts.removed > 0)
      this.tell('all archive files are attached', counts);
    return { ...counts, version: this.version, waiting: discovery.waits.length, problems: wrong };
  }

  /** Whether a file is to be tried now. A failure that is not retried yet stays a problem. */
  private mayBeAttached(file: FoundFile, wrong: PathProblem[]): boolean {
    const attempt = this.attemptOf(file);
    if (attempt !== undefined) wrong.push({ path: file.path, message: attempt.problem! });
    return attempt === undefined;
  }

  /** Excludes files that are stored: the archive may have been imported before, and no record must be there twice. */
  private async notStored(files: readonly FoundFile[], wrong: PathProblem[]): Promise<readonly FoundFile[]> {
    if (files.length === 0) return files;
    const isStored = await this.storedFiles();
    const others: FoundFile[] = [];
    for (const file of files) {
      if (!(await isStored(file.path))) others.push(file);
      else wrong.push({ path: file.path, message: storedAlready(file.path, this.options.definition.name) });
    }
    return others;
  }

  private async apply(
    { moves, remakes, removes }: Discovery,
    ready: readonly FoundFile[],
    footers: ReadonlyMap<string, FooterRead>,
    wrong: PathProblem[],
    signal: AbortSignal,
    onProgress: AttachProgress | undefined,
  ): Promise<Omit<AttachRound, 'version' | 'waiting' | 'problems'>> {
    const { store, archive } = this.options;
    // A file and the one that it replaces go into one commit, so that queries see exactly one of them.
    const replaced = new Set(removes.map(({ path }) => path));
    const order = [
      ...ready.filter(({ path }) => replaced.has(path)),
      ...ready.filter(({ path }) => !replaced.has(path)),
    ];
    // A table's next version has the same rows in other files, so it is one commit, or none.
    const isWhole = archive.table !== undefined && removes.length + remakes.length > 0;
    const batches = batchesOf(order, isWhole ? order.length : replaced.size);
    if (batches.length === 0 && moves.length + remakes.length + removes.length > 0) batches.push([]);
    let attached = 0;
    let rows = 0;
    let filesRead = 0;
    for (const [i, batch] of batches.entries()) {
      signal.throwIfAborted();
      const { taken, refused } = await this.withFields(batch, footers);
      for (const { path, message } of refused) this.fail(path, batch, message, wrong);
      // In reverse order: where several files have rows of the same hour, the rows of the older file come first.
      const adds = taken.toReversed().map((file) => {
        const { path, bytes, mtimeMs, etag } = file;
        const format = file.format === 'arrow' ? file.format : ('parquet' as const);
        const object = etag === undefined ? {} : { object: { bytes, mtimeMs, etag } };
        return { path, ...object, format, ...readingOf(file, footers.get(path) as Footer) };
      });
      const kept = new Set(refused.map(({ path }) => path));
      const given = removes.filter(({ path }) => !kept.has(path)).map(({ id }) => id);
      const result = await store.attach(
        { adds, isWhole, ...(i === 0 ? { moves, remakes, removes: given } : { moves: [], removes: [] }) },
        { signal, onProgress: (read) => onProgress?.(filesRead + read, order.length) },
      );
      filesRead += batch.length;
      attached += result.attached.length;
      for (const { rowGroupRows, deleted } of result.attached)
        rows += rowGroupRows.reduce((sum, count) => sum + count, -(deleted?.rows ?? 0));
      for (const { path, error } of result.problems) this.fail(path, batch, error.message, wrong);
      this.filesLeft -= batch.length;
      if (this.filesLeft > 0 && this.mayTell) this.tell('attaching archive files', { left: this.filesLeft });
    }
    return { attached, rows, moved: moves.length, removed: removes.length };
  }

  private fail(path: string, files: readonly FoundFile[], message: string, wrong: PathProblem[]): void {
    const file = files.find((each) => each.path === path);
    if (file !== undefined) this.attempted(file, this.options.now() + retryMs, message);
    wrong.push({ path, message });
  }

  /**
   * Selects the files whose columns agree with the agent's fields, after adding fields for new columns where the agent's
   * fields are the files' columns.
   */
  private async withFields(
    files: readonly FoundFile[],
    footers: ReadonlyMap<string, FooterRead>,
  ): Promise<{ readonly taken: readonly FoundFile[]; readonly refused: readonly PathProblem[] }> {
    const { archive, redefine, log } = this.options;
    if (!archive.infersFields) return { taken: files, refused: [] };
    const { taken, refused, definition } = this.growth.take(files, footers);
    if (definition !== undefined) {
      await redefine(definition);
      const { name, fields } = definition;
      log.info(
        { agent: name, fields: fields.length },
        'new files have other columns or folders: the agent has other fields now',
      );
    }
    return { taken, refused };
  }

  /** Indexes attached files until all are indexed, or it is time for the next search. Throws as `round`. */
  private async index(signal: AbortSignal, untilMs: number): Promise<void> {
    const { store, now } = this.options;
    for (let left = 1; left > 0 && !signal.aborted && performance.now() < untilMs;) {
      const startedMs = performance.now();
      const except = this.indexFailures.ids(now());
      const result = await store.indexAttached({ signal, filesMax: indexedAtOnce, except });
      left = result.left;
      this.filesToIndex = left;
      if (result.indexed.length > 0 && (left === 0 || this.mayTell))
        this.tell(left === 0 ? 'all archive files are indexed' : 'indexing archive files', { left });
      for (const { id } of result.indexed) this.indexFailures.indexed(id);
      for (const { id, path, error } of result.problems)
        this.indexFailures.fail(id, path, error.message, now());
      const restMs = (performance.now() - startedMs) * restFraction;
      await delay(Math.min(restMs, lookMs), undefined, { signal }).catch(() => {});
    }
  }
}

/** Whether a version of a table removes files or rows, but not all files that it has can be read. */
function isHalfReadable(
  known: readonly KnownFile[],
  { problems }: FoundFiles,
  { adds, remakes, removes, waits, problems: unread }: Discovery,
  ready: readonly FoundFile[],
): boolean {
  // Attached files that are gone are named, and answered by nothing.
  const paths = new Set(known.map(({ path }) => path));
  const gone = problems.filter(({ path }) => !paths.has(path));
  const unchanged = unread.filter(({ path }) => paths.has(path));
  const left = gone.length + unread.length + waits.length + adds.length - ready.length;
  return removes.length + remakes.length + unchanged.length > 0 && left > 0;
}

/** Splits files into groups that are attached together; the first group has at least `firstMin` files. */
function batchesOf(files: readonly FoundFile[], firstMin: number): FoundFile[][] {
  const batches: FoundFile[][] = [];
  for (let from = 0; from < files.length;) {
    const to = from + (from === 0 ? Math.max(batchFiles, firstMin) : batchFiles);
    batches.push(files.slice(from, to));
    from = to;
  }
  return batches;
}

function storedAlready(path: string, agent: string): string {
  return `the records of ${path} are stored already. To query the file in place instead, remove them first: logstrata remove ${agent} --load LOAD`;
}
