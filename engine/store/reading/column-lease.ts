/** What a lease does while there is no room in memory. */
export interface LeaseOptions {
  /** Ends a wait for memory. */
  readonly signal?: AbortSignal | undefined;
  /** Called before waiting for memory. The holder then gives back every other lease: a query that waits for memory must hold none. */
  readonly onWait?: (() => void) | undefined;
  /** Columns are decoded on the heap instead of waiting for memory: for a holder that keeps other leases meanwhile. */
  readonly neverWaits?: boolean | undefined;
}

/**
 * Holds columns in memory while a query reads them. Once the lease is released, they may be overwritten. A lease is released in the
 * `finally` of the function that made it.
 */
export class ColumnLease {
  readonly signal: AbortSignal | undefined;
  readonly onWait: (() => void) | undefined;
  readonly neverWaits: boolean;
  #releases: (() => void)[] = [];

  constructor(options: LeaseOptions = {}) {
    this.signal = options.signal;
    this.onWait = options.onWait;
    this.neverWaits = options.neverWaits === true;
  }

  /** Whether it holds nothing that could be overwritten. */
  get isEmpty(): boolean {
    return this.#releases.length === 0;
  }

  /** Adds what is to be done at the release. */
  add(release: () => void): void {
    this.#releases.push(release);
  }

  /** Gives everything back. May be called again. */
  release(): void {
    const releases = this.#releases;
    this.#releases = [];
    for (const release of releases) release();
  }
}

/** Calls `use` with a lease that is released when it has ended, whatever happens. */
export async function withLease<T>(
  options: LeaseOptions,
  use: (lease: ColumnLease) => Promise<T>,
): Promise<T> {
  const lease = new ColumnLease(options);
  try {
    return await use(lease);
  } finally {
    lease.release();
  }
}
