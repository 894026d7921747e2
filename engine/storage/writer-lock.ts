import { promises as fs } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { channelConnectionsMax } from '../limits.js';
import { fileSystemError, hasSystemCode } from './file-system-error.js';

/** Where the one writer of a folder listens: listening there is the lock. */
export interface LockAddress {
  readonly address: string;
  /** The address is a file, which a process that was killed leaves behind. */
  readonly isFile: boolean;
}

/**
 * Bytes of an abstract name, with the zero that it begins with: all that a socket's address has room for. Some versions of Node fill up
 * a shorter name with zeros and others do not, and then the same name is two addresses: processes of both could hold the lock at once.
 */
const abstractNameBytes = 108;

/**
 * The address for the folder at `location`, from its device and inode, so that every path to it gives the same. On Linux an
 * abstract socket, on Windows a pipe: both vanish with the process that holds them. Elsewhere a socket file.
 */
export async function lockAddress(
  location: string,
  platform: NodeJS.Platform = process.platform,
): Promise<LockAddress> {
  let name: string;
  try {
    const { dev, ino } = await fs.stat(location, { bigint: true });
    name = `logstrata-${dev}-${ino}`;
  } catch (error) {
    throw fileSystemError(error, 'lock', location);
  }
  if (platform === 'linux') return { address: `\0${name}`.padEnd(abstractNameBytes, '-'), isFile: false };
  if (platform === 'win32') return { address: `\\\\.\\pipe\\${name}`, isFile: false };
  return { address: join(tmpdir(), `${name}.sock`), isFile: true };
}

/** Listens at the address, with `accept` for those that connect; undefined when another process does. */
export async function listenAlone(
  { address, isFile }: LockAddress,
  accept: (socket: Socket) => void,
): Promise<Server | undefined> {
  const server = await listen(address, accept);
  if (server !== undefined || !isFile) return server;
  const holder = await connectTo({ address });
  if (holder !== undefined) {
    holder.destroy();
    return undefined;
  }
  // Nobody listens: the file is what a killed process has left. Should two processes find that at the same moment, both may
  // come to listen; the exclusive link of the manifest then lets only one of them publish.
  await fs.rm(address, { force: true });
  return listen(address, accept);
}

/** Listens at the address; undefined when another process does. Throws `io`. */
export function listen(address: string, accept: (socket: Socket) => void): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.maxConnections = channelConnectionsMax;
    server.once('error', (error) => {
      if (hasSystemCode(error, 'EADDRINUSE')) resolve(undefined);
      else reject(asError(fileSystemError(error, 'listen at', printable(address))));
    });
    server.listen({ path: address }, () => {
      // Holding the lock is no reason for the process to stay.
      server.unref();
      resolve(server);
    });
  });
}

/** A connection to the process that listens at the address; undefined when there is none. */
export function connectTo({ address }: Pick<LockAddress, 'address'>): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: address });
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (error) => {
      if (hasSystemCode(error, 'ECONNREFUSED', 'ENOENT', 'ECONNRESET')) resolve(undefined);
      else reject(asError(fileSystemError(error, 'connect to', printable(address))));
    });
  });
}

function printable(address: string): string {
  return address.replace('\0', '@');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
