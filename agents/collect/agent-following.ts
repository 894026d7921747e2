import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isLogstrataError } from '../../engine/index.js';
import type { AgentCollector } from './agent-collector.js';
import type { CollectLog } from './logs/collect-log.js';
import { FolderChanges } from './logs/folder-changes.js';
import type { FramePool } from './line-frame.js';
import type { LogFiles } from './logs/log-files.js';
import type { WakeUp } from './logs/wake-up.js';
import type { CollectStatus } from './logs/collect-counts.js';

/** Interval of progress messages. A backlog that is read within this time is not reported. */
const everyMsDefault = 10_000;

/** Reports progress while a backlog is read: lines that came faster than they could be stored, or while nobody followed. */
export class BacklogReport {
  /** When reading without a pause began, and the counts at that time; null while there is no backlog. */
  private since: { readonly atMs: number; readonly records: number; readonly bytes: number } | null = null;
  private toldMs = 0;
  private hasTold = false;

  constructor(
    private readonly collector: { readonly name: string; status(): CollectStatus },
    private readonly log: CollectLog,
    private readonly everyMs = everyMsDefault,
  ) {}

  /** Records the end of a round; `more` says that it left lines unread. */
  round(more: boolean): void {
    const nowMs = performance.now();
    if (this.since === null) {
      if (!more) return;
      const { records, bytes } = this.collector.status();
      this.since = { atMs: nowMs, records, bytes };
      this.toldMs = nowMs;
      return;
    }
    if (more && nowMs - this.toldMs >= this.everyMs) this.tell(nowMs, 'reading a backlog');
    if (more) return;
    if (this.hasTold) this.tell(nowMs, 'all existing lines are read');
    this.since = null;
    this.hasTold = false;
  }

  private tell(nowMs: number, message: string): void {
    const { atMs, records, bytes } = this.since!;
    const status = this.collector.status();
    const seconds = (nowMs - atMs) / 1000;
    this.toldMs = nowMs;
    this.hasTold = true;
    this.log.info(
      {
        agent: this.collector.name,
        lag: status.lagBytes,
        records: status.records - records,
        seconds: Math.round(seconds),
        bytesPerSecond: Math.round((status.bytes - bytes) / Math.max(seconds, 0.001)),
      },
      message,
    );
  }
}

/** Options of following an agent's logs. */
export interface FollowingOptions {
  readonly files: LogFiles;
  readonly frames: FramePool;
  readonly log: CollectLog;
  /** Longest time, in milliseconds, from the writing of a line until queries see it. */
  readonly flushMs: number;
  /** Number of agents that share the time for surveys; 1 if omitted. */
  readonly sharedBy?: (() => number) | undefined;
  /** Number of fields of the agent, for the log. */
  readonly fields: number;
  /** Whether the log introduces what is followed. */
  readonly introduces: boolean;
  /** Milliseconds between progress messages while a backlog is read; the default of `BacklogReport` if omitted. */
  readonly backlogEveryMs?: number | undefined;
}

/**
 * How long a round under way may take after a stop before it is abandoned. With a large pattern, a megabyte of hostile lines
 * takes minutes to decode.
 */
const patienceMs = 5000;

/** Fraction of `flushMs` for which lines gather; the rest is for reading, decoding and committing them. */
const paceFraction = 0.6;

/**
 * Interval of surveys of the folder: while it is watched, in case a change was not announced; and while something is due
 * that no change announces.
 */
const surveyMs = 2000;
const waitingMs = 1000;

/**
 * Surveys take at most this fraction of the time, so that a folder with very many files is surveyed less often. Agents that
 * read trees of folders share it.
 */
const surveyFraction = 0.1;

/** Folders that are surveyed at once where changes are announced: a change waits until they are. */
const surveyFoldersMax = 250;

/** Delay before the next attempt after a failure of the storage. */
const retryMs = 1000;

/** Follows the logs of one agent until its signal aborts. */
export class AgentFollowing {
  private readonly changes: FolderChanges;
  private readonly backlog: BacklogReport;
  private surveyedMs = -Infinity;
  private surveyTookMs = 0;
  /** The folders that the survey has not come to yet. */
  private foldersLeft: string[] = [];
  private isFirst = true;

  constructor(
    private readonly collector: AgentCollector,
    private readonly options: FollowingOptions,
    private readonly signal: AbortSignal,
    private readonly wakeUp: WakeUp,
  ) {
    this.changes = new FolderChanges(options.files, wakeUp);
    this.backlog = new BacklogReport(collector, options.log, options.backlogEveryMs);
  }

