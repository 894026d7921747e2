import { randomBytes } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { LogstrataError } from '../../terms/errors.js';
import { fileSystemError, hasSystemCode } from '../disk/file-system-error.js';
import { LockFolder, lockMember, type LockMember } from './lock-folder.js';
import { isListenedAt, listenAt } from './unix-socket.js';

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
