import type { Server, Socket } from 'node:net';
import { connectionsMax } from './http-limits.js';

/** One client of a listening server. */
interface Connection {
  /** Lets the answers that have begun go on to their ends, and takes no further request. */
  stop(): void;
  /** Cuts the client off. */
  destroy(): void;
}

/** The open connections of a server that listens, which can't end while there are any. */
export class Connections<C extends Connection> implements Iterable<C> {
  readonly #open = new Set<C>();
  readonly #server: Server;

  constructor(server: Server, connect: (socket: Socket) => C) {
    this.#server = server;
    server.maxConnections = connectionsMax;
    server.on('connection', (socket: Socket) => {
      const connection = connect(socket);
      this.#open.add(connection);
      socket.on('close', () => this.#open.delete(connection));
    });
  }

  [Symbol.iterator](): Iterator<C> {
    return this.#open.values();
  }

  /** Listens no longer. Resolves when the last connection has closed. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#open) connection.stop();
    await closed;
  }

  /** Listens no longer, and cuts all clients off. */
  async destroy(): Promise<void> {
    const closed = this.stop();
    for (const connection of this.#open) connection.destroy();
    await closed;
  }
}
