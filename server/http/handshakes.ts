import type { Socket } from 'node:net';
import type { OpenConnection, OpenConnections } from './open-connections.js';

/** A connection whose TLS handshake is not complete. */
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

/**
 * The connections whose TLS handshake is under way. They count as open connections, so that clients that never complete a handshake can't
 * exceed the bound on connections.
 */
export class Handshakes {
  readonly #open: OpenConnections<OpenConnection>;
  /** By address and port of the client, because Node does not tell which TCP socket a TLS socket works on. */
  readonly #begun = new Map<string, Handshake>();

  constructor(open: OpenConnections<OpenConnection>) {
    this.#open = open;
  }

  /** Notes a new TCP connection, on which TLS begins. */
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

  /** Notes that the handshake of a TLS socket is complete. Returns the TCP socket below it; undefined if that has closed. */
  end(socket: Socket): Socket | undefined {
    const key = keyOf(socket);
    const handshake = this.#begun.get(key);
    if (handshake === undefined) return undefined;
    this.#begun.delete(key);
    this.#open.remove(handshake);
    return handshake.carrier;
  }

  /** The TCP socket of a TLS socket whose handshake has failed; undefined if that has closed. */
  carrierOf(socket: Socket): Socket | undefined {
    return this.#begun.get(keyOf(socket))?.carrier;
  }

  destroy(): void {
    for (const handshake of this.#begun.values()) handshake.destroy();
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
