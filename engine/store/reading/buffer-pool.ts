import { assert, isLogstrataError, LogstrataError } from '../../core/errors.js';
import type { Column } from '../../columns/column.js';
import { alignedBytes } from '../../core/allocator.js';
import { sharedMemory, type SharedMemory } from '../../core/shared-memory.js';
import { poolBytesMax, poolScatteredBytesMin, poolScatteredShare, waitingMax } from '../../core/limits.js';
import { heapSpace, RangeSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { throwIfAborted } from './pace.js';
import type { ReadCounters } from './read-counters.js';
import type { ColumnUse, HeldColumns, HoldOptions } from './snapshot.js';
import { StreamedColumns } from './streamed-columns.js';

/** A column that a query needs, and how it is loaded. */
export interface ColumnRequest {
  readonly key: string;
  /** Upper bound of the bytes that `load` allocates in its space, working memory included. */
  readonly sizeBytes: number;
  /** Decodes the column into `space`. */
  load(space: ColumnSpace): Promise<Column>;
}

/** The columns of requests. Those are cached that were in the pool, or being decoded into it, before the request. */
export interface PinnedColumns extends HeldColumns {
  readonly cached: readonly boolean[];
}

interface Entry {
  readonly key: string;
  /** Address in the shared memory; null where the column is on the heap. */
  readonly address: number | null;
  /** Bytes of the shared memory that the entry takes; 0 on the heap. Includes the decoder's working memory until decoding has ended. */
  bytes: number;
  /** How often the entry is pinned, plus one while it is being decoded. */
  pins: number;
  readonly column: Promise<Column>;
  /** The settled value of `column`; null until decoding has ended. */
  decoded: Column | null;
  /** Whether the entry was dropped from the pool. Its memory is freed once `pins` is 0. */
  isGone: boolean;
}

/** The entries of requests, which are pinned, and the numbers of those requests that found their entry. */
interface Taken {
  readonly entries: readonly Entry[];
  readonly cached: readonly boolean[];
}

/** Retries a request that waits for memory. Returns true once the request is served. */
type Waiter = () => boolean;

/**
 * The cache of decoded columns. They lie in the memory that kernels and threads share, up to a bound in bytes. A column that
 * is pinned is never evicted. The pool evicts unpinned columns that were read for one use (`once`) first, then the least recently
 * used ones. Concurrent requests for the same column share one decoding.
 *
 * A call gets memory for all of its columns at once or for none, and it pins nothing while it waits, so waiting calls cannot deadlock.
 * Columns that together exceed the bound are decoded on the heap, for one call at a time.
 */
export class BufferPool {
  readonly #bytesMax: number;
  readonly #memory: SharedMemory;
  readonly #entries = new Map<string, Entry>();
  /** The entries in shared memory, by use, least recently used first. */
  readonly #used: Readonly<Record<ColumnUse, Set<Entry>>> = { once: new Set(), again: new Set() };
  /** Entries on the heap. */
  readonly #onHeap = new Set<Entry>();
  readonly #waiters: Waiter[] = [];
  readonly #streamed: StreamedColumns;
  /** Once more bytes than this are free between columns (fragmentation), the pool evicts columns before it lets the memory grow. */
  readonly #scatteredBytesMax: number;
  #bytes = 0;
  #pinnedBytes = 0;
  #evictions = 0;
  #isWaking = false;
  #isClosed = false;

  /** `bytesMax` is lowered to `poolBytesMax` where it is larger: addresses have 32 bits. */
  constructor(bytesMax: number, memory: SharedMemory = sharedMemory()) {
    this.#bytesMax = Math.min(bytesMax, poolBytesMax);
    this.#memory = memory;
    this.#scatteredBytesMax = Math.max(poolScatteredBytesMin, this.#bytesMax * poolScatteredShare);
    this.#streamed = new StreamedColumns(this.#bytesMax);
    memory.addBound(this.#bytesMax);
  }

  /** Bytes of shared memory that entries take. */
  get bytes(): number {
    return this.#bytes;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Number of entries that were evicted to make room. */
  get evictions(): number {
    return this.#evictions;
  }

  /** Bytes of entries that are held by a lease or are being decoded. */
  get pinnedBytes(): number {
    return this.#pinnedBytes;
  }

  /** Pins and counts the columns of `keys` if all of them are decoded; else returns null and pins none. */
  pinDecoded(keys: readonly string[], counters: ReadCounters, use: ColumnUse = 'again'): HeldColumns | null {
    const entries: Entry[] = [];
    const columns: Column[] = [];
    for (const key of keys) {
      const entry = this.#entries.get(key);
      if (entry === undefined || entry.decoded === null) return null;
      entries.push(entry);
      columns.push(entry.decoded);
    }
    for (const entry of entries) {
      this.#pin(entry);
      if (use === 'again') this.#touch(entry);
    }
    counters.columnsCached += columns.length;
    return { columns, release: () => this.#unpinAll(entries) };
  }

  /** Pins the columns of `keys`, and counts them by where they come from. `requestOf` makes the request of a key, where not all are decoded. */
  async hold(
    keys: readonly string[],
    requestOf: (index: number) => Promise<ColumnRequest>,
    counters: ReadCounters,
    options: HoldOptions = {},
  ): Promise<HeldColumns> {
    const decoded = this.pinDecoded(keys, counters, options.use);
    if (decoded !== null) return decoded;
    const pinned = await this.pin(await Promise.all(keys.map((_, i) => requestOf(i))), options);
    for (const isCached of pinned.cached) counters[isCached ? 'columnsCached' : 'columnsDecoded']++;
    return pinned;
  }

  /**
   * Pins the columns of the requests, in their order, and loads those that are missing. They stay valid until they are released; on
   * failure none of them is pinned. A failed load rejects every caller that waits for that column; a later call loads it again.
   * Throws `limit` when too many queries wait for memory.
   */
  async pin(requests: readonly ColumnRequest[], options: HoldOptions = {}): Promise<PinnedColumns> {
    for (;;) {
      // A call whose columns are all in the pool needs no memory, so it does not queue behind calls that wait for memory.
      const isKept = this.#waiters.length === 0 || requests.every(({ key }) => this.#entries.has(key));
      const { entries, cached } =
        (isKept ? this.#take(requests, options) : null) ?? (await this.#wait(requests, options));
      // Wait for all, even after a failure, so that no column is still being written when they are released.
      const results = await Promise.allSettled(entries.map(({ column }) => column));
      const failed = results.findIndex(({ status }) => status === 'rejected');
      const columns = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      if (failed < 0) return { columns, cached, release: () => this.#unpinAll(new Set(entries)) };
      this.#unpinAll(new Set(entries));
      const { reason } = results[failed] as PromiseRejectedResult;
      const isEnded = isLogstrataError(reason) && (reason.code === 'cancelled' || reason.code === 'timeout');
      if (!isEnded || !cached[failed]!) throw reason;
      // Only the caller that began the decoding has ended. This call tries again, unless it was aborted too.
      throwIfAborted(options.signal);
    }
  }

  /** Whether the column of `key` is in the pool and fully decoded. */
  hasDecoded(key: string): boolean {
    return (this.#entries.get(key)?.decoded ?? null) !== null;
  }

  /** Whether a search should stream the column instead of keeping it: the pool lacks it, and it was not streamed recently. */
  isToStream(key: string, sizeBytes: number): boolean {
    return !this.#entries.has(key) && this.#streamed.isToStream(key, sizeBytes);
  }

  /** Keeps a column that was decoded along with another one. Does nothing where that would evict a column, or while calls wait for memory. */
  offer(request: ColumnRequest): void {
    if (this.#isClosed || this.#entries.has(request.key) || this.#waiters.length > 0) return;
    const address = this.#allocateFree(request.sizeBytes, this.#isCompact);
    if (address !== null) void this.#unpinWhenLoaded(this.#load(request, address, 'again'));
  }

  #unpinWhenLoaded(entry: Entry): Promise<void> {
    const unpin = (): void => this.#unpin(entry);
    return entry.column.then(unpin, unpin);
  }

  /** Drops the entries whose key begins with `prefix`. The memory of pinned entries is freed when their last pin is released. */
  evict(prefix: string): void {
    for (const entry of this.#entries.values()) if (entry.key.startsWith(prefix)) this.#drop(entry);
    this.#streamed.evict(prefix);
    this.#wake();
  }

  /** Drops all entries. The pool keeps nothing from now on: columns are decoded on the heap. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.evict('');
    this.#memory.addBound(-this.#bytesMax);
  }

  /** Pins all requested columns and begins to load the missing ones; null where that has to wait until other columns are released. */
  #take(
    requests: readonly ColumnRequest[],
    { use = 'again', neverWaits = false }: HoldOptions,
  ): Taken | null {
    const held = new Set<Entry>();
    const missing = new Map<string, ColumnRequest>();
    for (const request of requests) {
      const entry = this.#entries.get(request.key);
      if (entry !== undefined) held.add(entry);
      else missing.set(request.key, request);
    }
    for (const entry of held) this.#pin(entry);
    const reserved = this.#reserve([...missing.values()], held);
    const addresses = reserved === 'wait' && neverWaits ? 'on heap' : reserved;
    const waits = addresses === 'on heap' && !this.#clearHeap(held) && !neverWaits;
    if (addresses === 'wait' || waits) {
      this.#unpinAll(held);
      return null;
    }
    if (use === 'again') for (const entry of held) this.#touch(entry);
    [...missing.values()].forEach((request, i) => {
      this.#load(request, addresses === 'on heap' ? null : addresses[i]!, use);
    });
    return {
      entries: requests.map(({ key }) => this.#entries.get(key)!),
      cached: requests.map(({ key }) => !missing.has(key)),
    };
  }

  /**
   * Allocates an address for every request. Returns `wait` where other columns have to be released first, and `on heap` where the requests
   * do not fit even then, because together with `held` they exceed the bound or the machine's memory, or where the pool is closed.
   */
  #reserve(requests: readonly ColumnRequest[], held: ReadonlySet<Entry>): number[] | 'wait' | 'on heap' {
    if (requests.length === 0) return [];
    const wantedBytes = requests.reduce((sum, { sizeBytes }) => sum + alignedBytes(sizeBytes), 0);
    let heldBytes = 0;
    for (const entry of held) heldBytes += entry.bytes;
    if (this.#isClosed || heldBytes + wantedBytes > this.#bytesMax) return 'on heap';
    if (this.#pinnedBytes + wantedBytes > this.#bytesMax) return 'wait';
    const addresses: number[] = [];
    for (const { sizeBytes } of requests) {
      const address = this.#allocate(sizeBytes);
      if (address === null) {
        for (const other of addresses) this.#free(other);
        return this.#pinnedBytes > heldBytes ? 'wait' : 'on heap';
      }
      addresses.push(address);
    }
    return addresses;
  }

  #allocate(sizeBytes: number): number | null {
    for (;;) {
      const address = this.#allocateFree(sizeBytes, this.#isCompact);
      if (address !== null) return address;
      const victim = this.#unpinned();
      if (victim === undefined) break;
      this.#evictions++;
      this.#drop(victim);
    }
    // Pinned columns fragment the free memory, so that no free range is large enough: let the memory grow.
    return this.#allocateFree(sizeBytes, true);
  }

  get #isCompact(): boolean {
    return this.#memory.freeBytes <= this.#scatteredBytesMax;
  }

  /** Allocates without evicting anything. */
  #allocateFree(sizeBytes: number, grows: boolean): number | null {
    if (this.#bytes + alignedBytes(sizeBytes) > this.#bytesMax) return null;
    const address = this.#memory.allocate(sizeBytes, { grows });
    if (address !== null) this.#bytes += this.#memory.sizeOf(address);
    return address;
  }

  #free(address: number): void {
    this.#bytes -= this.#memory.sizeOf(address);
    this.#memory.free(address);
  }

  /** The entry to evict next; undefined where all are pinned. */
  #unpinned(): Entry | undefined {
    for (const entries of [this.#used.once, this.#used.again]) {
      for (const entry of entries) if (entry.pins === 0) return entry;
    }
    return undefined;
  }

  /** Begins to decode a column at `address`, or on the heap where that is null, and pins it for the caller. */
  #load(request: ColumnRequest, address: number | null, use: ColumnUse): Entry {
    const { key } = request;
    const bytes = address === null ? 0 : this.#memory.sizeOf(address);
    const space = address === null ? null : new RangeSpace(this.#memory, address, bytes);
    const column = request.load(space ?? heapSpace);
    const entry: Entry = { key, address, bytes, pins: 0, column, decoded: null, isGone: false };
    this.#entries.set(key, entry);
    if (address === null) this.#onHeap.add(entry);
    else this.#used[use].add(entry);
    this.#pin(entry);
    // A second pin keeps the memory while the decoder writes to it, even after the caller has released the column.
    this.#pin(entry);
    const settle = (isLoaded: boolean): void => {
      if (!isLoaded) this.#drop(entry);
      else if (space !== null) this.#shrink(entry, space);
      this.#unpin(entry);
    };
    column.then(
      (decoded) => {
        entry.decoded = decoded;
        settle(true);
      },
      () => settle(false),
    );
    return entry;
  }

  /** Drops unpinned heap entries that are not in `held`. Returns false while another call has heap entries and the pool is open. */
  #clearHeap(held: ReadonlySet<Entry>): boolean {
    for (const entry of this.#onHeap) if (!held.has(entry) && entry.pins === 0) this.#drop(entry);
    return this.#isClosed || [...this.#onHeap].every((entry) => held.has(entry));
  }

  /** Frees the part of the range that was only the decoder's working memory. */
  #shrink(entry: Entry, { address, columnBytes }: RangeSpace): void {
    this.#memory.shrink(address, columnBytes);
    const freedBytes = entry.bytes - this.#memory.sizeOf(address);
    entry.bytes -= freedBytes;
    this.#bytes -= freedBytes;
    this.#pinnedBytes -= freedBytes;
  }

  #pin(entry: Entry): void {
    if (entry.pins === 0) this.#pinnedBytes += entry.bytes;
    entry.pins++;
  }

  #unpin(entry: Entry): void {
    entry.pins--;
    assert(entry.pins >= 0, 'columns are released once');
    if (entry.pins > 0) return;
    this.#pinnedBytes -= entry.bytes;
    if (entry.isGone) this.#leave(entry);
    else if (this.#isClosed) this.#drop(entry);
    this.#wake();
  }

  #unpinAll(entries: Iterable<Entry>): void {
    for (const entry of entries) this.#unpin(entry);
  }

  /** Moves an entry to the end of the eviction order. */
  #touch(entry: Entry): void {
    if (entry.address === null) return;
    this.#used.once.delete(entry);
    this.#used.again.delete(entry);
    this.#used.again.add(entry);
  }

  #drop(entry: Entry): void {
    if (entry.isGone) return;
    entry.isGone = true;
    this.#entries.delete(entry.key);
    this.#used.once.delete(entry);
    this.#used.again.delete(entry);
    if (entry.pins === 0) this.#leave(entry);
  }

  #leave(entry: Entry): void {
    if (entry.address === null) this.#onHeap.delete(entry);
    else this.#free(entry.address);
  }

  /** Queues a request until there is memory for it. It pins nothing while it waits. */
  #wait(requests: readonly ColumnRequest[], options: HoldOptions): Promise<Taken> {
    const { signal, onWait } = options;
    onWait?.();
    if (this.#waiters.length >= waitingMax) {
      throw new LogstrataError(
        'limit',
        `${waitingMax} queries are already waiting for memory: give the cache more than ${this.#bytesMax} bytes (--cache), or run fewer queries at once`,
      );
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        const place = this.#waiters.indexOf(waiter);
        if (place >= 0) this.#waiters.splice(place, 1);
        try {
          throwIfAborted(signal);
        } catch (error) {
          reject(error as Error);
        }
        this.#wake();
      };
      const waiter: Waiter = () => {
        const taken = this.#take(requests, options);
        if (taken === null) return false;
        signal?.removeEventListener('abort', onAbort);
        resolve(taken);
        return true;
      };
      this.#waiters.push(waiter);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort);
      // `onWait` has released what the caller held, which may have freed enough memory.
      this.#wake();
    });
  }

  /** Retries waiting requests, oldest first, until one still has to wait. */
  #wake(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    try {
      while (this.#waiters.length > 0 && this.#waiters[0]!()) this.#waiters.shift();
    } finally {
      this.#isWaking = false;
    }
  }
}
