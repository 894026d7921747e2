import { type AgentStore, type Checkpoint, LogstrataError, type WorkerPool } from '../../engine/index.js';
import { shownFolder, type AgentDefinition, type Rotation } from '../definition/definition.js';
import type { RecordEnds } from '../decode/line-framing.js';
import { recordEndsOf, type RecordEndsOf } from '../decode/record-ends.js';
import { describeSystemError } from '../sources/byte-source.js';
import { AfterRotation } from './after-rotation.js';
import { AgentFiles } from './logs/agent-files.js';
import { CollectTally, type CollectStatus } from './logs/collect-counts.js';
import type { CollectLog } from './logs/collect-log.js';
import { CollectPauses } from './collect-pauses.js';
import { findStart, markStart, GoneSources } from './logs/gone-sources.js';
import { continues, identify, reportIdentity, reportLost } from './logs/file-identity.js';
import { FileAttempts } from './logs/file-attempts.js';
import type { Stray } from './logs/folder-tree.js';
import type { FollowedFile } from './logs/followed-file.js';
import { decodeSettings } from '../decode/decode-task.js';
import { decodeLines } from '../decode/lent-decoding.js';
import { commitFrame, type CommitTarget } from './frame-commit.js';
import { LineProblems } from './line-problems.js';
import { newStopFlag, setStopFlag } from '../decode/stop-flag.js';
import { gatherPacked, LineGathering, type Gathered } from './line-gathering.js';
import type { LineFrame } from './line-frame.js';
import type { LogFiles } from './logs/log-files.js';
import { LogRotation } from './log-rotation.js';
import { LogNames } from './logs/log-names.js';
import { lagBytes, restSinceMs, type Identity } from './logs/log-state.js';
import type { OpenFiles } from './logs/open-files.js';
import { Truncations } from './logs/truncations.js';

/** Decides when the last record of a file is taken as complete, although no following line shows that it is. */
export class Silence {
  constructor(
    private readonly files: () => Iterable<FollowedFile>,
    private readonly ends: RecordEnds,
    /** Time without growth after which a line without a line end is taken, of a file that is no longer written to. */
    private readonly tailTimeoutMs: number,
  ) {}

  /** Whether the unfinished record at the end of a file may be taken, because the file has not grown for long enough. */
  mayEndHere(file: FollowedFile, nowMs: number): boolean {
    const silentMs = silenceOf(file, nowMs);
    if (silentMs === null) return false;
    if (this.recordDueInMs(file, nowMs) <= 0) return true;
    return silentMs >= this.tailTimeoutMs && this.isPutAside(file);
  }

  /** Milliseconds until the last lines of some file are taken as a complete record; Infinity where no file has such lines. */
  dueInMs(nowMs: number): number {
    let dueMs = Infinity;
    if (this.ends.timeoutMs === null) return dueMs;
    for (const file of this.files()) dueMs = Math.min(dueMs, this.recordDueInMs(file, nowMs));
    return dueMs;
  }

  private recordDueInMs(file: FollowedFile, nowMs: number): number {
    const { timeoutMs } = this.ends;
    const silentMs = silenceOf(file, nowMs);
    if (timeoutMs === null || silentMs === null || file.followed!.rest!.endsInLine) return Infinity;
    return timeoutMs - silentMs;
  }

  /** Whether the file's name shows that it is no longer written to: it has none, or the name of a rotated generation. */
  isPutAside(file: FollowedFile): boolean {
    if (file.isGone) return true;
    if (!file.rotated) return false;
    if (!file.name.direct) return true;
    for (const other of this.files()) if (!other.isGone && other.name.name === file.name.base) return true;
    return false;
  }
}

/**
 * For how long a file has ended inside a record; null where it does not. Infinity after the clock went back: that must not
 * delay the record.
 */
function silenceOf({ state }: FollowedFile, nowMs: number): number | null {
  const sinceMs = restSinceMs(state);
  if (sinceMs === null) return null;
  return nowMs < sinceMs ? Infinity : nowMs - sinceMs;
}

/** What the collectors of all agents share. */
export interface CollectSettings {
  /** Time zone of times that have none. */
  readonly timezone: string;
  /** Clock, in milliseconds since the epoch. */
  readonly now: () => number;
  readonly files: LogFiles;
  /** Data folder of the archive; files in it are not followed. */
  readonly dataFolder?: string | undefined;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  /** Number of last lines to take of a file that exists when the agent is followed for the first time; 0 for all lines. */
  readonly limitLines: number;
  /** Time without growth after which a last line without a line end is taken, of a file that is no longer written to. */
  readonly tailTimeoutMs: number;
}

