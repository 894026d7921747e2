import { promises as fs, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogstrataError } from '../../terms/errors.js';
import { fileSystemError, hasSystemCode } from '../disk/file-system-error.js';
import { ownerFor } from '../disk/folder-owner.js';

/** In the data folder. The names are none of an agent. */
const folderName = '.lock';
const holderName = '.writer';

/** The address of a Unix socket has room for so many bytes, and a zero behind them. */
const addressBytesMax = { linux: 107, others: 103 } as const;

/** The longest name in the lock's folder, with the folder's own. */
const nameBytesMax = 40;

/** What the names of those that take part in the lock are made of: where each stands in their order, what it does, and its process. */
const memberPattern = /^([0-9a-f]{8})-([a-z]{1,12})-([0-9]{1,10})$/;

/** Owners, groups and others that may write. */
const groupWrites = 0o020;
const allWrite = 0o022;

/** A process that listens in the lock's folder, as its name there says. */
export interface LockMember {
  readonly name: string;
  /** What it does: `serve`, `load`, … */
  readonly role: string;
  readonly pid: number;
}

/** Whose socket a name stands for; undefined for any other name. */
export function lockMember(name: string): LockMember | undefined {
  const match = memberPattern.exec(name);
  return match === null ? undefined : { name, role: match[2]!, pid: Number(match[3]) };
}

/**
 * The folder in a data folder where the processes that write, or want to, listen at sockets. Only who may write to the data folder may make
 * them here, or connect. That is all that a connection is trusted for: Node does not tell whose process is at its other end.
 */
export class LockFolder {
  readonly location: string;
  /** Leads to the data folder, and is short enough for the address of a socket below it. */
  readonly #short: string;
  readonly close: () => Promise<void>;

  private constructor(location: string, short: string, close: () => Promise<void>) {
    this.location = location;
    this.#short = short;
    this.close = close;
  }

  /**
   * Opens it for who wants to take part. Throws `not_found` where there is no data folder, `locked` where others than who may write there
   * may make sockets, `io`, `disk_full`.
   */
  static async make(location: string, platform: NodeJS.Platform): Promise<LockFolder> {
    const path = join(location, folderName);
    try {
      const data = await fs.stat(location);
      const mode = 0o700 | ((data.mode & groupWrites) === 0 ? 0 : 0o070);
      if (await isMade(path, mode)) {
        // What the process does not give by default a group that writes here needs all the same.
        await fs.chmod(path, mode);
        await giveTo(path, location);
      }
      const lock = await fs.lstat(path);
      assertTrusted(location, path, data, lock);
      // As after `chmod -R a+rX` of the data folder: others could connect.
      if ((lock.mode & ~mode & 0o777) !== 0) await fs.chmod(path, mode);
    } catch (error) {
      throw fileSystemError(error, 'make', path);
    }
    return LockFolder.#open(location, platform);
  }

  /** Opens it for who only asks; undefined where nobody has taken part yet. Throws as `make`. */
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

  /** Names in the folder, in order. */
  async names(): Promise<string[]> {
    return (await fs.readdir(join(this.location, folderName))).sort();
  }

  /** Gives the socket at `name` to whom all else in the data folder belongs, and lets those connect who may write there. */
  async open(name: string): Promise<void> {
    const path = this.#pathOf(name);
    const { mode } = await fs.stat(this.location);
    // Whatever group it has: only that of the data folder gets as far as here.
    await fs.chmod(path, (mode & groupWrites) === 0 ? 0o600 : 0o666);
    await giveTo(path, this.location);
  }

  async rename(from: string, to: string): Promise<void> {
    await fs.rename(this.#pathOf(from), this.#pathOf(to));
  }

  async remove(name: string): Promise<void> {
    await fs.rm(this.#pathOf(name), { force: true });
  }

  /** Who holds the lock, or held it when it was killed. */
  async holder(): Promise<LockMember | undefined> {
    try {
      const target = await fs.readlink(join(this.location, holderName));
      return target.startsWith(`${folderName}/`)
        ? lockMember(target.slice(folderName.length + 1))
        : undefined;
    } catch (error) {
      // Something else of that name names no holder.
      if (hasSystemCode(error, 'ENOENT', 'EINVAL')) return undefined;
      throw error;
    }
  }

  /** Says, for all to read, that `member` holds the lock: a symbolic link to its socket, in one step. Only the holder may do that. */
  async nameHolder({ name }: LockMember): Promise<void> {
    const made = this.#pathOf(`${name}.link`);
    await fs.symlink(`${folderName}/${name}`, made);
    const owner = await ownerFor(this.location);
    if (owner !== undefined) await fs.lchown(made, owner.uid, owner.gid);
    await fs.rename(made, join(this.location, holderName));
  }

  /** Takes the holder's name away again. Only the holder may do that. */
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

/** Throws `locked` where the lock's folder is in the hands of somebody who may not write to the data folder. */
function assertTrusted(location: string, path: string, data: Stats, lock: Stats): void {
  const fault = faultOf(location, data, lock);
  if (fault !== undefined) throw new LogstrataError('locked', `${path} ${fault}`, { path });
}

function faultOf(location: string, data: Stats, lock: Stats): string | undefined {
  if (!lock.isDirectory()) return 'is no folder, so that nobody can hold the lock: remove it';
  const owners = [data.uid, 0, process.geteuid?.() ?? data.uid];
  if ((data.mode & allWrite) === 0 && !owners.includes(lock.uid))
    return `belongs to user ${lock.uid}, who may not write to ${location}: remove it`;
  if ((lock.mode & ~data.mode & allWrite) !== 0)
    return `can be written to by others than ${location}: run chmod 700 on it`;
  return undefined;
}
