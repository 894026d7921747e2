import { promises as fs, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogstrataError } from '../../terms/errors.js';
import { fileSystemError, hasSystemCode } from '../disk/file-system-error.js';
import { ownerFor } from '../disk/folder-owner.js';

/** Names in the data folder that no agent can have. */
const folderName = '.lock';
const holderName = '.writer';

/** Maximum length in bytes of the address of a Unix socket, without its final zero. */
const addressBytesMax = { linux: 107, others: 103 } as const;

/** Length of the longest path of a socket relative to the data folder. */
const nameBytesMax = 40;

/** The name of a member's socket: a random number that orders the members, the role, and the process id. */
const memberPattern = /^([0-9a-f]{8})-([a-z]{1,12})-([0-9]{1,10})$/;

/** Permission bits that let the group, or the group and others, write. */
const groupWrites = 0o020;
const allWrite = 0o022;

/** A process that listens in the lock's folder, as named by its socket. */
export interface LockMember {
  readonly name: string;
  /** Role of the process: `serve`, `load`, … */
  readonly role: string;
  readonly pid: number;
}

/** The member whose socket has this name; undefined for other names. */
export function lockMember(name: string): LockMember | undefined {
  const match = memberPattern.exec(name);
  return match === null ? undefined : { name, role: match[2]!, pid: Number(match[3]) };
}

/**
 * The folder in a data folder in which processes that write, or want to, listen on sockets. Only users who may write to the data folder can
 * create sockets in it, or connect to them. A connection is trusted for that reason alone: Node cannot tell which process is at the other
 * end.
 */
export class LockFolder {
  readonly location: string;
  /** A path of the data folder that is short enough for socket addresses below it. */
  readonly #short: string;
  readonly close: () => Promise<void>;

  private constructor(location: string, short: string, close: () => Promise<void>) {
    this.location = location;
    this.#short = short;
    this.close = close;
  }

  /**
   * Opens the folder for a member, and creates it if needed. Throws `not_found` if there is no data folder, `locked` if users who may not
   * write to the data folder could create sockets in it, `io`, `disk_full`.
   */
  static async make(location: string, platform: NodeJS.Platform): Promise<LockFolder> {
    const path = join(location, folderName);
    try {
      const data = await fs.stat(location);
      const mode = 0o700 | ((data.mode & groupWrites) === 0 ? 0 : 0o070);
      if (await isMade(path, mode)) {
        // The umask may have removed permissions that the group needs.
        await fs.chmod(path, mode);
        await giveTo(path, location);
      }
      const lock = await fs.lstat(path);
      assertTrusted(location, path, data, lock);
      // `chmod -R a+rX` on the data folder, for example, would let others connect.
      if ((lock.mode & ~mode & 0o777) !== 0) await fs.chmod(path, mode);
    } catch (error) {
      throw fileSystemError(error, 'make', path);
    }
    return LockFolder.#open(location, platform);
  }

  /** Opens the folder for a process that only connects; undefined if there is no lock folder yet. Throws as `make`. */
  static async find(location: string, platform: NodeJS.Platform): Promise<LockFolder | undefined> {
    const path = join(location, folderName);
    try {
      const data = await fs.stat(location);
      assertTrusted(location, path, data, await fs.lstat(path));
    } catch (error) {
      if (hasSystemCode(error, 'ENOENT') && (await isThere(location))) return undefined;
      throw fileSystemError(error, 'open', path);
    }
    return LockFolder.#open(location, platform);
  }

