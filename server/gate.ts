import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { Connections } from './connections.js';
import { GateConnection } from './gate-connection.js';
import type { Exchange, GateDoor } from './gate-connection.js';
import { listenOn } from './listen.js';

/**
 * The accept layer in front of uWebSockets.js 20.30, whose parser gives HTTP/1.0, the absolute form, a missing Host and more
 * than 50 headers no answer at all, cuts a head of more than 4 KiB that comes in two packets, and ends connections that
 * pipeline: there is no hook by which one could answer for it. So the gate accepts, reads and checks the heads, and hands
 * the number of each exchange on over a Unix socket that only this process's user can open.
 */
export class Gate implements GateDoor {
  readonly socketPath: string;
  readonly methods: readonly string[];
  isStopping = false;
  readonly #server: Server;
  readonly #connections: Connections<GateConnection>;
  readonly #exchanges = new Map<number, Exchange>();
  #exchangeLast = 0;

  constructor(socketPath: string, methods: readonly string[]) {
    this.socketPath = socketPath;
    this.methods = methods;
    // A high-water mark of one byte makes every write that the kernel does not take at once wait for `drain`.
    this.#server = createServer({ allowHalfOpen: true, highWaterMark: 1 });
    this.#connections = new Connections(this.#server, (client) => new GateConnection(client, this));
  }

  listen(host: string | undefined, port: number): Promise<number> {
    return listenOn(this.#server, host, port);
  }

  open(exchange: Exchange): number {
    this.#exchangeLast++;
    this.#exchanges.set(this.#exchangeLast, exchange);
    return this.#exchangeLast;
  }

  forget(exchange: number): void {
    this.#exchanges.delete(exchange);
  }

  /** The request of a number that came in over the Unix socket; undefined when it is not ours, or its client has gone. */
  exchange(number: number): Exchange | undefined {
    return this.#exchanges.get(number);
  }

  /** Resolves when the last connection has closed. */
  stop(): Promise<void> {
    this.isStopping = true;
    return this.#connections.stop();
  }

  destroy(): Promise<void> {
    this.isStopping = true;
    return this.#connections.destroy();
  }
}
