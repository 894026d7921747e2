import { promises as fs } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { orDeadline } from '../../core/waiting.js';
import { isLogstrataError, LogstrataError } from '../../core/errors.js';
import { fileSystemError, hasSystemCode } from '../disk/directory.js';
import { LockFolder, type LockMember, takeLock } from './writer-lock.js';
import {
  connectTo,
  ChannelServer,
  WriterChannel,
  type ChannelClient,
  type ChannelOperations,
} from './writer-channel.js';
import type { RecordBatch } from '../../columns/column.js';
import type { Schema } from '../../core/schema.js';
import { encodeBatch } from '../hot/batch-codec.js';
import type { AttachingCommitter } from '../attached/attached-list.js';
import type { AppendResult, CommitExtras } from '../manifest/commit.js';
import type { AgentWriter } from './agent-writer.js';
import { encodeExtras, type PassedOn } from './writer-operations.js';

/** The process that holds the lock. */
export interface LockHolder {
  /** Role of the process: `serve`, `load`, … */
  readonly role: string;
  readonly pid: number;
}

/** The lock on a data folder. This process holds it until it is released or the process ends. */
export interface WriterLock {
  /** Answers the requests of other processes. Requests that came before wait for this. */
  serve(operations: ChannelOperations): void;
  /** Refuses new requests, and ends every connection once its requests are answered. */
  stopServing(): Promise<void>;
  /** Whether the lock is still held: see `HeldLock`. */
  isHeld(): Promise<boolean>;
  /** Stops serving and releases the lock. */
  release(): Promise<void>;
}

/** How an archive finds the other processes on its folder. A folder in memory has none. */
export interface Neighbours {
  /** The lock, or undefined when another process holds it. */
  lock(): Promise<WriterLock | undefined>;
  /** A link to the process that holds the lock, or undefined when there is none. */
  connect(): Promise<WriterLink | undefined>;
}

/** A connection to the process that holds the lock. */
export interface WriterLink extends ChannelClient {
  readonly holder: LockHolder;
  /** Whether the connection to that process is still open. */
  readonly alive: boolean;
  close(): Promise<void>;
}

/** Attempts to connect. A process that is stopping no longer accepts connections by the time they are used up. */
const helloAttemptsMax = 100;
const helloRetryMs = 50;
const helloTimeoutMs = 10_000;

/**
 * Takes the lock on the data folder at `location`, which one process of the machine can hold; undefined if another process holds it. The
 * lock ends with this process, however that ends. Throws as `takeLock`.
 */
export async function lockForWriting(
  location: string,
  role: string,
  platform: NodeJS.Platform = process.platform,
): Promise<WriterLock | undefined> {
  const channel = new ChannelServer(role);
  const lock = await takeLock(location, role, (socket) => channel.accept(socket), platform);
  if (lock === undefined) return undefined;
  return {
    serve: (operations) => channel.serve(operations),
    stopServing: () => channel.stop(),
    isHeld: () => lock.isHeld(),
    release: async () => {
      await channel.stop();
      await lock.release();
    },
  };
}

/**
 * Connects to the process that holds the lock on the data folder; undefined if there is none. Throws `unsupported` if it runs another
 * version, `locked` if it does not answer or if this user may not connect, `not_found` without a data folder, `io`.
 */
export async function connectToWriter(
  location: string,
  platform: NodeJS.Platform = process.platform,
): Promise<WriterLink | undefined> {
  const folder = await LockFolder.find(location, platform);
  if (folder === undefined) return undefined;
  try {
    for (let attempt = 0; attempt < helloAttemptsMax; attempt++) {
      const member = await folder.holder();
      const socket = member === undefined ? undefined : await connectToMember(folder, member);
      if (member === undefined || socket === undefined) return undefined;
      const link = socket === 'busy' ? undefined : await greet(socket, location, member);
      if (link !== undefined) return link;
      await delay(helloRetryMs);
    }
    throw new LogstrataError(
      'locked',
      `the process that holds the lock on ${location} accepts no connection`,
    );
  } finally {
    await folder.close();
  }
}

async function connectToMember(
  folder: LockFolder,
  { name, pid, role }: LockMember,
): Promise<Socket | 'busy' | undefined> {
  const { location } = folder;
  try {
    return await connectTo(folder.addressOf(name));
  } catch (error) {
    if (!hasSystemCode(error, 'EACCES', 'EPERM')) throw fileSystemError(error, 'connect to', location);
    const { uid } = await fs.stat(location);
    throw new LogstrataError(
      'locked',
      `process ${pid} (${role}) writes to ${location}, or was killed while it did, and only user ${uid} and root can connect to it: ` +
        'run the command as one of these users, or query the server over HTTP',
      { path: location, cause: error },
    );
  }
}

/** Asks whether the process is there and has this version; undefined if it has ended meanwhile. */
async function greet(
  socket: Socket,
  location: string,
  { pid, role }: LockMember,
): Promise<WriterLink | undefined> {
  let channel: WriterChannel | undefined;
  try {
    channel = await WriterChannel.over(socket);
    const answer = await orDeadline(channel.request('', null), helloTimeoutMs);
    if (answer === 'deadline')
      throw new LogstrataError(
        'locked',
        `process ${pid} (${role}), which writes to ${location}, does not answer`,
      );
    return Object.assign(channel, { holder: { role, pid } });
  } catch (error) {
    await channel?.close();
    if (isLogstrataError(error) && error.code === 'closed') return undefined;
    throw error;
  }
}

/** Commits through the writer in another process. A unit's files are built by this process, on the same disk. */
export class RemoteCommitter implements AttachingCommitter {
  constructor(
    private readonly channel: ChannelClient,
    private readonly agent: string,
    readonly schema: Schema,
    readonly schemaVersion: number,
  ) {}

  async begin(): Promise<string> {
    return (await this.ask('begin', {})) as string;
  }

  readonly reserve: AgentWriter['reserve'] = (...given) => this.call('reserve', given);
  readonly publish: AgentWriter['publish'] = (...given) => this.call('publish', given);
  readonly end: AgentWriter['end'] = (...given) => this.call('end', given);
  readonly attach: AgentWriter['attach'] = (...given) => this.call('attach', given);
  readonly changeFar: AgentWriter['changeFar'] = (...given) => this.call('changeFar', given);
  readonly seal: AgentWriter['seal'] = (...given) => this.call('seal', given);

  async append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult> {
    const payload = encodeBatch(this.schema, batch);
    const sent = encodeExtras({ ...extras, schemaVersion: this.schemaVersion });
    return (await this.ask('append', { extras: sent, placement }, payload)) as AppendResult;
  }

  private async call<N extends PassedOn>(
    name: N,
    given: Parameters<AgentWriter[N]>,
  ): Promise<Awaited<ReturnType<AgentWriter[N]>>> {
    return (await this.ask(name, { given })) as Awaited<ReturnType<AgentWriter[N]>>;
  }

  private ask(operation: string, args: object, payload?: Uint8Array): Promise<unknown> {
    return this.channel.request(operation, { agent: this.agent, ...args }, payload);
  }
}
