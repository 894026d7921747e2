import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { Connections } from './connections.js';
import { sweepIntervalMs } from './http-limits.js';
import { HeadTexts } from './head-texts.js';
import { listenOn } from './listen.js';
import { NetConnection } from './net-connection.js';
import type { NetDoor } from './net-connection.js';
import type { RequestHandler, Transport, TransportOptions } from './transport.js';

/**
 * The route on node:net: our own reading of heads and writing of answers, and nothing else. HTTP/1.1 for one route without request
 * bodies is little, and each general server costs more than it saves (docs/adr).
 */
export class NetTransport implements Transport, NetDoor {
  readonly name = 'net';
  readonly methods: readonly string[];
  readonly handler: RequestHandler;
  isStopping = false;
  /** The clock for what lasts seconds, read once for all connections at each sweep: asking it for each request costs more. */
  nowMs = performance.now();
  heads = new HeadTexts();
  readonly #server: Server;
  readonly #connections: Connections<NetConnection>;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: TransportOptions) {
    this.methods = options.methods;
    this.handler = options.handler;
    // A high-water mark of one byte makes every write that the kernel does not take at once wait for `drain`.
    this.#server = createServer({ allowHalfOpen: true, highWaterMark: 1, noDelay: true });
    this.#connections = new Connections(this.#server, (socket) => new NetConnection(socket, this));
    this.#server.on('close', () => clearInterval(this.#sweeper));
  }

  async listen(host: string | undefined, port: number): Promise<number> {
    const taken = await listenOn(this.#server, host, port);
    this.#sweep();
    this.#sweeper = setInterval(() => this.#sweep(), sweepIntervalMs);
    return taken;
  }

  #sweep(): void {
    this.nowMs = performance.now();
    this.heads = new HeadTexts();
    for (const connection of this.#connections) connection.sweep();
  }

  stop(): Promise<void> {
    this.isStopping = true;
    return this.#connections.stop();
  }

  destroy(): Promise<void> {
    this.isStopping = true;
    return this.#connections.destroy();
  }
}
