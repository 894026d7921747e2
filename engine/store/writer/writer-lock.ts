import { promises as fs, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { LogstrataError } from '../../core/errors.js';
import { fileSystemError, hasSystemCode } from '../disk/directory.js';
import { ownerFor } from '../disk/real-directory.js';
import { isListenedAt, listenAt } from './writer-channel.js';

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
function lockMember(name: string): LockMember | undefined {
  const match = memberPattern.exec(name);
  return match === null ? undefined : { name, role: match[2]!, pid: Number(match[3]) };
}

/**
 * The folder in a data folder in which processes that write, or want to, listen on sockets. Only users who may write to the data folder can
 * create sockets in it, or connect to them. A connection is trusted for that reason alone: Node cannot tell which process is at the other
 * end.
 */
export class LockFolder {
  private constructor(
    readonly location: string /** A path of the data folder that is short enough for socket addresses below it. */,
    private readonly short: string,
    readonly close: () => Promise<void>,
  ) {}

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
    return join(this.short, folderName, name);
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

/** The lock, held by this process. */
export interface HeldLock {
  /** Whether the lock's files still name this process as the holder. If somebody removes them, another process can take the lock as well. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

/** Time within which processes that want the lock at the same moment agree. Only a process that is suspended meanwhile takes longer. */
const agreementMsMax = 10_000;

/** Interval (ms) at which a waiting candidate checks again, and the longest random delay (ms) before one that gave way tries again. */
const lookMs = 5;
const awayMsMax = 20;

/**
 * Takes the lock on the data folder at `location`; undefined if another process holds it. The lock ends with this process, however that
 * ends: a socket that accepts no connection then remains. `accept` gets the connections to this process's socket.
 *
 * A process that wants the lock first listens on a socket in the lock's folder, under a new name, and only then checks which other sockets
 * are listened on. Of two candidates, the later one therefore sees the earlier one, and gets the lock only if that one leaves. So two
 * processes never hold the lock, whatever they do at the same moment. The order of the names decides who gives way.
 *
 * Throws `not_found`, `locked` if another process neither takes the lock nor leaves, `io`, `disk_full`.
 */
export async function takeLock(
  location: string,
  role: string,
  accept: (socket: Socket) => void,
  platform: NodeJS.Platform = process.platform,
): Promise<HeldLock | undefined> {
  const folder = await LockFolder.make(location, platform);
  const endMs = performance.now() + agreementMsMax;
  try {
    for (;;) {
      const holder = await folder.holder();
      if (holder !== undefined && (await isAlive(folder, holder))) break;
      const candidate = await Candidate.listen(folder, role, accept);
      const outcome = candidate === undefined ? 'gives way' : await candidate.settle(endMs);
      if (outcome === 'holds') return candidate!;
      if (outcome === 'is held') break;
      if (performance.now() > endMs) throw await unsettled(location, folder);
      await delay(Math.random() * awayMsMax);
    }
  } catch (error) {
    await folder.close();
    throw error instanceof LogstrataError ? error : fileSystemError(error, 'take the lock on', location);
  }
  await folder.close();
  return undefined;
}

type Outcome = 'holds' | 'is held' | 'gives way';

/** A process that listens in the lock's folder, and holds the lock or wants to. */
class Candidate implements HeldLock {
  private constructor(
    private readonly folder: LockFolder,
    private readonly self: LockMember,
    private readonly server: Server,
  ) {}

  /** Starts to listen. Returns undefined if a new holder removed the socket before it was renamed. */
  static async listen(
    folder: LockFolder,
    role: string,
    accept: (socket: Socket) => void,
  ): Promise<Candidate | undefined> {
    const self = lockMember(`${randomBytes(4).toString('hex')}-${role}-${process.pid}`)!;
    const unnamed = `${self.name}.new`;
    const server = await listenIn(folder, unnamed, accept);
    try {
      await folder.open(unnamed);
      // Renamed only once it listens: otherwise others would take it for the socket of a killed process.
      await folder.rename(unnamed, self.name);
      return new Candidate(folder, self, server);
    } catch (error) {
      await folder.remove(unnamed).catch(() => {});
      server.close();
      if (hasSystemCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** Waits until it is decided which candidate gets the lock. Leaves the folder unless this one does. */
  async settle(endMs: number): Promise<Outcome> {
    try {
      const outcome = await this.#outcome(endMs);
      if (outcome !== 'holds') await this.#leave();
      return outcome;
    } catch (error) {
      await this.#leave();
      throw error;
    }
  }

  async #outcome(endMs: number): Promise<Outcome> {
    for (;;) {
      const rivals = await this.#rivals();
      if (rivals.length === 0) {
        await this.folder.nameHolder(this.self);
        await this.#clear();
        return 'holds';
      }
      const holder = await this.folder.holder();
      if (rivals.some(({ name }) => name === holder?.name)) return 'is held';
      if (rivals.some(({ name }) => name < this.self.name) || performance.now() > endMs) return 'gives way';
      await delay(lookMs);
    }
  }

  /** The other candidates that are alive. Sockets of dead processes are removed; their names are never used again. */
  async #rivals(): Promise<LockMember[]> {
    const rivals: LockMember[] = [];
    for (const name of await this.folder.names()) {
      const member = lockMember(name);
      if (member === undefined || name === this.self.name) continue;
      if (await isAlive(this.folder, member)) rivals.push(member);
      else await this.folder.remove(name).catch(() => {});
    }
    return rivals;
  }

  /** Removes sockets that were not renamed yet. A process that was about to rename one starts again. */
  async #clear(): Promise<void> {
    for (const name of await this.folder.names())
      if (lockMember(name) === undefined) await this.folder.remove(name).catch(() => {});
  }

  async isHeld(): Promise<boolean> {
    const names = await this.folder.names().catch((): string[] => []);
    return names.includes(this.self.name) && (await this.folder.holder())?.name === this.self.name;
  }

  async release(): Promise<void> {
    // Remove the link while this process still listens: until it stops, no other process can become the holder.
    await this.folder.forgetHolder().catch(() => {});
    await this.#leave();
    await this.folder.close();
  }

  async #leave(): Promise<void> {
    await this.folder.remove(this.self.name).catch(() => {});
    // No new connection is possible. Existing ones need not be waited for.
    this.server.close();
  }
}

/** Listens on a socket in the folder. Throws `io` if the file system does not support sockets. */
async function listenIn(folder: LockFolder, name: string, accept: (socket: Socket) => void): Promise<Server> {
  try {
    return await listenAt(folder.addressOf(name), accept);
  } catch (error) {
    if (!hasSystemCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL')) throw error;
    throw new LogstrataError(
      'io',
      `the file system of ${folder.location} does not support Unix sockets, which the lock of a data folder needs: put the data on another file system`,
      { path: folder.location, cause: error },
    );
  }
}

function isAlive(folder: LockFolder, { name }: LockMember): Promise<boolean> {
  return isListenedAt(folder.addressOf(name));
}

async function unsettled(location: string, folder: LockFolder): Promise<LogstrataError> {
  const members = (await folder.names()).flatMap((name) => lockMember(name) ?? []);
  const who = members.map(({ role, pid }) => `process ${pid} (${role})`).join(', ') || 'another process';
  return new LogstrataError(
    'locked',
    `${who} began to take the lock on ${location}, but is stuck: let it continue, or end it`,
    { path: location },
  );
}
