import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { isLogstrataError, LogstrataError } from '../terms/errors.js';
import { ObjectDirectory } from '../store/objects/object-directory.js';
import type { ObjectStorage } from '../store/objects/object-storage.js';
import { AgentFolders } from '../store/manifest/agent-folders.js';
import { assertCopy, type BackupFolder } from './backup-folder.js';

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
  readonly #path: string;
  readonly #location: string;
  readonly #storage: ObjectStorage;
  readonly #own: LockHolder = {
    id: randomBytes(8).toString('hex'),
    host: hostname(),
    pid: process.pid,
    since: new Date().toISOString(),
  };

  constructor(path: string, location: string, storage: ObjectStorage) {
    this.#path = path;
    this.#location = location;
    this.#storage = storage;
  }

  async take(): Promise<void> {
    await this.#put();
    let holder = await this.#holder();
    if (holder !== undefined && isGone(holder)) {
      await this.#storage.remove(this.#path);
      await this.#put();
      holder = await this.#holder();
    }
    if (holder?.id === this.#own.id) return;
    const who = holder === undefined ? 'another process' : `process ${holder.pid} of ${holder.host}`;
    const since = holder === undefined ? '' : ` since ${holder.since}`;
    throw new LogstrataError(
      'locked',
      `${who} is updating the copy in ${this.#location}${since}: wait until it has ended. If it was killed, remove ${this.#path}`,
      { path: this.#path },
    );
  }

  /** Not every service goes by the condition, and an answer may be lost: who holds the lock, the object says. */
  async #put(): Promise<void> {
    try {
      await this.#storage.put(this.#path, Buffer.from(JSON.stringify(this.#own)), true);
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'conflict') throw error;
    }
  }

  async #holder(): Promise<LockHolder | undefined> {
    const { bytes, etag } = await this.#storage.stamp(this.#path);
    if (bytes === 0 || bytes > lockBytesMax) return undefined;
    const text = Buffer.from(
      await this.#storage.read({ path: this.#path, bytes, etag }, 0, bytes),
    ).toString();
    try {
      return JSON.parse(text) as LockHolder;
    } catch {
      return undefined;
    }
  }

  async release(): Promise<void> {
    await this.#storage.remove(this.#path);
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
