import { connect, createServer, type Server, type Socket } from 'node:net';
import { connectionsMax } from '../../terms/limits.js';
import { hasSystemCode } from '../disk/file-system-error.js';

/** Creates a socket at `path`, which must not exist, and listens. Rejects with the system's error. */
export function listenAt(path: string, accept: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.maxConnections = connectionsMax;
    server.once('error', reject);
    server.listen({ path }, () => {
      // The listening socket must not keep the process alive.
      server.unref();
      resolve(server);
    });
  });
}

/**
 * Connects to the process that listens at `path`. Resolves to `busy` if it accepts no connection now, and to undefined if no process
 * listens. Rejects with the system's error.
 */
export function connectTo(path: string): Promise<Socket | 'busy' | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (error) => {
      if (hasSystemCode(error, 'ECONNREFUSED', 'ENOENT')) resolve(undefined);
      else if (hasSystemCode(error, 'EAGAIN', 'ECONNRESET')) resolve('busy');
      else reject(error);
    });
  });
}

/** Whether a process listens at `path`. Rejects with the system's error if that cannot be determined. */
export async function isListenedAt(path: string): Promise<boolean> {
  const socket = await connectTo(path);
  if (socket !== undefined && socket !== 'busy') socket.destroy();
  return socket !== undefined;
}
