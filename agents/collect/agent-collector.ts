import { type AgentStore, type Checkpoint, LogstrataError, type WorkerPool } from '../../engine/index.js';
import type { AgentDefinition, Rotation } from '../definition/definition.js';
import { recordEndsOf, type RecordEnds } from '../lines/record-ends.js';
import { describeSystemError } from '../sources/source-error.js';
import { AfterRotation } from './after-rotation.js';
import { AgentFiles, type Stray } from './logs/agent-files.js';
import { CollectTally, type CollectStatus } from './logs/collect-counts.js';
import type { CollectLog } from './logs/collect-log.js';
import { CollectPauses } from './collect-pauses.js';
import { findStart, markStart } from './logs/follow-start.js';
import { identify } from './logs/file-identity.js';
import { FileAttempts } from './logs/file-attempts.js';
import type { FollowedFile } from './logs/followed-file.js';
import { decodeSettings } from '../frames/decode-task.js';
import { decodeLines } from '../frames/lent-decoding.js';
import type { CutBack } from './logs/cut-back.js';
import { commitFrame, type CommitTarget } from './frame-commit.js';
import { NotKeptReport } from './not-kept-report.js';
import { newStopFlag, setStopFlag } from '../decode/stop-flag.js';
import { gatherPacked } from './gather-packed.js';
import { GoneSources } from './logs/gone-sources.js';
import type { LineFrame } from './line-frame.js';
import { LineGathering } from './line-gathering.js';
import type { LogFiles } from './logs/log-files.js';
import { LogRotation } from './log-rotation.js';
import { LogNames } from './logs/log-names.js';
import { isDue, lagBytes, restSinceMs, type Identity } from './logs/log-state.js';
import type { OpenFiles } from './logs/open-files.js';
import { Silence } from './silence.js';
import { Truncations } from './logs/truncations.js';

export interface CollectorOptions {
  readonly store: AgentStore;
  /** An agent with `file`. */
  readonly definition: AgentDefinition;
  /** Zone of times that carry none. */
  readonly timezone: string;
  /** The clock, in milliseconds. */
  readonly now: () => number;
  readonly files: LogFiles;
  /** Of the archive: nothing in it is followed. */
  readonly dataFolder?: string | undefined;
  readonly handles: OpenFiles;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  /** Lines to take of a file that is there when the agent is followed first; 0 for all. */
  readonly limitLines: number;
  /** After this silence a last line without an end is taken, of a file that nobody writes to any more. */
  readonly tailTimeoutMs: number;
}

/** What a round has done: nothing, all that there was, or as much as one commit holds. */
export type Round = 'idle' | 'done' | 'more';

/** Names that are kept in mind of files that are gone or can't be looked at, at most. */
const rememberedMax = 10_000;

/** A file without a name is let go after this silence: its disk space is only freed then, or its writer has long moved on. */
const removedQuietMs = 60_000;
const renamedQuietMs = 600_000;

/**
 * Follows the logs of one agent. Each round takes what the files have gained into one commit, so that nothing is read ahead
 * of what is stored, and a round that fails leaves everything as it was.
 */
