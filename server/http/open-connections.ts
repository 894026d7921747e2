/** A connection as `OpenConnections` sees it. */
export interface OpenConnection {
  /** Address of the other end. */
  readonly address: string;
  /** Whether an answer is under way on it. */
  readonly isAnswering: boolean;
  destroy(): void;
}

/**
 * The open connections, at most `max` of them. When a new one exceeds that number, another is closed: of the address with the most
 * connections, the oldest one without an answer under way. So idle connections can't keep other clients out.
 */
export class OpenConnections<Connection extends OpenConnection> {
  readonly #max: number;
  /** By address, the oldest connection of each first. */
  readonly #byAddress = new Map<string, Set<Connection>>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a connection. If that makes too many, destroys another one, or this one if no other can be spared. */
  add(connection: Connection): void {
    const { address } = connection;
    const connections = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, connections.add(connection));
    this.#count++;
    if (this.#count > this.#max) (this.#dispensable() ?? connection).destroy();
  }

  /** Forgets a connection that has closed. Further calls do nothing. */
  remove(connection: Connection): void {
    const connections = this.#byAddress.get(connection.address);
    if (connections?.delete(connection) !== true) return;
    this.#count--;
    if (connections.size === 0) this.#byAddress.delete(connection.address);
  }

  *[Symbol.iterator](): Generator<Connection> {
    for (const connections of this.#byAddress.values()) yield* connections;
  }

  #dispensable(): Connection | undefined {
    const most = [...this.#byAddress.values()].reduce((a, b) => (b.size > a.size ? b : a));
    for (const connection of most) if (!connection.isAnswering) return connection;
    return undefined;
  }
}
