import { realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { LogstrataError, isLogstrataError } from '../core/errors.js';
import type { Directory } from '../store/disk/directory.js';
import { openRealDirectory } from '../store/disk/real-directory.js';
import { AgentFolders } from '../store/manifest/manifest-file.js';
import { connectToWriter, lockForWriting, type WriterLock } from '../store/writer/writer-link.js';
import { refused, writerOperations } from '../store/writer/writer-operations.js';
import { ObjectDirectory } from '../objects/object-directory.js';
import type { ObjectStorage } from '../objects/object-storage.js';

/** A folder that data folders are copied to. While it is open nothing else writes there, and nothing reads. */
export interface BackupFolder {
  readonly directory: Directory;
  /** Agents that it holds, sorted. */
  agents(): Promise<string[]>;
  close(): Promise<void>;
}

/**
 * Opens the folder at the absolute `path`, which is made where it is not there, for a copy of the data folder at `source`. Throws `invalid` where one of the
 * two lies in the other, or the folder holds something and no records, and `locked` where another process writes to it.
 */
export async function openBackupFolder(path: string, source: string): Promise<BackupFolder> {
  assertApart(path, source);
  const directory = await openRealDirectory(path, { create: true });
  const { location } = directory;
  // Links may lead from one into the other.
  assertApart(await realpath(location), await realpath(source));
  const lock = await lockForWriting(location, 'backup');
  if (lock === undefined) throw await lockedBy(location);
  const refusal = `process ${process.pid} is updating the copy in ${location}: wait until it has ended`;
  const noWriter = () => Promise.reject(new LogstrataError('locked', refusal));
  lock.serve(refused(writerOperations(noWriter), refusal));
  const folders = new AgentFolders(directory, () => {});
  try {
    await assertCopy(directory, folders);
  } catch (error) {
    await end(lock);
    throw error;
  }
  return { directory, agents: () => folders.agents(), close: () => end(lock) };
}

async function end(lock: WriterLock): Promise<void> {
  await lock.stopServing();
  await lock.release();
}

function assertApart(target: string, source: string): void {
  const isWithin = (inner: string, outer: string): boolean =>
    inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : `${outer}${sep}`);
  if (!isWithin(target, source) && !isWithin(source, target)) return;
  throw new LogstrataError(
    'invalid',
    `a copy of ${source} can't be stored in ${target}: name a folder that is not inside the other, nor contains it`,
    { path: target },
  );
}

async function lockedBy(location: string): Promise<LogstrataError> {
  const link = await connectToWriter(location);
  const who = link === undefined ? 'another process' : `process ${link.holder.pid} (${link.holder.role})`;
  await link?.close();
  return new LogstrataError('locked', `${who} writes to ${location}: stop it, or name another folder`, {
    path: location,
  });
}

/** Throws `invalid` for a folder with other things in it, which was hardly meant. Names with a dot or `_` first are the lock's, the tokens', and file systems' own. */
export async function assertCopy(directory: Directory, folders: AgentFolders): Promise<void> {
  const other = (await directory.list('')).find((name) => !/^[._]/.test(name) && name !== 'lost+found');
  if (other === undefined || (await folders.agents()).length > 0) return;
  throw new LogstrataError(
    'invalid',
    `${directory.location} contains ${JSON.stringify(other)} but no records: name an empty or new folder, or an earlier copy`,
    { path: directory.location },
  );
}

/** Who brings a copy up to date. */
interface LockHolder {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly since: string;
}

/** The lock object is some hundred bytes; another one of that name is none. */
const lockBytesMax = 4096;

/**
 * Opens the objects below `location`, `s3://bucket/prefix`, for a copy of a data folder. Throws `invalid` where there is something and no records,
 * `locked` where another process brings the copy up to date, `io`.
 */
export async function openBackupObjects(location: string, storage: ObjectStorage): Promise<BackupFolder> {
  const path = location.replace(/\/$/, '');
  const lock = new ObjectLock(`${path}/.backup-lock`, path, storage);
  await lock.take();
  try {
    const directory = await ObjectDirectory.open(path, storage);
    const folders = new AgentFolders(directory, () => {});
    await assertCopy(directory, folders);
    return { directory, agents: () => folders.agents(), close: () => lock.release() };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** An object that only one process can make. It stays where that is killed: then another one of the same machine takes it over. */
class ObjectLock {
  readonly #own: LockHolder = {
    id: randomBytes(8).toString('hex'),
    host: hostname(),
    pid: process.pid,
    since: new Date().toISOString(),
  };

  constructor(
    private readonly path: string,
    private readonly location: string,
    private readonly storage: ObjectStorage,
  ) {}

  async take(): Promise<void> {
    await this.#put();
    let holder = await this.#holder();
    if (holder !== undefined && isGone(holder)) {
      await this.storage.remove(this.path);
      await this.#put();
      holder = await this.#holder();
    }
    if (holder?.id === this.#own.id) return;
    const who = holder === undefined ? 'another process' : `process ${holder.pid} of ${holder.host}`;
    const since = holder === undefined ? '' : ` since ${holder.since}`;
    throw new LogstrataError(
      'locked',
      `${who} is updating the copy in ${this.location}${since}: wait until it has ended. If it was killed, remove ${this.path}`,
      { path: this.path },
    );
  }

  /** Not every service goes by the condition, and an answer may be lost: who holds the lock, the object says. */
  async #put(): Promise<void> {
    try {
      await this.storage.put(this.path, Buffer.from(JSON.stringify(this.#own)), true);
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'conflict') throw error;
    }
  }

  async #holder(): Promise<LockHolder | undefined> {
    const { bytes, etag } = await this.storage.stamp(this.path);
    if (bytes === 0 || bytes > lockBytesMax) return undefined;
    const text = Buffer.from(await this.storage.read({ path: this.path, bytes, etag }, 0, bytes)).toString();
    try {
      return JSON.parse(text) as LockHolder;
    } catch {
      return undefined;
    }
  }

  async release(): Promise<void> {
    await this.storage.remove(this.path);
  }
}

/** Whether a process of this machine has ended. */
function isGone({ host, pid }: LockHolder): boolean {
  if (host !== hostname() || !Number.isSafeInteger(pid) || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as { code?: unknown }).code === 'ESRCH';
  }
}
