import { randomBytes } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { LogstrataError } from '../../terms/errors.js';
import { fileSystemError, hasSystemCode } from '../disk/file-system-error.js';
import { LockFolder, lockMember, type LockMember } from './lock-folder.js';
import { isListenedAt, listenAt } from './unix-socket.js';

/** The lock, held by this process. */
export interface HeldLock {
  /** Whether it still says that this process holds it. Who removes the lock's files has another process take it as well. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

/** How long the processes that want the lock at the same moment may take to agree. Only one that was stopped in the middle takes longer. */
const agreementMsMax = 10_000;

/** How often one that waits for another looks again, and the longest time that one which has given way stays away. */
const lookMs = 5;
const awayMsMax = 20;

/**
 * Takes the lock on the data folder at `location`; undefined when another process holds it. It vanishes with this process, however that
 * ends: what is left of it then is a socket that takes no connection. `accept` gets those that connect.
 *
 * Who wants the lock listens at a socket in the lock's folder first, of a name that was never there, and only then looks for others
 * that listen. Of two that want it, the later one to listen therefore sees the other, and has it only if that one goes. So no two have it,
 * whatever they do at the same moment; the order of the names says who gives way.
 *
 * Throws `not_found`, `locked` where another process neither takes the lock nor goes, `io`, `disk_full`.
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

/** One that listens in the lock's folder, and holds the lock or wants to. */
class Candidate implements HeldLock {
  private constructor(
    private readonly folder: LockFolder,
    private readonly self: LockMember,
    private readonly server: Server,
  ) {}

  /** Undefined when a new holder has cleared it away before it had its name. */
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
      // Others must not come upon it before it listens: they would take it for what a killed process has left.
      await folder.rename(unnamed, self.name);
      return new Candidate(folder, self, server);
    } catch (error) {
      await folder.remove(unnamed).catch(() => {});
      server.close();
      if (hasSystemCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** Waits until it is clear which candidate has the lock. The others are no candidates any more. */
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

  /** The others that live. What killed ones have left is removed: a name that does not answer never will again. */
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

  /** Removes what was never given its name: who was about to give it to one of these begins anew. */
  async #clear(): Promise<void> {
    for (const name of await this.folder.names())
      if (lockMember(name) === undefined) await this.folder.remove(name).catch(() => {});
  }

  async isHeld(): Promise<boolean> {
    const names = await this.folder.names().catch((): string[] => []);
    return names.includes(this.self.name) && (await this.folder.holder())?.name === this.self.name;
  }

  async release(): Promise<void> {
    // While it still listens nobody else names himself.
    await this.folder.forgetHolder().catch(() => {});
    await this.#leave();
    await this.folder.close();
  }

  async #leave(): Promise<void> {
    await this.folder.remove(this.self.name).catch(() => {});
    // Nobody can connect any more; what those do who have is no reason to wait.
    this.server.close();
  }
}

/** Listens at a name in the folder. Throws `io` where the file system takes no sockets. */
async function listenIn(folder: LockFolder, name: string, accept: (socket: Socket) => void): Promise<Server> {
  try {
    return await listenAt(folder.addressOf(name), accept);
  } catch (error) {
    if (!hasSystemCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL')) throw error;
    throw new LogstrataError(
      'io',
      `the file system of ${folder.location} takes no Unix sockets, which the lock of a data folder is made of: put the data on another one`,
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
    `${who} began to take the lock on ${location}, but does not get on with it: let it go on, or end it`,
    { path: location },
  );
}
