import { assert } from '../../terms/assert.js';
import type { Column } from '../../columns/column.js';
import { isLogstrataError, LogstrataError } from '../../terms/errors.js';
import { alignedBytes } from '../../memory/allocator.js';
import type { Arena } from '../../memory/arena.js';
import { sharedMemory, type SharedMemory } from '../../memory/shared-memory.js';
import {
  filtersKeptShare,
  poolBytesMax,
  poolScatteredBytesMin,
  poolScatteredShare,
  poolWaitersMax,
} from '../../terms/limits.js';
import { heapSpace, RangeSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { ColumnLease } from './column-lease.js';
import { throwIfAborted } from './pace.js';
import type { ColumnUse } from './snapshot.js';
import { StreamedColumns } from './streamed-columns.js';

/** A column that a query needs, and how it is loaded. */
export interface ColumnRequest {
  readonly key: string;
  /** The most bytes that `load` asks of its space. */
  readonly sizeBytes: number;
  /** Whether it is no column but filters, which have a share of the bound. */
  readonly isFilter?: true;
  /** Decodes the column into `space`. */
  load(space: ColumnSpace): Promise<Column>;
}

/** A column, and whether it was in memory already, or on its way there. */
export interface PinnedColumn {
  readonly column: Column;
  readonly cached: boolean;
}

interface Entry {
  readonly key: string;
  /** Null where it lies aside, on the heap. */
  readonly address: number | null;
  /** Bytes of the memory that the column takes. While it is decoded, the working memory for that is included. */
  bytes: number;
  /** Leases that hold it, and its decoding. */
  pins: number;
  readonly column: Promise<Column>;
  /** The same, once it has been decoded. */
  decoded: Column | null;
  /** No longer to be found under its key: freed when nobody uses it. */
  isGone: boolean;
  readonly isFilter: boolean;
}

/** Columns that are asked for together. */
interface Group {
  readonly entries: readonly Entry[];
  readonly columns: Column[];
}

function isKept(entry: Entry): boolean {
  return !entry.isGone;
}

/** A requested column, on its way or in memory. */
interface RequestedColumn {
  readonly column: Promise<Column>;
  readonly cached: boolean;
}

/** Another caller began to decode the column and was cancelled or timed out: this caller has to begin anew. */
class OtherCallerEnded extends Error {}

/** Tries again, and says whether it has what it waited for. */
type Waiter = () => boolean;

/**
 * Decoded columns and filters of segments in the memory that the kernels work on, up to a bound in bytes. A column stays while a lease pins
 * it; of the others the least recently used go first, and before them those that were used once. Requests for a column that is being
 * decoded wait for that one decoding.
 *
 * The columns of a call get room all together or not at all, and a call that waits for room has none. So no call waits for
 * another that waits. Columns that are together larger than the whole bound are decoded on the heap, for one call at a time.
 */
export class BufferPool {
  readonly #bytesMax: number;
  readonly #memory: SharedMemory;
  readonly #entries = new Map<string, Entry>();
  /** The same entries in the order of their last use. */
  readonly #used: Readonly<Record<ColumnUse, Set<Entry>>> = { once: new Set(), again: new Set() };
  readonly #groups = new WeakMap<readonly string[], Group>();
  /** The group whose entries were used last: their order need not be changed for its next use. */
  #lastTouched: Group | null = null;
  /** Those outside the memory. */
  readonly #aside = new Set<Entry>();
  readonly #waiters: Waiter[] = [];
  readonly #streamed: StreamedColumns;
  /** Where more bytes than this are free between columns, columns are dropped before the memory grows. */
  readonly #scatteredBytesMax: number;
  #bytes = 0;
  #pinnedBytes = 0;
  #evictions = 0;
  #filterBytes = 0;
  #isWaking = false;
  #isClosed = false;

  /** `bytesMax` is cut to what 32-bit addresses reach. */
  constructor(bytesMax: number, memory: SharedMemory = sharedMemory()) {
    this.#bytesMax = Math.min(bytesMax, poolBytesMax);
    this.#memory = memory;
    this.#scatteredBytesMax = Math.max(poolScatteredBytesMin, this.#bytesMax * poolScatteredShare);
    this.#streamed = new StreamedColumns(this.#bytesMax);
    memory.addBound(this.#bytesMax);
  }

  /** Bytes of the memory that columns take. */
  get bytes(): number {
    return this.#bytes;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Columns that had to go so that others had room. */
  get evictions(): number {
    return this.#evictions;
  }

  /** Bytes of columns that leases hold. */
  get pinnedBytes(): number {
    return this.#pinnedBytes;
  }

  /** The columns of the keys, held by the lease, where all of them are in memory already; else null, and none is held. */
  pinDecoded(keys: readonly string[], use: ColumnUse, lease: ColumnLease): Column[] | null {
    const group = this.#decoded(keys);
    if (group === null) return null;
    for (const entry of group.entries) {
      this.#pin(entry);
      if (use === 'again') this.#touch(entry);
    }
    lease.add(() => {
      for (const entry of group.entries) this.#unpin(entry);
    });
    return group.columns;
  }

  /**
   * The columns of the keys where all of them are in memory already; else null. Nothing holds them: they may be read until the caller
   * lets others work. The same list for the same list of keys, as long as they stay.
   */
  decodedNow(keys: readonly string[]): readonly Column[] | null {
    const known = this.#groups.get(keys);
    const group = known !== undefined && known.entries.every(isKept) ? known : this.#decoded(keys);
    if (group === null) return null;
    if (this.#lastTouched === group) return group.columns;
    this.#groups.set(keys, group);
    for (const entry of group.entries) this.#touch(entry);
    this.#lastTouched = group;
    return group.columns;
  }

  /** The columns of the keys, where all of them have been decoded. */
  #decoded(keys: readonly string[]): Group | null {
    const entries: Entry[] = [];
    const columns: Column[] = [];
    for (const key of keys) {
      const entry = this.#entries.get(key);
      if (entry === undefined || entry.decoded === null) return null;
      entries.push(entry);
      columns.push(entry.decoded);
    }
    return { entries, columns };
  }

  /**
   * The columns of the requests, in their order. They stay as they are until the lease is released. After a failure the lease holds none of
   * them. All callers that wait for a column get its failure; a later call loads it again. Throws `limit` when too many queries wait for memory.
   */
  async pin(requests: readonly ColumnRequest[], use: ColumnUse, lease: ColumnLease): Promise<PinnedColumn[]> {
    for (;;) {
      const { signal, onWait, neverWaits } = lease;
      const own = new ColumnLease({ signal, onWait, neverWaits });
      try {
        const pinned = await this.#pinAll(requests, use, own);
        if (!own.isEmpty) lease.add(() => own.release());
        return pinned;
      } catch (error) {
        own.release();
        if (!(error instanceof OtherCallerEnded)) throw error;
        // The caller that began the decoding has ended. This one goes on, unless it was aborted too.
        throwIfAborted(lease.signal);
      }
    }
  }

  async #pinAll(
    requests: readonly ColumnRequest[],
    use: ColumnUse,
    lease: ColumnLease,
  ): Promise<PinnedColumn[]> {
    // A call whose columns are all there needs no room, and does not queue behind those that wait for room.
    const isKept = requests.every(({ key }) => this.#entries.has(key));
    const taken =
      (this.#waiters.length === 0 || isKept ? this.#take(requests, use, lease) : null) ??
      (await this.#wait(requests, use, lease));
    // All are waited for, so that none is still being written when the lease is released.
    const results = await Promise.allSettled(taken.map(({ column }) => column));
    return results.map((result, i) => {
      const { cached } = taken[i]!;
      if (result.status === 'fulfilled') return { column: result.value, cached };
      const { reason } = result as { reason: unknown };
      const isEnded = isLogstrataError(reason) && (reason.code === 'cancelled' || reason.code === 'timeout');
      throw cached && isEnded
        ? new OtherCallerEnded('the decoding was cancelled', { cause: reason })
        : reason;
    });
  }

  /** Whether the column of a key is in memory. One that is on its way there is not. */
  hasDecoded(key: string): boolean {
    return (this.#entries.get(key)?.decoded ?? null) !== null;
  }

  /** Whether the column of a key is to be streamed, and not kept: it is not in memory, and this is the first search in a while. */
  isToStream(key: string, sizeBytes: number): boolean {
    return !this.#entries.has(key) && this.#streamed.isToStream(key, sizeBytes);
  }

  /**
   * Keeps a column that came with another, where there is room that nobody waits for and no other column has to go. `copy` makes one of
   * at most `sizeBytes` bytes.
   */
  offer(key: string, sizeBytes: number, copy: (arena: Arena) => Column): void {
    if (this.#isClosed || this.#entries.has(key) || this.#waiters.length > 0) return;
    const memory = this.#memory;
    if (this.#bytes + alignedBytes(sizeBytes) > this.#bytesMax) return;
    const address = memory.allocate(sizeBytes, { grows: memory.freeBytes <= this.#scatteredBytesMax });
    if (address === null) return;
    const bytes = memory.sizeOf(this.#taken(address));
    const decoded = copy(new RangeSpace(memory, address, bytes).kept);
    const column = Promise.resolve(decoded);
    const entry: Entry = { key, address, bytes, pins: 0, column, decoded, isGone: false, isFilter: false };
    this.#entries.set(key, entry);
    this.#used.again.add(entry);
    this.#lastTouched = null;
  }

  /**
   * Loads filters where they have room in their share of the bound, for which columns may go; null where they have none. The promise, which never
   * rejects, says that they are loaded, or could not be.
   */
  keepFilters(request: ColumnRequest): Promise<void> | null {
    const bytes = this.#filterBytes + alignedBytes(request.sizeBytes);
    if (this.#isClosed || this.#waiters.length > 0 || this.#entries.has(request.key)) return null;
    const address = bytes > this.#bytesMax * filtersKeptShare ? null : this.#allocate(request.sizeBytes);
    if (address === null) return null;
    const lease = new ColumnLease();
    this.#load(request, address, 'again', lease);
    const release = (): void => lease.release();
    return this.#entries.get(request.key)!.column.then(release, release);
  }

  /** Forgets the columns whose key begins with `prefix`; those in use are freed after that. */
  evict(prefix: string): void {
    for (const entry of this.#entries.values()) if (entry.key.startsWith(prefix)) this.#drop(entry);
    this.#streamed.evict(prefix);
    this.#wake();
  }

  /** Forgets everything. Nothing is kept from here on. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.evict('');
    this.#memory.addBound(-this.#bytesMax);
  }

  /** Reserves and pins all that is asked for; null when there is no room before somebody releases a lease. */
  #take(requests: readonly ColumnRequest[], use: ColumnUse, lease: ColumnLease): RequestedColumn[] | null {
    const held = new Set<Entry>();
    const missing = new Map<string, ColumnRequest>();
    for (const request of requests) {
      const entry = this.#entries.get(request.key);
      if (entry !== undefined) held.add(entry);
      else missing.set(request.key, request);
    }
    for (const entry of held) this.#pin(entry);
    const reserved = this.#reserve([...missing.values()], held);
    const addresses = reserved === 'wait' && lease.neverWaits ? 'aside' : reserved;
    const waits = addresses === 'aside' && !this.#clearAside(held) && !lease.neverWaits;
    if (addresses === 'wait' || waits) {
      for (const entry of held) this.#unpin(entry);
      return null;
    }
    for (const entry of held) {
      if (use === 'again') this.#touch(entry);
      lease.add(() => this.#unpin(entry));
    }
    [...missing.values()].forEach((request, i) => {
      this.#load(request, addresses === 'aside' ? null : addresses[i]!, use, lease);
    });
    return requests.map(({ key }) => ({
      column: this.#entries.get(key)!.column,
      cached: !missing.has(key),
    }));
  }

  /**
   * Addresses for all of the requests; `wait` when leases of others have to be released first, `aside` when the bound, or
   * the machine, has no room for them beside what the caller holds.
   */
  #reserve(requests: readonly ColumnRequest[], held: ReadonlySet<Entry>): number[] | 'wait' | 'aside' {
    if (requests.length === 0) return [];
    const wantedBytes = requests.reduce((sum, { sizeBytes }) => sum + alignedBytes(sizeBytes), 0);
    let heldBytes = 0;
    for (const entry of held) heldBytes += entry.bytes;
    if (this.#isClosed || heldBytes + wantedBytes > this.#bytesMax) return 'aside';
    if (this.#pinnedBytes + wantedBytes > this.#bytesMax) return 'wait';
    const addresses: number[] = [];
    for (const { sizeBytes } of requests) {
      const address = this.#allocate(sizeBytes);
      if (address === null) {
        for (const other of addresses) this.#free(other);
        return this.#pinnedBytes > heldBytes ? 'wait' : 'aside';
      }
      addresses.push(address);
    }
    return addresses;
  }

  #allocate(sizeBytes: number): number | null {
    const memory = this.#memory;
    for (;;) {
      if (this.#bytes + alignedBytes(sizeBytes) <= this.#bytesMax) {
        const address = memory.allocate(sizeBytes, { grows: memory.freeBytes <= this.#scatteredBytesMax });
        if (address !== null) return this.#taken(address);
      }
      const victim = this.#unpinned();
      if (victim === undefined) break;
      this.#evictions++;
      this.#drop(victim);
    }
    // Pinned columns lie between the free ranges, so that none is large enough: let the memory grow.
    const address =
      this.#bytes + alignedBytes(sizeBytes) <= this.#bytesMax ? memory.allocate(sizeBytes) : null;
    return address === null ? null : this.#taken(address);
  }

  #taken(address: number): number {
    this.#bytes += this.#memory.sizeOf(address);
    return address;
  }

  #free(address: number): void {
    this.#bytes -= this.#memory.sizeOf(address);
    this.#memory.free(address);
  }

  /** The column to drop first. */
  #unpinned(): Entry | undefined {
    for (const entries of [this.#used.once, this.#used.again]) {
      for (const entry of entries) if (entry.pins === 0) return entry;
    }
    return undefined;
  }

  /** Decodes a column at an address, or aside. */
  #load(request: ColumnRequest, address: number | null, use: ColumnUse, lease: ColumnLease): void {
    const { key, isFilter = false } = request;
    const bytes = address === null ? 0 : this.#memory.sizeOf(address);
    const space = address === null ? null : new RangeSpace(this.#memory, address, bytes);
    const column = request.load(space ?? heapSpace);
    const entry: Entry = { key, address, bytes, pins: 0, column, decoded: null, isGone: false, isFilter };
    this.#entries.set(key, entry);
    this.#lastTouched = null;
    if (isFilter) this.#filterBytes += bytes;
    if (address === null) this.#aside.add(entry);
    else this.#used[use].add(entry);
    this.#pin(entry);
    lease.add(() => this.#unpin(entry));
    // Its memory must stay while it is written to, even when nobody wants the column any more.
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
  }

  /** Forgets what lies aside, but for what the caller holds; false while others hold any of it. */
  #clearAside(held: ReadonlySet<Entry>): boolean {
    for (const entry of this.#aside) if (!held.has(entry) && entry.pins === 0) this.#drop(entry);
    return this.#isClosed || [...this.#aside].every((entry) => held.has(entry));
  }

  /** Gives back what only the decoding needed. */
  #shrink(entry: Entry, { address, columnBytes }: RangeSpace): void {
    this.#memory.shrink(address, columnBytes);
    const freedBytes = entry.bytes - this.#memory.sizeOf(address);
    entry.bytes -= freedBytes;
    this.#bytes -= freedBytes;
    this.#pinnedBytes -= freedBytes;
    if (entry.isFilter) this.#filterBytes -= freedBytes;
  }

  #pin(entry: Entry): void {
    if (entry.pins === 0) this.#pinnedBytes += entry.bytes;
    entry.pins++;
  }

  #unpin(entry: Entry): void {
    entry.pins--;
    assert(entry.pins >= 0, 'a lease is released once');
    if (entry.pins > 0) return;
    this.#pinnedBytes -= entry.bytes;
    if (entry.isGone) this.#leave(entry);
    else if (this.#isClosed) this.#drop(entry);
    this.#wake();
  }

  /** Makes an entry the last to go. */
  #touch(entry: Entry): void {
    this.#lastTouched = null;
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
    if (entry.isFilter) this.#filterBytes -= entry.bytes;
    if (entry.address === null) this.#aside.delete(entry);
    else this.#free(entry.address);
  }

  /** Waits its turn for room, holding nothing. */
  #wait(requests: readonly ColumnRequest[], use: ColumnUse, lease: ColumnLease): Promise<RequestedColumn[]> {
    lease.onWait?.();
    if (this.#waiters.length >= poolWaitersMax) {
      throw new LogstrataError(
        'limit',
        `${poolWaitersMax} queries wait for memory already: give the cache more than ${this.#bytesMax} bytes (--cache), or ask less at once`,
      );
    }
    const { signal } = lease;
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
        const taken = this.#take(requests, use, lease);
        if (taken === null) return false;
        signal?.removeEventListener('abort', onAbort);
        resolve(taken);
        return true;
      };
      this.#waiters.push(waiter);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort);
      // The caller has given back its own leases (`onWait`), which may be enough.
      this.#wake();
    });
  }

  /** Lets waiting requests try again, in the order in which they came. */
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