/** Options of a collector. */
export interface CollectorOptions extends CollectSettings {
  readonly store: AgentStore;
  /** Must have a `file` section. */
  readonly definition: AgentDefinition;
  readonly handles: OpenFiles;
}

/** Result of a round: nothing to store, all stored, or more left than one commit holds. */
export type Round = 'idle' | 'done' | 'more';

/** Limit on the remembered inodes of removed files, and on the remembered names that can't be followed. */
const rememberedMax = 10_000;

/**
 * How long a file without a name is kept open after its last growth: for a removed file (no links), closing frees its disk
 * space; of a renamed one, the writer has long moved on by then.
 */
const removedQuietMs = 60_000;
const renamedQuietMs = 600_000;

/**
 * Follows the logs of one agent. Each round reads what the files have gained and stores it in one commit. Nothing is read
 * ahead of what is stored, so after a failed round nothing is lost: files are read again from their stored positions.
 */
export class AgentCollector {
  readonly name: string;
  private readonly tally = new CollectTally();
  private readonly stop = newStopFlag();
  private readonly pauses: CollectPauses;
  private readonly logs: AgentFiles;
  private readonly target: CommitTarget;
  private readonly endsOf: RecordEndsOf;
  private readonly silence: Silence;
  private readonly rotation: LogRotation | undefined;
  private readonly removed = new Set<string>();
  /** Names that can't be read, and others (`toldStrays`) that are not files that can be followed; each is reported once. */
  private readonly toldUnreadable = new Set<string>();
  private readonly toldStrays = new Set<string>();
  private readonly truncations: Truncations;
  private readonly attempts: FileAttempts;
  private checkpoints: readonly Checkpoint[] | null = null;
  private asOf = 0;
  private firstStartMs = 0;
  private readonly goneSources: GoneSources;
  /** Whether the agent is followed for the first time ever, in this process. */
  private isFirst = false;
  /** Whether files that were rotated beside the targets of links have been looked for. */
  private hasRecalled = false;
  /** The file to begin the next round with: the first one that found no room in the last frame. */
  private nextFile: FollowedFile | undefined;
  /** Whether the folder has symbolic links, whose changes watching the folder does not show; as of the last survey. */
  hasLinks = false;

  constructor(private readonly options: CollectorOptions) {
    const { definition, files, handles, store, timezone, workers, now, log } = options;
    if (definition.file === undefined)
      throw new LogstrataError('invalid', `agent ${definition.name} reads no files`);
    this.name = definition.name;
    this.pauses = new CollectPauses(this.name, log);
    this.truncations = new Truncations(this.name, this.tally, log);
    this.attempts = new FileAttempts(this.name, handles, now, log);
    this.goneSources = new GoneSources(this.name, options);
    this.endsOf = recordEndsOf(definition);
    const ends = this.endsOf(new Uint8Array(0));
    this.silence = new Silence(() => this.files, ends, options.tailTimeoutMs);
    const names = new LogNames(definition.file);
    this.logs = new AgentFiles(files, definition.file.directory, names, options.dataFolder);
    if (definition.rotate !== undefined) this.rotation = this.createRotation(definition, definition.rotate);
    const settings = decodeSettings(definition, timezone, this.stop);
    const problems = new LineProblems(this.name, definition.fields, now, log);
    this.target = { store, settings, workers, now, tally: this.tally, problems };
  }

  private createRotation({ name, path }: AgentDefinition, rotation: Rotation): LogRotation {
    const { files, handles, now, log } = this.options;
    const { run } = rotation;
    const after = run === undefined ? undefined : new AfterRotation(name, path, run, log);
    return new LogRotation({ agent: name, rotation, folder: this.logs, files, handles, now, log, after });
  }

  /** Milliseconds until the last lines of some file are taken as a complete record. */
  get recordDueInMs(): number {
    return this.silence.dueInMs(this.options.now());
  }

  /** The folders with the agent's logs, as one path with expressions where names vary. */
  get folder(): string {
    return shownFolder(this.options.definition.file!);
  }

  /** Absolute paths of the folders that may have logs or folders with logs, as of the last survey. */
  get folders(): ReadonlySet<string> {
    return this.logs.tree.folders;
  }

  /** The agent's files that are known, including those without a name. */
  get files(): Iterable<FollowedFile> {
    return this.logs.byInode.values();
  }