  /**
   * Runs until the signal aborts (the caller then also calls the wake-up, to end a sleep). Ends once the round under way is
   * stored, or is abandoned because it takes too long.
   */
  async run(): Promise<void> {
    const warm = this.collector.warmUp();
    let patience: NodeJS.Timeout | undefined;
    const stop = (): void => void (patience = setTimeout(() => this.collector.abandon(), patienceMs));
    this.signal.addEventListener('abort', stop, { once: true });
    while (!this.signal.aborted) {
      const isStored = await this.step();
      if (this.signal.aborted) break;
      if (isStored) await this.rest();
      else await this.pause(retryMs);
    }
    this.signal.removeEventListener('abort', stop);
    clearTimeout(patience);
    this.changes.end(performance.now());
    await warm;
    await this.collector.close();
  }

  /** Stores all lines that there are. Returns false after a failure of the storage. */
  private async step(): Promise<boolean> {
    const { collector } = this;
    const { frames } = this.options;
    try {
      for (let more = true; more && !this.signal.aborted;) {
        await this.look();
        if (this.isFirst) await this.introduce();
        const round = await frames.use((frame) => collector.round(frame));
        collector.resume();
        more = round === 'more';
        this.backlog.round(more);
      }
      return true;
    } catch (error) {
      // The abandoned lines are not stored, so they are read again when the log is next followed.
      if (this.signal.aborted && isLogstrataError(error) && error.code === 'cancelled') return false;
      collector.pause(error);
      this.surveyedMs = -Infinity;
      return false;
    }
  }

  private async look(): Promise<void> {
    const startedMs = performance.now();
    this.changes.begin(this.collector.folders, startedMs);
    const paths = this.changes.take(startedMs);
    const isDue = paths === null || startedMs - this.surveyedMs >= this.surveyEveryMs();
    if (isDue && (paths === null || this.surveysAtOnce)) {
      await this.collector.survey();
      this.foldersLeft = [];
    } else {
      const changed = new Set(await this.collector.touch(paths ?? []));
      if (isDue) for (const folder of this.nextFolders()) changed.add(folder);
      if (changed.size === 0) return;
      await this.collector.survey(changed);
    }
    if (isDue) {
      this.surveyedMs = performance.now();
      this.surveyTookMs = this.surveyedMs - startedMs;
    }
    this.changes.begin(this.collector.folders, performance.now());
  }

  /** Whether the survey that is due is of all folders, and not of some in turn. */
  private get surveysAtOnce(): boolean {
    const { changes, collector } = this;
    return this.surveyedMs === -Infinity || !changes.watching || collector.folders.size <= surveyFoldersMax;
  }

  /** The folders that the survey comes to next, as paths in them. */
  private nextFolders(): string[] {
    if (this.foldersLeft.length === 0) this.foldersLeft = [...this.collector.folders];
    return this.foldersLeft.splice(0, surveyFoldersMax).map((folder) => join(folder, '*'));
  }

  private surveyEveryMs(): number {
    const { changes, collector } = this;
    const wholeMs = changes.watching && !collector.hasLinks ? (collector.waits ? waitingMs : surveyMs) : 0;
    const wantedMs = wholeMs * Math.min(1, surveyFoldersMax / collector.folders.size);
    const restMs = (this.surveyTookMs / surveyFraction) * (this.options.sharedBy?.() ?? 1);
    return Math.max(wantedMs, this.paceMs, restMs);
  }

  private get paceMs(): number {
    return this.options.flushMs * paceFraction;
  }

  /** Lets lines gather for one commit, then waits for a change or until the next survey is due. */
  private async rest(): Promise<void> {
    await this.pause(this.paceMs);
    if (this.signal.aborted) return;
    const surveyInMs = this.surveyedMs + this.surveyEveryMs() - performance.now();
    const leftMs = Math.min(surveyInMs, this.collector.recordDueInMs);
    if (leftMs > 0) await this.wakeUp.sleep(leftMs);
  }

  /** Sleeps for the full time, whatever changes; an abort ends it. */
  private async pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.signal }).catch(() => {});
  }

  /** At the start, logs what is followed before anything is read, because reading may take long. */
  private async introduce(): Promise<void> {
    const { collector, options } = this;
    await collector.identify();
    this.isFirst = false;
    if (!options.introduces) return;
    const { files, lagBytes } = collector.status();
    const followed = files.filter(({ role }) => role === 'follow').length;
    options.log.info(
      {
        agent: collector.name,
        folder: collector.folder,
        files: followed,
        lag: lagBytes,
        fields: options.fields,
      },
      followed > 0 ? 'following' : files.length > 0 ? 'no log can be followed yet' : 'no log exists yet',
    );
  }
}
