import { connect, createServer, type Server, type Socket } from 'node:net';
import { channelConnectionsMax } from '../../terms/limits.js';
import { hasSystemCode } from '../disk/file-system-error.js';

/** Makes a socket at `path`, where there must be nothing, and listens. Fails as the system does. */
export function listenAt(path: string, accept: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.maxConnections = channelConnectionsMax;
    server.once('error', reject);
    server.listen({ path }, () => {
      // Listening is no reason for the process to stay.
      server.unref();
      resolve(server);
    });
  });
}

/** A connection to who listens at `path`; `busy` where somebody does who takes none now, undefined where nobody does. Fails as the system does. */
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

/** Whether somebody listens at `path`. Fails as the system does where that can't be told. */
export async function isListenedAt(path: string): Promise<boolean> {
  const socket = await connectTo(path);
  if (socket !== undefined && socket !== 'busy') socket.destroy();
  return socket !== undefined;
}
