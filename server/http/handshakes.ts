import type { Socket } from 'node:net';
import type { OpenConnection, OpenConnections } from './open-connections.js';

/** A connection that has not agreed on TLS yet. */
class Handshake implements OpenConnection {
  readonly address: string;
  readonly isAnswering = false;

  constructor(readonly carrier: Socket) {
    this.address = carrier.remoteAddress ?? '';
  }

  destroy(): void {
    this.carrier.destroy();
  }
}

/** The connections that are agreeing on TLS. They count as open, so that they can't be more than those may be. */
export class Handshakes {
  readonly #open: OpenConnections<OpenConnection>;
  /** By the other end: Node does not tell which socket TLS works on. */
  readonly #begun = new Map<string, Handshake>();

  constructor(open: OpenConnections<OpenConnection>) {
    this.#open = open;
  }

  begin(carrier: Socket): void {
    const handshake = new Handshake(carrier);
    const key = keyOf(carrier);
    this.#begun.set(key, handshake);
    carrier.on('close', () => {
      this.#open.remove(handshake);
      if (this.#begun.get(key) === handshake) this.#begun.delete(key);
    });
    this.#open.add(handshake);
  }

  /** TLS has been agreed on. Gives the socket that it works on. */
  end(socket: Socket): Socket | undefined {
    const key = keyOf(socket);
    const handshake = this.#begun.get(key);
    if (handshake === undefined) return undefined;
    this.#begun.delete(key);
    this.#open.remove(handshake);
    return handshake.carrier;
  }

  destroy(): void {
    for (const handshake of this.#begun.values()) handshake.destroy();
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