export class AgentCollector {
  readonly name: string;
  private readonly tally = new CollectTally();
  private readonly stop = newStopFlag();
  private readonly pauses: CollectPauses;
  private readonly folder: AgentFiles;
  private readonly target: CommitTarget;
  private readonly ends: RecordEnds;
  private readonly silence: Silence;
  private readonly rotation: LogRotation | undefined;
  private readonly removed = new Set<string>();
  /** Names that can't be looked at, and those that are passed over. */
  private readonly unseen = new Set<string>();
  private readonly strays = new Set<string>();
  private readonly truncations: Truncations;
  private readonly attempts: FileAttempts;
  private checkpoints: readonly Checkpoint[] | null = null;
  private asOf = 0;
  private firstStartMs = 0;
  private readonly goneSources: GoneSources;
  /** The agent was never followed before this process. */
  private isFirst = false;
  /** The first file behind the one that filled the last frame whose lines found no room in it. */
  private nextFile: FollowedFile | undefined;
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
    this.ends = recordEndsOf(definition.file);
    this.silence = new Silence(() => this.files, this.ends, options.tailTimeoutMs);
    const { directory, namePattern } = definition.file;
    this.folder = new AgentFiles(files, directory, new LogNames(namePattern), options.dataFolder);
    if (definition.rotate !== undefined) this.rotation = this.createRotation(definition, definition.rotate);
    const settings = decodeSettings(definition, timezone, this.stop);
    const notKept = new NotKeptReport(this.name, log);
    this.target = { store, settings, workers, now, tally: this.tally, notKept };
  }

  private createRotation({ name, path }: AgentDefinition, rotation: Rotation): LogRotation {
    const { files, handles, now, log } = this.options;
    const { run } = rotation;
    const after = run === undefined ? undefined : new AfterRotation(name, path, run, log);
    return new LogRotation({ agent: name, rotation, folder: this.folder, files, handles, now, log, after });
  }

  /** How long it is until the last lines of some file are taken for a whole record. */
  get recordDueInMs(): number {
    return this.silence.dueInMs(this.options.now());
  }

  get directory(): string {
    return this.folder.directory;
  }

  get files(): Iterable<FollowedFile> {
    return this.folder.byInode.values();
  }

  /** Something may happen that no change of the folder announces: a retry, a silence that ends, a file without a name. */
  get waits(): boolean {
    if (this.unseen.size > 0) return true;
    for (const file of this.files) {
      const { status, failure } = file.state;
      if (file.kind === 'waiting' && status.sizeBytes > 0) return true;
      if (file.gone || failure !== null) return true;
      if (restSinceMs(file.state) !== null && this.silence.isPutAside(file)) return true;
    }
    return false;
  }

  /** Looks at the folder. Throws Node's errors of reading it. */
  async survey(): Promise<void> {
    const { log, now, handles } = this.options;
    const { appeared, vanished, passedOver, failures, strays, hasLinks, isFirst } =
      await this.folder.survey(now());
    const unseen = failures.map(({ path, error }) => ({
      path,
      reason: describeSystemError(error, path).message,
    }));
    this.tellNew(unseen, this.unseen);
    this.tellNew(strays, this.strays);
    this.hasLinks = hasLinks;
    if (!isFirst)
      for (const file of appeared) log.info({ agent: this.name, file: file.path }, 'a log appeared');
    for (const file of vanished) {
      const status = await handles
        .opened(file)
        ?.status()
        .catch(() => null);
      if (status?.links === 0) this.rememberRemoved(file.inode);
      log.info(
        { agent: this.name, file: file.path, lag: lagBytes(file.state) },
        'a log is no longer under its name',
      );
    }
    if (passedOver > 0)
      log.error({ agent: this.name, files: passedOver }, 'too many files match: these are not followed');
  }

  /** Tells what is wrong with names that are not among `told`, which are then all that there are. */
  private tellNew(names: readonly Stray[], told: Set<string>): void {
    const present = new Set(names.map(({ path }) => path));
    for (const path of told) if (!present.has(path)) told.delete(path);
    for (const { path, reason } of names) {
      if (told.has(path) || told.size >= rememberedMax) continue;
      told.add(path);
      this.options.log.warn({ agent: this.name, file: path }, reason);
    }
  }

  /** Looks at names that have changed. Returns false when the whole folder must be looked at. */
  async touch(names: readonly string[]): Promise<boolean> {
    for (const name of names) if (!(await this.folder.touch(name, this.options.now()))) return false;
    return true;
  }

  /** Finds out what the files are that were seen, and where each is read on. Throws what the storage throws. */
  async identify(): Promise<void> {
    try {
      if (this.checkpoints === null) await this.learn();
      await this.identifyNew();
    } catch (error) {
      await this.startOver();
      throw error;
    }
  }

  /** Has a thread ready for the first lines: until one has begun, they would wait for it. Nothing is thrown. */
  async warmUp(): Promise<void> {
    const { settings, workers } = this.target;
    // A definition that makes no sense is told with the first lines.
    await decodeLines(workers, { settings, ranges: [] }, new Uint8Array(0), null).catch(() => {});
  }

  /** Takes what is there into one commit. Throws what the storage throws; then everything is looked at anew. */
  async round(frame: LineFrame): Promise<Round> {
    await this.identify();
    try {
      frame.clear();
      const isFull = await this.gather(frame);
      this.attempts.tellDenied(this.checkpoints ?? []);
      if (frame.lines.length > 0) await commitFrame(this.target, frame);
      const isBusy = await this.rotate();
      await this.forgetGoneFiles();
      if (isFull || isBusy) return 'more';
      if (this.unseen.size === 0) await this.goneSources.forget(this.folder.byInode);
      return frame.lines.length > 0 ? 'done' : 'idle';
    } catch (error) {
      await this.startOver();
      throw error;
    }
  }

  /**
   * Notes in the store since when the agent is followed, unless that is known: what rotates from then on is read. Throws
   * what the storage throws; then it is done later.
   */
  async prepare(): Promise<void> {
    await this.learn();
  }

  /** Asks the store how far everything is stored. The first time ever, it is noted that the agent is followed from now on. */
  private async learn(): Promise<void> {
    const { store, now, definition } = this.options;
    const { checkpoints, asOf } = await store.sources();
    const start = findStart(checkpoints);
    if (start === undefined) {
      this.isFirst = true;
      const { directory, namePattern } = definition.file!;
      await markStart(store, `${directory}/${namePattern}`, now());
      return this.learn();
    }
    this.firstStartMs = start.lastTimeMs ?? 0;
    this.checkpoints = checkpoints;
    this.asOf = asOf;
  }

  /** Nothing is known any more of what is stored. */
  private async startOver(): Promise<void> {
    this.checkpoints = null;
    for (const file of this.files) {
      file.observe({ kind: 'doubted' });
      await file.closed();
    }
  }

  private async identifyNew(): Promise<void> {
    const { now } = this.options;
    const files = [...this.files].filter(
      ({ kind, state }) => (kind === 'new' || kind === 'waiting') && state.mayHaveMore && isDue(state, now()),
    );
    if (files.length === 0) return;
    // What was committed since they were read is in them too: a copy may have been made of what is followed.
    const { checkpoints, asOf } = await this.options.store.sources();
    this.checkpoints = checkpoints;
    this.asOf = asOf;
    // Those that are written come first: which generations are copies shows by them.
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
    const handle = await handles.use(file, file.path);
    const status = await handle.status();
    if (status.inode !== file.inode) {
      // The name has passed to another file since.
      await handles.release(file);
      return { kind: 'waiting' };
    }
    file.observe({ kind: 'measured', status });
    return identify(file, handle, {
      checkpoints: this.checkpoints!,
      files: this.folder.byInode,
      removed: this.removed,
      truncated: this.truncations.sources,
      firstStartMs: this.firstStartMs,
      limitLines: this.isFirst ? limitLines : 0,
      nowMs: now(),
      ends: this.ends,
      settings: this.target.settings,
    });
  }

  private take(file: FollowedFile, identity: Identity): void {
    file.observe({ kind: 'identified', identity, asOf: this.asOf });
    if (identity.kind === 'follow') {
      if (identity.cutBack !== undefined) this.tellCutBack(file, identity.cutBack);
      this.truncations.recover(file, identity.known, identity.head);
    }
    if (identity.kind === 'packed') this.truncations.recover(file, identity.source.known, identity.head);
  }

  private tellCutBack(file: FollowedFile, { known, offset, isDated }: CutBack): void {
    const { sizeBytes } = file.state.status;
    const facts = { agent: this.name, file: file.path, bytes: sizeBytes, stored: known.offset, from: offset };
    const since = isDated
      ? 'where its lines are later than what is stored'
      : 'at its end, because its lines have no time that would tell what came since';
    this.options.log.warn(
      facts,
      `a log has not all that was stored of it, as after a power cut: ${known.offset} bytes were, it has ${sizeBytes}; ` +
        `it is read on at byte ${offset}, ${since}`,
    );
  }

  /** Reads on in every file that may have gained something. Returns whether there is more than the frame holds. */
  private async gather(frame: LineFrame): Promise<boolean> {
    const { now } = this.options;
    const nowMs = now();
    const ready = [...this.files].filter(
      (file) =>
        file.beingRead !== null &&
        isDue(file.state, nowMs) &&
        (file.state.mayHaveMore || this.silence.mayEndHere(file, nowMs)),
    );
    // What the last frame had no room for comes first: many files wait for each other's lines no longer than a turn takes, and
    // one that fills every frame leaves room for the others. Once there is no room, no other file is read only to find that.
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
          const hasTaken = frame.lines.slice(linesBefore).some((lines) => lines.file === file);
          if (gathered === 'replaced') this.noteReplaced(file, frame);
          const hasGrown = hasTaken && content.kind === 'follow';
          const mayHaveMore = gathered !== 'end';
          file.observe({ kind: 'turned', mayHaveMore, hasGrown, nowMs });
          isFull ||= mayHaveMore;
          if (gathered !== 'full') return;
          hasRoom = false;
          if (!hasTaken) firstLeft = Math.min(firstLeft, turn);
        });
      }
    };
    // All lanes have ended before a failure is passed on: none may add lines to a frame that others use by then.
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
  ): Promise<'end' | 'full' | 'replaced'> {
    const takeRest = this.silence.mayEndHere(file, nowMs);
    return this.options.handles.whileOpen(file, file.path, (handle) =>
      new LineGathering(file, handle, frame, scratch, this.ends, isAlone).run({ takeRest, nowMs }),
    );
  }

  /** The content that was read is no longer there: it was cut off, or the file is another one under the same number. */
  private noteReplaced(file: FollowedFile, frame: LineFrame): void {
    // What was read of it just now is stored first; then it is found out again.
    if (frame.lines.some((lines) => lines.file === file)) return;
    this.truncations.count(file);
    file.observe({ kind: 'replaced' });
  }

  /** Rotates logs that are too large. Returns whether one waits for a moment in which nothing is written. */
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

  /** Lets go of files that have no name and nothing more to give. */
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
        log.warn({ agent: this.name, file: file.path, unread }, 'a log went before all of it was read');
      }
      await this.release(file);
      this.folder.byInode.delete(file.inode);
    }
  }

  /** Closes all that is open of a file. */
  private async release(file: FollowedFile): Promise<void> {
    file.observe({ kind: 'doubted' });
    await this.options.handles.release(file);
    await file.closed();
  }

  private rememberRemoved(inode: string): void {
    this.removed.add(inode);
    if (this.removed.size > rememberedMax) this.removed.delete(this.removed.values().next().value!);
  }

  /** A round failed: nothing is collected until one succeeds. */
  pause(error: unknown): void {
    this.pauses.pause(error);
  }

  /** Collection goes on. */
  resume(): void {
    this.pauses.resume();
  }

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

  /** Has the round that is under way fail, as soon as the line that is being decoded is done. */
  abandon(): void {
    setStopFlag(this.stop);
  }

  /** Lets go of everything. */
  async close(): Promise<void> {
    for (const file of this.files) await this.release(file);
    this.folder.byInode.clear();
  }
}
