/** What happens when a request with this lease finds no memory. */
export interface LeaseOptions {
  /** Aborts a wait for memory. */
  readonly signal?: AbortSignal | undefined;
  /** Called before a wait for memory. It must release all other leases of the query: a query that waits for memory must hold none. */
  readonly onWait?: (() => void) | undefined;
  /** Decode on the heap instead of waiting for memory. For a query that cannot release its other leases. */
  readonly neverWaits?: boolean | undefined;
}

/**
 * Pins columns in the buffer pool while a query reads them. After the release they may be overwritten. The function that makes a lease
 * releases it in a `finally`.
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

  /** Whether the lease pins nothing. */
  get isEmpty(): boolean {
    return this.#releases.length === 0;
  }

  /** Adds a function that `release` calls. */
  add(release: () => void): void {
    this.#releases.push(release);
  }

  /** Unpins everything. Further calls do nothing. */
  release(): void {
    const releases = this.#releases;
    this.#releases = [];
    for (const release of releases) release();
  }
}

/** Calls `use` with a new lease, and releases it when `use` returns or throws. */
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
