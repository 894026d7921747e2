import { randomBytes } from 'node:crypto';
import { promises as fs } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hasSystemCode } from './file-system-error.js';
import { connectTo, listen } from './writer-lock.js';

/** The name is none of an agent. */
const socketName = '.writer.sock';

/** The address of a Unix socket has room for so many bytes, and a zero behind them. */
const pathBytesMax = 107;

/** A process that has taken what a killed one left waits so long for another that did so at the same moment. */
const settleMs = 100;

/** A socket in a data folder that this process listens at. */
export interface FolderSocket {
  close(): Promise<void>;
}

/**
 * Listens at a socket in the data folder at `location`, with `accept` for those that connect. An abstract socket is only known within
 * one network namespace, and containers that share a folder have one each; a socket that lies in the folder is known to all of them.
 *
 * @returns `held` when another process listens there; null where the file system takes no socket
 */
export async function listenInFolder(
  location: string,
  accept: (socket: Socket) => void,
): Promise<FolderSocket | 'held' | null> {
  const folder = await openFolder(location);
  if (folder === null) return null;
  // Made under another name, so that what is there is replaced in one step, and is never without a listener.
  const own = join(folder.path, `.writer-${randomBytes(4).toString('hex')}.sock`);
  const server = await listen(own, accept).catch(() => undefined);
  if (server === undefined) {
    await folder.close();
    return null;
  }
  const path = join(folder.path, socketName);
  const close = async (): Promise<void> => {
    if (await isSameFile(path, inode)) await fs.rm(path, { force: true }).catch(() => {});
    await fs.rm(own, { force: true }).catch(() => {});
    await closeServer(server);
    await folder.close();
  };
  const inode = await inodeOf(own);
  const taken = await takeName(own, path, inode).catch(() => null);
  if (taken === true) return { close };
  await close();
  return taken === false ? 'held' : null;
}

/** A connection to the process that listens in the folder; undefined when there is none. */
export async function connectInFolder(location: string): Promise<Socket | undefined> {
  const folder = await openFolder(location);
  if (folder === null) return undefined;
  try {
    return await connectTo({ address: join(folder.path, socketName) });
  } catch {
    // A file of that name that can't be connected to is no holder of the lock that this process could speak to.
    return undefined;
  } finally {
    await folder.close();
  }
}

/** Gives the socket at `own` the name by which others know it; false when a process that lives has it. */
async function takeName(own: string, path: string, inode: bigint | undefined): Promise<boolean> {
  // Whoever can read the secret of the folder may connect, whatever user runs it.
  await fs.chmod(own, 0o666);
  try {
    await fs.link(own, path);
    await fs.rm(own);
    return true;
  } catch (error) {
    if (!hasSystemCode(error, 'EEXIST')) throw error;
  }
  const holder = await connectTo({ address: path });
  if (holder !== undefined) {
    holder.destroy();
    return false;
  }
  // What a killed process has left. Of several that replace it at the same moment the last one keeps it.
  await fs.rename(own, path);
  await delay(settleMs);
  return isSameFile(path, inode);
}

async function inodeOf(path: string): Promise<bigint | undefined> {
  return (await fs.stat(path, { bigint: true }).catch(() => undefined))?.ino;
}

async function isSameFile(path: string, inode: bigint | undefined): Promise<boolean> {
  return inode !== undefined && (await inodeOf(path)) === inode;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

interface OpenFolder {
  /** Short enough for a socket's address. */
  readonly path: string;
  close(): Promise<void>;
}

async function openFolder(location: string): Promise<OpenFolder | null> {
  const name = join(location, `.writer-${'0'.repeat(8)}.sock`);
  if (Buffer.byteLength(name) <= pathBytesMax) return { path: location, close: () => Promise.resolve() };
  try {
    const handle = await fs.open(location, 'r');
    return { path: `/proc/self/fd/${handle.fd}`, close: () => handle.close() };
  } catch {
    return null;
  }
}