  static async #open(location: string, platform: NodeJS.Platform): Promise<LockFolder> {
    const bytes = Buffer.byteLength(location) + nameBytesMax;
    const isLinux = platform === 'linux';
    if (bytes <= (isLinux ? addressBytesMax.linux : addressBytesMax.others))
      return new LockFolder(location, location, () => Promise.resolve());
    try {
      if (isLinux) {
        const handle = await fs.open(location, 'r');
        return new LockFolder(location, `/proc/self/fd/${handle.fd}`, () => handle.close());
      }
      const link = await fs.mkdtemp(join(tmpdir(), 'logstrata-'));
      await fs.symlink(location, join(link, 'd'));
      return new LockFolder(location, join(link, 'd'), () => fs.rm(link, { recursive: true, force: true }));
    } catch (error) {
      throw fileSystemError(error, 'shorten the path of', location);
    }
  }

  /** The address of a member's socket. */
  addressOf(name: string): string {
    return join(this.#short, folderName, name);
  }

  /** Names in the folder, sorted. */
  async names(): Promise<string[]> {
    return (await fs.readdir(join(this.location, folderName))).sort();
  }

  /** Sets the owner and permissions of the socket at `name`, so that users who may write to the data folder can connect. */
  async open(name: string): Promise<void> {
    const path = this.#pathOf(name);
    const { mode } = await fs.stat(this.location);
    // The socket may have any group, so others need permission too. The lock folder itself admits only the data folder's owner and group.
    await fs.chmod(path, (mode & groupWrites) === 0 ? 0o600 : 0o666);
    await giveTo(path, this.location);
  }

  async rename(from: string, to: string): Promise<void> {
    await fs.rename(this.#pathOf(from), this.#pathOf(to));
  }

  /** Removes a socket. No error if it does not exist. */
  async remove(name: string): Promise<void> {
    await fs.rm(this.#pathOf(name), { force: true });
  }

  /** The member that holds the lock, or held it when it was killed. */
  async holder(): Promise<LockMember | undefined> {
    try {
      const target = await fs.readlink(join(this.location, holderName));
      return target.startsWith(`${folderName}/`)
        ? lockMember(target.slice(folderName.length + 1))
        : undefined;
    } catch (error) {
      // A file of that name that is not a symbolic link names no holder.
      if (hasSystemCode(error, 'ENOENT', 'EINVAL')) return undefined;
      throw error;
    }
  }

  /** Publishes that `member` holds the lock, by atomically replacing a symbolic link to its socket. Only the holder may call this. */
  async nameHolder({ name }: LockMember): Promise<void> {
    const made = this.#pathOf(`${name}.link`);
    await fs.symlink(`${folderName}/${name}`, made);
    const owner = await ownerFor(this.location);
    if (owner !== undefined) await fs.lchown(made, owner.uid, owner.gid);
    await fs.rename(made, join(this.location, holderName));
  }

  /** Removes the link. Only the holder may call this. */
  async forgetHolder(): Promise<void> {
    await fs.rm(join(this.location, holderName), { force: true });
  }

  #pathOf(name: string): string {
    return join(this.location, folderName, name);
  }
}

async function isMade(path: string, mode: number): Promise<boolean> {
  try {
    await fs.mkdir(path, mode);
    return true;
  } catch (error) {
    if (hasSystemCode(error, 'EEXIST')) return false;
    throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  return fs.stat(path).then(
    () => true,
    () => false,
  );
}

async function giveTo(path: string, location: string): Promise<void> {
  const owner = await ownerFor(location);
  if (owner !== undefined) await fs.chown(path, owner.uid, owner.gid);
}

/** Throws `locked` if a user who may not write to the data folder owns the lock's folder or may write to it. */
function assertTrusted(location: string, path: string, data: Stats, lock: Stats): void {
  const fault = faultOf(location, data, lock);
  if (fault !== undefined) throw new LogstrataError('locked', `${path} ${fault}`, { path });
}

function faultOf(location: string, data: Stats, lock: Stats): string | undefined {
  if (!lock.isDirectory()) return 'is not a folder, so the lock can not be taken: remove it';
  const owners = [data.uid, 0, process.geteuid?.() ?? data.uid];
  if ((data.mode & allWrite) === 0 && !owners.includes(lock.uid))
    return `belongs to user ${lock.uid}, who has no permission to write to ${location}: remove it`;
  if ((lock.mode & ~data.mode & allWrite) !== 0)
    return `can be written by users who can not write to ${location}: run chmod 700 on it`;
  return undefined;
}
