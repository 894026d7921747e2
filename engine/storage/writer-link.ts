import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { promises as fs } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { orDeadline } from '../deadline.js';
import { isLogstrataError, LogstrataError } from '../errors.js';
import { fileSystemError } from './file-system-error.js';
import { connectInFolder, listenInFolder } from './folder-socket.js';
import { ownerFor } from './folder-owner.js';
import {
  ChannelServer,
  WriterChannel,
  type ChannelClient,
  type ChannelOperations,
} from './writer-channel.js';
import { connectTo, listenAlone, lockAddress } from './writer-lock.js';

/** The process that holds the lock. */
export interface LockHolder {
  /** What it does: `serve`, `load`, … */
  readonly role: string;
  readonly pid: number;
}

/** The lock on a data folder, held by this process until it is released or the process ends. */
export interface WriterLock {
  /** Answers the requests of other processes. Those that came before wait for this. */
  serve(operations: ChannelOperations): void;
  /** Refuses new requests, and ends every connection once its requests are answered. */
  stopServing(): Promise<void>;
  release(): Promise<void>;
}

/** A connection to the process that holds the lock. */
export interface WriterLink extends ChannelClient {
  readonly holder: LockHolder;
  /** Whether that process is still there, as far as this one has noticed. */
  readonly alive: boolean;
  close(): Promise<void>;
}

/** What the two sides say to each other; another version is not understood. */
const protocolVersion = 2;

/**
 * Anybody on the machine can connect to an abstract socket, so both sides prove that they can read this file of the data
 * folder. Its name is none of an agent.
 */
const secretFileName = '.writer';

/** A new holder listens before its secret is written, and a stopping one listens no longer than this. */
const helloAttemptsMax = 100;
const helloRetryMs = 50;
const helloTimeoutMs = 10_000;

/** How often a secret is written again for which the disk had no room. */
const secretRetryMs = 1000;

interface Secret extends LockHolder {
  readonly secret: string;
}

function proof(secret: string, side: 'writer' | 'other', nonce: string): string {
  return createHmac('sha256', secret).update(`${side} ${nonce}`).digest('hex');
}