  /**
   * Whether something may become due that no change of the folder announces: a retry, the end of a silence, or new
   * content in a file that has no name any more.
   */
  get waits(): boolean {
    if (this.toldUnreadable.size > 0) return true;
    for (const file of this.files) {
      const { status, failure } = file.state;
      if (file.kind === 'waiting' && status.sizeBytes > 0) return true;
      if (file.isGone || failure !== null) return true;
      if (restSinceMs(file.state) !== null && this.silence.isPutAside(file)) return true;
    }
    return false;
  }

  /** Surveys the folders: all, or those in which the paths `changed` are. Throws Node's errors of reading the fixed one. */
  async survey(changed?: ReadonlySet<string>): Promise<void> {
    const { log, now, handles } = this.options;
    const { appeared, vanished, passedOver, failures, strays, hasLinks, isFirst } = await this.logs.survey(
      now(),
      changed,
    );
    const unreadable = failures.map(({ path, error }) => ({
      path,
      reason: describeSystemError(error, path).message,
    }));
    this.tellNew(unreadable, this.toldUnreadable);
    this.tellNew(strays, this.toldStrays);
    this.hasLinks = hasLinks;
    if (!isFirst)
      for (const file of appeared) log.info({ agent: this.name, file: file.path }, 'a new log was found');
    for (const file of vanished) {
      const status = await handles
        .opened(file)
        ?.status()
        .catch(() => null);
      if (status?.links === 0) this.rememberRemoved(file.inode);
      log.info(
        { agent: this.name, file: file.path, lag: lagBytes(file.state) },
        'a log was renamed or removed',
      );
    }
    if (passedOver > 0)
      log.error(
        { agent: this.name, files: passedOver },
        'too many files or folders match: these are not followed',
      );
  }

  /** Warns about names that are not in `told`; afterwards `told` holds exactly the given names (at most `rememberedMax`). */
  private tellNew(names: readonly Stray[], told: Set<string>): void {
    const present = new Set(names.map(({ path }) => path));
    for (const path of told) if (!present.has(path)) told.delete(path);
    for (const { path, reason } of names) {
      if (told.has(path) || told.size >= rememberedMax) continue;
      told.add(path);
      this.options.log.warn({ agent: this.name, file: path }, reason);
    }
  }

  /** Looks at paths that have changed. Returns those for which a survey of their folders is needed. */
  async touch(paths: readonly string[]): Promise<ReadonlySet<string>> {
    const left = new Set<string>();
    for (const path of paths) if (!(await this.logs.touch(path, this.options.now()))) left.add(path);
    return left;
  }

  /** Identifies the files that were seen, and finds the position from which each is read on. Throws what the storage throws. */
  async identify(): Promise<void> {
    try {
      if (this.checkpoints === null) await this.learn();
      if (!this.hasRecalled) {
        const known = this.checkpoints!;
        const lost = await this.logs.recall(known, this.firstStartMs, this.options.now());
        this.hasRecalled = true;
        reportLost(this.options.log, this.name, [...this.files], lost, known);
      }
      await this.identifyNew();
    } catch (error) {
      await this.startOver();
      throw error;
    }
  }

  /** Starts a worker thread before there are lines, which would otherwise wait for its start. Never throws. */
  async warmUp(): Promise<void> {
    const { settings, workers } = this.target;
    // An invalid definition is reported with the first lines.
    await decodeLines(workers, { settings, ranges: [] }, new Uint8Array(0), null).catch(() => {});
  }

  /** Stores what the files have gained in one commit. Throws what the storage throws; then all files are identified anew. */
  async round(frame: LineFrame): Promise<Round> {
    await this.identify();
    try {
      frame.clear();
      const isFull = await this.gather(frame);
      this.attempts.tellDenied(this.checkpoints ?? []);
      if (frame.lines.length > 0) await commitFrame(this.target, frame);
      this.target.problems.tell();
      const isBusy = await this.rotate();
      await this.forgetGoneFiles();
      if (isFull || isBusy) return 'more';
      if (this.toldUnreadable.size === 0) await this.goneSources.forget(this.logs.byInode);
      return frame.lines.length > 0 ? 'done' : 'idle';
    } catch (error) {
      await this.startOver();
      throw error;
    }
  }

  /**
   * Records in the store the time from which the agent is followed, unless one is recorded: generations that rotate after it
   * are read. Throws the errors of the storage; the next round then tries again.
   */
  async prepare(): Promise<void> {
    await this.learn();
  }

