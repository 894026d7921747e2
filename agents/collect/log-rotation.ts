import type { Rotation } from '../definition/definition.js';
import { describeSystemError } from '../sources/byte-source.js';
import type { AfterRotation } from './after-rotation.js';
import type { AgentFiles } from './logs/agent-files.js';
import type { CollectLog } from './logs/collect-log.js';
import type { FollowedFile } from './logs/followed-file.js';
import type { FileStatus, LogFiles } from './logs/log-files.js';
import type { OpenFiles } from './logs/open-files.js';

/** Options of rotating an agent's logs. */
export interface LogRotationOptions {
  readonly agent: string;
  readonly rotation: Rotation;
  readonly folder: AgentFiles;
  readonly files: LogFiles;
  readonly handles: OpenFiles;
  readonly now: () => number;
  readonly log: CollectLog;
  /** Runs the command of the agent's file after rotations; undefined for none. */
  readonly after: AfterRotation | undefined;
}

/** Result of rotating logs. */
export interface Rotated {
  /** Logs that were truncated to nothing. */
  readonly emptied: readonly FollowedFile[];
  /** Logs that were renamed. */
  readonly renamed: readonly FollowedFile[];
  /** Whether a log could not be emptied because lines were written meanwhile; an immediate retry may find a moment without new lines. */
  readonly isBusy: boolean;
}

/** Limit on rounds in a row that look for a moment without new lines. */
const triesMax = 50;

/** Delay before the next attempt after a failure, or for a log that was written to in each of those rounds. */
const retryMs = 60_000;

/** Suffix of a renamed log. There is only one such generation. */
const suffix = '.1';

/**
 * Rotates an agent's logs that are too large. Only stored content is removed: a log is emptied when all of it is stored, and
 * renamed when the file that it replaces is stored. Call it when all that was read is committed.
 */
export class LogRotation {
  private tries = 0;
  private readonly notBefore = new Map<string, number>();
  private readonly told = new Map<string, string>();

  constructor(private readonly options: LogRotationOptions) {}

  /** Rotates the logs that are due. Failures are logged and tried again later. */
  async run(): Promise<Rotated> {
    const { rotation, after } = this.options;
    const emptied: FollowedFile[] = [];
    const renamed: FollowedFile[] = [];
    let isBusy = false;
    for (const file of this.due()) {
      try {
        if (rotation.method === 'rename') {
          if (await this.rename(file)) renamed.push(file);
        } else if (file.followed!.rest !== null) this.awaitLineEnd(file);
        else if (await this.empty(file)) emptied.push(file);
        else isBusy = true;
      } catch (error) {
        this.postpone(file, describeSystemError(error, file.path).message);
      }
    }
    for (const file of [...emptied, ...renamed]) this.tell(file);
    if (emptied.length + renamed.length > 0) after?.call();
    return { emptied, renamed, isBusy: isBusy && this.tryAgain() };
  }

  private due(): FollowedFile[] {
    const { folder, rotation, now } = this.options;
    const { sizeBytes } = rotation;
    if (sizeBytes === null) return [];
    return [...folder.byInode.values()].filter(
      (file) =>
        file.followed !== null &&
        file.followed.position.offset >= sizeBytes &&
        !file.isGone &&
        // A pattern may also match the names of rotated generations.
        !file.rotated &&
        !file.name.name.endsWith(suffix) &&
        now() >= (this.notBefore.get(file.inode) ?? -Infinity),
    );
  }

  /**
   * A log that ends inside a line is not stored completely, so it is not emptied. Programs that write in blocks may always
   * leave it so: warn once it has twice the size.
   */
  private awaitLineEnd(file: FollowedFile): void {
    if (file.position!.offset < 2 * this.options.rotation.sizeBytes!) return;
    this.postpone(file, `${file.path} is not rotated: it ends inside a record. Use the method rename`);
  }

  /** Empties a log. Returns false when some of it is not stored. */
  private async empty(file: FollowedFile): Promise<boolean> {
    const { files } = this.options;
    if (await files.empty(file.path, file.inode, file.position!.offset)) return true;
    // Read it again, even if the change is not announced.
    file.observe({ kind: 'written' });
    return false;
  }

  private async rename(file: FollowedFile): Promise<boolean> {
    const { files, handles } = this.options;
    const target = `${file.path}${suffix}`;
    const reason = (await files.isLink(file.path)) ? 'it is a symbolic link' : await this.whyKept(target);
    if (reason !== null) {
      this.postpone(file, `${file.path} is not rotated: ${reason}`);
      return false;
    }
    const { inode } = await (await handles.use(file, file.path)).status();
    if (inode !== file.inode || (await files.status(file.path)).inode !== inode) return false;
    await files.rename(file.path, target);
    return true;
  }

  /** Why a file must not be replaced; null where it is stored completely or does not exist. */
  private async whyKept(path: string): Promise<string | null> {
    const { files, folder, handles } = this.options;
    const status = await files.status(path).catch(noStatus);
    if (status === null) return null;
    const known = folder.byInode.get(status.inode);
    if (known?.kind === 'done') return null;
    if (known === undefined || known.followed === null || known.followed.position.offset < status.sizeBytes)
      return `${path} exists, and not all of it is stored`;
    // Its writer may still have it open. This handle reads what is still written after the name is replaced.
    await handles.use(known, known.path);
    return null;
  }

  private tell(file: FollowedFile): void {
    const { agent, log, rotation } = this.options;
    this.told.delete(file.inode);
    const facts = { agent, file: file.path, bytes: file.position!.offset, method: rotation.method };
    log.info(facts, 'a log was rotated');
  }

  private postpone(file: FollowedFile, message: string): void {
    const { agent, log, now } = this.options;
    this.forgetGone();
    this.notBefore.set(file.inode, now() + retryMs);
    if (this.told.get(file.inode) === message) return;
    this.told.set(file.inode, message);
    log.warn({ agent, file: file.path }, message);
  }

  private forgetGone(): void {
    const { byInode } = this.options.folder;
    for (const inode of this.notBefore.keys()) if (!byInode.has(inode)) this.notBefore.delete(inode);
    for (const inode of this.told.keys()) if (!byInode.has(inode)) this.told.delete(inode);
  }

  private tryAgain(): boolean {
    if (++this.tries < triesMax) return true;
    this.tries = 0;
    const message =
      'it can be truncated only in a pause between writes, and there is none. Use the method rename';
    for (const file of this.due()) this.postpone(file, `${file.path} is not rotated: ${message}`);
    return false;
  }
}

function noStatus(error: unknown): FileStatus | null {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
  throw error;
}