function isSame(a: string, b: unknown): boolean {
  if (typeof b !== 'string' || a.length !== b.length) return false;
  return timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/**
 * Takes the lock on the data folder at `location`, for one writer among all processes of the machine; undefined when
 * another process holds it. It vanishes with this process, however that ends. Throws `io`, `not_found`.
 */
export async function lockForWriting(
  location: string,
  role: string,
  platform: NodeJS.Platform = process.platform,
): Promise<WriterLock | undefined> {
  const secret: Secret = { role, pid: process.pid, secret: randomBytes(16).toString('hex') };
  const channel = new ChannelServer((args) => answerHello(secret, args));
  const address = await lockAddress(location, platform);
  const server = await listenAlone(address, (socket) => channel.accept(socket));
  if (server === undefined) return undefined;
  const inFolder =
    platform === 'linux' ? await listenInFolder(location, (socket) => channel.accept(socket)) : null;
  const release = async (): Promise<void> => {
    if (inFolder !== 'held') await inFolder?.close();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  };
  if (inFolder === 'held') {
    await channel.stop();
    await release();
    return undefined;
  }
  const released = new AbortController();
  let later: Promise<void> | undefined;
  try {
    await writeSecret(location, secret);
  } catch (error) {
    // On a full disk this process still answers what is stored; the others are told that they can't connect.
    if (isLogstrataError(error) && error.code === 'disk_full') {
      later = writeSecretLater(location, secret, released.signal);
    } else {
      await channel.stop();
      await release();
      throw error;
    }
  }
  return {
    serve: (operations) => channel.serve(operations),
    stopServing: () => channel.stop(),
    release: async () => {
      released.abort();
      // What is being written must not come behind the secret of the next holder.
      await later;
      await channel.stop();
      await release();
    },
  };
}

async function writeSecret(location: string, secret: Secret): Promise<void> {
  const path = join(location, secretFileName);
  try {
    await fs.writeFile(`${path}.tmp`, JSON.stringify(secret), { mode: 0o640 });
    const owner = await ownerFor(location);
    if (owner !== undefined) await fs.chown(`${path}.tmp`, owner.uid, owner.gid);
    await fs.rename(`${path}.tmp`, path);
  } catch (error) {
    throw fileSystemError(error, 'write', path);
  }
}

/** Writes the secret once there is room for it, unless the lock is released before. */
async function writeSecretLater(location: string, secret: Secret, released: AbortSignal): Promise<void> {
  while (!released.aborted) {
    try {
      await delay(secretRetryMs, undefined, { signal: released, ref: false });
      await writeSecret(location, secret);
      return;
    } catch {
      // Not yet, or never: the next round tells.
    }
  }
}

async function readSecret(location: string): Promise<Secret | undefined> {
  const path = join(location, secretFileName);
  try {
    const value = JSON.parse(await fs.readFile(path, 'utf8')) as Partial<Record<keyof Secret, unknown>>;
    const { role, pid, secret } = value;
    if (typeof role !== 'string' || typeof pid !== 'number' || typeof secret !== 'string') return undefined;
    return { role, pid, secret };
  } catch {
    // Missing or half written: its writer is only beginning, which the caller waits for.
    return undefined;
  }
}

function answerHello({ role, pid, secret }: Secret, args: unknown): Promise<unknown> {
  const hello = (args ?? {}) as { version?: unknown; nonce?: unknown; proof?: unknown };
  if (hello.version !== protocolVersion) {
    throw new LogstrataError('unsupported', `process ${pid} (${role}) runs another version of logstrata`);
  }
  const nonce = String(hello.nonce);
  if (!isSame(proof(secret, 'other', nonce), hello.proof)) {
    throw new LogstrataError('invalid', 'the secret of the data folder is another one');
  }
  return Promise.resolve({ role, pid, proof: proof(secret, 'writer', nonce) });
}

/**
 * Connects to the process that holds the lock on the data folder; undefined when there is none. Throws `unsupported` when
 * that runs another version, `locked` when it does not answer or can't be trusted, `io`.
 */
export async function connectToWriter(
  location: string,
  platform: NodeJS.Platform = process.platform,
): Promise<WriterLink | undefined> {
  const address = await lockAddress(location, platform);
  for (let attempt = 0; attempt < helloAttemptsMax; attempt++) {
    const socket =
      (await connectTo(address)) ?? (platform === 'linux' ? await connectInFolder(location) : undefined);
    if (socket === undefined) return undefined;
    const channel = new WriterChannel(socket);
    const secret = await readSecret(location);
    const holder = secret === undefined ? undefined : await sayHello(channel, secret);
    if (holder !== undefined) {
      return {
        holder,
        get alive() {
          return channel.alive;
        },
        request: (operation, args, payload) => channel.request(operation, args, payload),
        close: () => channel.close(),
      };
    }
    await channel.close();
    await delay(helloRetryMs);
  }
  throw locked(
    location,
    'does not know the secret of the folder: this user may not read it, or there was no room on the disk to write it',
  );
}

function locked(location: string, reason: string): LogstrataError {
  const path = join(location, secretFileName);
  return new LogstrataError('locked', `another process holds the lock on ${location}, but it ${reason}`, {
    path,
  });
}

/** Who holds the lock; undefined when the secret is not (or no longer) its own, as between two holders. */
async function sayHello(channel: WriterChannel, { secret }: Secret): Promise<LockHolder | undefined> {
  const nonce = randomBytes(16).toString('hex');
  const args = { version: protocolVersion, nonce, proof: proof(secret, 'other', nonce) };
  try {
    const result = await orDeadline(channel.request('hello', args), helloTimeoutMs);
    if (result === 'deadline')
      throw new LogstrataError('locked', 'the process that holds the lock does not answer');
    const answer = result as Partial<Record<'role' | 'pid' | 'proof', unknown>>;
    if (!isSame(proof(secret, 'writer', nonce), answer.proof)) return undefined;
    return { role: String(answer.role), pid: Number(answer.pid) };
  } catch (error) {
    if (isLogstrataError(error) && (error.code === 'invalid' || error.code === 'closed')) return undefined;
    await channel.close();
    throw error;
  }
}
