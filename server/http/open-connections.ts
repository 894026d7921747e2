/** A connection as the table sees it. */
export interface OpenConnection {
  /** Address of the other end. */
  readonly address: string;
  /** An answer is under way on it. */
  readonly isAnswering: boolean;
  destroy(): void;
}

/**
 * The open connections, of which there is a most. A new one beyond it takes the place of another: of the address that has the most
 * connections, the oldest one without an answer under way. So idle connections keep nobody out.
 */
export class OpenConnections<Connection extends OpenConnection> {
  readonly #max: number;
  /** By address, the oldest connection of each first. */
  readonly #byAddress = new Map<string, Set<Connection>>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a connection. One for which there is no room is destroyed. */
  add(connection: Connection): void {
    const { address } = connection;
    const connections = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, connections.add(connection));
    this.#count++;
    if (this.#count > this.#max) (this.#dispensable() ?? connection).destroy();
  }

  /** Forgets a connection that has closed. Nothing happens the second time. */
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