  /** Loads the checkpoints from the store. The first time ever, records that the agent is followed from now on. */
  private async learn(): Promise<void> {
    const { store, now, definition } = this.options;
    const { checkpoints, asOf } = await store.sources();
    const start = findStart(checkpoints);
    if (start === undefined) {
      this.isFirst = true;
      const file = definition.file!;
      await markStart(store, `${shownFolder(file)}/${file.namePattern}`, now());
      return this.learn();
    }
    this.firstStartMs = start.lastTimeMs ?? 0;
    this.checkpoints = checkpoints;
    this.asOf = asOf;
  }

  /** Forgets the stored positions, because it is unknown what was committed. */
  private async startOver(): Promise<void> {
    this.checkpoints = null;
    for (const file of this.files) {
      file.observe({ kind: 'doubted' });
      await file.closed();
    }
  }

  private async identifyNew(): Promise<void> {
    this.attempts.reopen(this.files);
    const files = [...this.files].filter(
      (file) =>
        (file.kind === 'new' || file.kind === 'waiting') &&
        file.state.mayHaveMore &&
        this.attempts.mayTry(file),
    );
    if (files.length === 0) return;
    // Load the checkpoints again: they must include what was committed since, because a new file may be a copy of one that
    // is being followed.
    const { checkpoints, asOf } = await this.options.store.sources();
    this.checkpoints = checkpoints;
    this.asOf = asOf;
    // Files that are still written come first, because copies among the rotated generations are recognised by them.
    files.sort((a, b) => Number(a.rotated) - Number(b.rotated));
    for (const file of files) {
      await this.attempts.run(file, async () => {
        this.take(file, await this.identityOf(file));
      });
    }
    this.attempts.tellDenied(checkpoints);
  }

  private async identityOf(file: FollowedFile): Promise<Identity> {
    const { handles, now, limitLines } = this.options;
    const handle = await handles.use(file, file.place);
    const status = await handle.status();
    if (status.inode !== file.inode) {
      // The name leads to another file by now.
      await handles.release(file);
      return { kind: 'waiting' };
    }
    file.observe({ kind: 'measured', status });
    return identify(file, handle, {
      checkpoints: this.checkpoints!,
      files: this.logs.byInode,
      opened: (other) => handles.opened(other),
      baseOf: (path) => this.logs.baseOf(path),
      removed: this.removed,
      truncated: this.truncations.sources,
      firstStartMs: this.firstStartMs,
      limitLines: this.isFirst ? limitLines : 0,
      nowMs: now(),
      endsOf: this.endsOf,
      settings: this.target.settings,
    });
  }

  private take(file: FollowedFile, identity: Identity): void {
    file.observe({ kind: 'identified', identity, asOf: this.asOf });
    if (identity.kind === 'follow') {
      for (const other of this.files)
        if (continues(file, identity, other)) other.observe({ kind: 'continued' });
      reportIdentity(this.options.log, this.name, file, identity);
      this.truncations.recover(file, identity.known, identity.head);
    }
    if (identity.kind === 'packed') this.truncations.recover(file, identity.source.known, identity.head);
  }

  /** Reads on in every file that may have grown. Returns whether there is more than the frame holds. */
  private async gather(frame: LineFrame): Promise<boolean> {
    const { now } = this.options;
    const nowMs = now();
    const ready = [...this.files].filter(
      (file) =>
        file.beingRead !== null &&
        this.attempts.mayTry(file) &&
        (file.state.mayHaveMore || this.silence.mayEndHere(file, nowMs)),
    );
    // Begin with the file that found no room in the last frame. Thus each file waits for at most one turn of all files, and
    // a file that fills every frame does not shut out the others. Once there is no room, no further file is read.
    const first = this.nextFile === undefined ? 0 : Math.max(0, ready.indexOf(this.nextFile));
    let isFull = false;
    let hasRoom = true;
    let next = 0;
    let firstLeft = Infinity;
    const lane = async (scratch: Uint8Array): Promise<void> => {
      while (hasRoom && next < ready.length) {
        const turn = next++;
        const file = ready[(first + turn) % ready.length]!;
        await this.attempts.run(file, async () => {
          const content = file.beingRead!;
          const linesBefore = frame.lines.length;
          const gathered =
            content.kind === 'packed'
              ? await gatherPacked(file, content, frame)
              : await this.readPlain(file, frame, scratch, nowMs, ready.length === 1);
          const hasNewLines = frame.lines.slice(linesBefore).some((lines) => lines.file === file);
          if (gathered === 'replaced') this.noteReplaced(file, frame);
          const hasGrown = hasNewLines && content.kind === 'follow';
          const mayHaveMore = gathered !== 'end';
          file.observe({ kind: 'turned', mayHaveMore, hasGrown, nowMs });
          isFull ||= mayHaveMore;
          if (gathered !== 'full') return;
          hasRoom = false;
          if (!hasNewLines) firstLeft = Math.min(firstLeft, turn);
        });
      }
    };
    // Wait for all lanes before throwing a failure: no lane may add lines to a frame that is already used elsewhere.
    const ended = await Promise.allSettled(frame.scratches.map(lane));
    for (const result of ended) if (result.status === 'rejected') throw result.reason;
    this.nextFile = undefined;
    for (let turn = Math.min(firstLeft, next); turn < ready.length && this.nextFile === undefined; turn++) {
      const file = ready[(first + turn) % ready.length]!;
      if (file.state.mayHaveMore) this.nextFile = file;
    }
    return isFull;
  }

  private readPlain(
    file: FollowedFile,
    frame: LineFrame,
    scratch: Uint8Array,
    nowMs: number,
    isAlone: boolean,
  ): Promise<Gathered> {
    const takeRest = this.silence.mayEndHere(file, nowMs);
    return this.options.handles.whileOpen(file, file.place, (handle) =>
      new LineGathering(file, handle, frame, scratch, this.endsOf, isAlone).run({ takeRest, nowMs }),
    );
  }

  /** Handles content that is not there any more: the file was truncated, or another file has its inode number. */
  private noteReplaced(file: FollowedFile, frame: LineFrame): void {
    // Lines of the file that were just read are stored first; a later round detects the change again.
    if (frame.lines.some((lines) => lines.file === file)) return;
    this.truncations.count(file);
    file.observe({ kind: 'replaced' });
  }

  /** Rotates logs that are too large. Returns whether one could not be emptied because it is being written. */
  private async rotate(): Promise<boolean> {
    if (this.rotation === undefined) return false;
    const { emptied, renamed, isBusy } = await this.rotation.run();
    for (const file of emptied) {
      this.truncations.remember(file, 0);
      file.observe({ kind: 'replaced' });
    }
    this.tally.rotations += emptied.length + renamed.length;
    return isBusy;
  }

  /** Closes and forgets files that have no name and nothing left to read. */
  private async forgetGoneFiles(): Promise<void> {
    const { now, handles, tailTimeoutMs, log } = this.options;
    for (const file of this.files) {
      const { state } = file;
      if (state.goneSinceMs === null) continue;
      const quietMs = now() - Math.max(state.goneSinceMs, state.grownMs);
      const handle = handles.opened(file);
      const unread = lagBytes(state);
      if (handle !== null && quietMs >= 0) {
        const hasRest = restSinceMs(state) !== null;
        if (quietMs < tailTimeoutMs || (hasRest && state.mayHaveMore)) continue;
        const { links } = await handle.status().catch(() => ({ links: 0 }));
        if (quietMs < Math.max(tailTimeoutMs, links === 0 ? removedQuietMs : renamedQuietMs)) continue;
        if (links === 0) this.rememberRemoved(file.inode);
      } else if (unread > 0) {
        log.warn(
          { agent: this.name, file: file.path, unread },
          'a log was removed before all of it was read',
        );
      }
      await this.release(file);
      this.logs.byInode.delete(file.inode);
    }
  }

  /** Closes all handles of a file. */
  private async release(file: FollowedFile): Promise<void> {
    file.observe({ kind: 'doubted' });
    await this.options.handles.release(file);
    await file.closed();
  }

  private rememberRemoved(inode: string): void {
    this.removed.add(inode);
    if (this.removed.size > rememberedMax) this.removed.delete(this.removed.values().next().value!);
  }

  /** Records that a round failed. Collection pauses until a round succeeds. */
  pause(error: unknown): void {
    this.pauses.pause(error);
  }

  /** Records that a round succeeded. */
  resume(): void {
    this.pauses.resume();
  }

  /** The current state of the collection. */
  status(): CollectStatus {
    const files = [...this.files].map(({ path, kind, position, state }) => ({
      path,
      role: kind,
      offset: position?.offset ?? 0,
      lagBytes: lagBytes(state),
      records: position?.records ?? 0,
      rejected: position?.rejected ?? 0,
      failure: state.failure?.message ?? null,
    }));
    const lag = files.reduce((sum, file) => sum + file.lagBytes, 0);
    return { ...this.tally.counts(), files, lagBytes: lag, paused: this.pauses.reason };
  }

  /** Makes the round under way fail as soon as the current line is decoded. */
  abandon(): void {
    setStopFlag(this.stop);
  }

  /** Closes all files. */
  async close(): Promise<void> {
    this.target.problems.tell(true);
    for (const file of this.files) await this.release(file);
    this.logs.byInode.clear();
  }
}
