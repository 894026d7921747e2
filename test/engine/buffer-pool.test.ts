import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { Column } from '../../engine/columns/column.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { SharedMemory } from '../../engine/core/shared-memory.js';
import { createMemory } from '../../engine/core/wasm.js';
import { int64sOf } from '../../engine/core/arena.js';
import type { ColumnSpace } from '../../engine/parquet/column-space.js';
import type { ColumnUse, HoldOptions } from '../../engine/store/reading/snapshot.js';
import { poolBytesDefault } from '../../engine/archive/open-options.js';
import { BufferPool, type ColumnRequest } from '../../engine/store/reading/buffer-pool.js';

const numRuns = caseCount(75, 2000);

/** Columns that are released together. */
class ColumnLease {
  readonly releases: (() => void)[] = [];

  constructor(readonly options: HoldOptions = {}) {}

  get isEmpty(): boolean {
    return this.releases.length === 0;
  }

  release(): void {
    for (const release of this.releases.splice(0)) release();
  }
}

async function pin(pool: BufferPool, requests: readonly ColumnRequest[], use: ColumnUse, lease: ColumnLease) {
  const { columns, cached, release } = await pool.pin(requests, { ...lease.options, use });
  lease.releases.push(release);
  return columns.map((column, i) => ({ column, cached: cached[i] }));
}

function newMemory(): SharedMemory {
  return new SharedMemory(createMemory(1, 4096));
}

/** A column of `rows` integers, each of which is `value`. */
function fill(space: ColumnSpace, rows: number, value: bigint): Column {
  const values = int64sOf(space.kept, rows);
  values.fill(value);
  return { kind: 'int64', length: rows, values, validity: null };
}

/** A request for a column whose values identify its key; `working` extra bytes are needed only while the column is decoded. */
function request(key: string, rows: number, working = 0, made?: (key: string) => void): ColumnRequest {
  return {
    key,
    sizeBytes: rows * 8 + working + 4 * 128,
    load: async (space) => {
      made?.(key);
      space.working(working).fill(0xee);
      await setImmediate();
      return fill(space, rows, valueOf(key));
    },
  };
}

function valueOf(key: string): bigint {
  return BigInt(Buffer.from(key).reduce((sum, byte) => sum * 31 + byte, 7));
}

function isWhole(column: Column, key: string): boolean {
  return column.kind === 'int64' && column.values.every((value) => value === valueOf(key));
}

/** A promise that stays pending until the function rejects it. */
function withReject(): { promise: Promise<never>; reject: (reason: Error) => void } {
  let reject: (reason: Error) => void = () => undefined;
  const promise = new Promise<never>((_, fail) => (reject = fail));
  return { promise, reject: (reason) => reject(reason) };
}

type Step =
  | { readonly kind: 'pin'; readonly keys: readonly number[]; readonly use: 'once' | 'again' }
  | { readonly kind: 'release'; readonly pick: number }
  | { readonly kind: 'evict'; readonly key: number }
  | { readonly kind: 'turn' };

const keyCount = 12;
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('pin' as const),
        keys: fc.array(fc.nat(keyCount - 1), { minLength: 1, maxLength: 4 }),
        use: fc.constantFrom('once' as const, 'again' as const),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('evict' as const), key: fc.nat(keyCount - 1) }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('turn' as const) }) },
  ),
  { maxLength: 60 },
);

/** Number of rows of the column of each key; some columns are larger than the pool. */
const rowsOf = fc.array(fc.constantFrom(0, 1, 100, 700, 900, 2000, 9000), {
  minLength: keyCount,
  maxLength: keyCount,
});

interface Held {
  readonly lease: ColumnLease;
  readonly keys: readonly string[];
  columns: readonly Column[];
}

describe('the buffer pool', () => {
  test('keeps to its limit, never overwrites a pinned column, serves every request in the end, and leaks nothing', async () => {
    await fc.assert(
      fc.asyncProperty(steps, rowsOf, fc.integer({ min: 0, max: 40_000 }), async (list, rows, bytesMax) => {
        const memory = newMemory();
        const pool = new BufferPool(bytesMax, memory);
        const held: Held[] = [];
        const waiting = new Set<Promise<void>>();
        const check = (): void => {
          expect(pool.bytes).toBeLessThanOrEqual(bytesMax);
          expect(pool.pinnedBytes).toBeLessThanOrEqual(pool.bytes);
          for (const { keys, columns } of held)
            columns.forEach((column, i) => expect(isWhole(column, keys[i]!)).toBe(true));
        };
        for (const step of list) {
          if (step.kind === 'pin') {
            const keys = step.keys.map((key) => `k${key}`);
            const lease = new ColumnLease();
            const requests = keys.map((key, i) => request(key, rows[step.keys[i]!]!, 64 * (i % 3)));
            const pinning = pin(pool, requests, step.use, lease).then((pinned) => {
              held.push({ lease, keys, columns: pinned.map(({ column }) => column) });
            });
            const tracked = pinning.finally(() => waiting.delete(tracked));
            waiting.add(tracked);
          } else if (step.kind === 'release' && held.length > 0) {
            held.splice(step.pick % held.length, 1)[0]!.lease.release();
          } else if (step.kind === 'evict') {
            pool.evict(`k${step.key}`);
          } else {
            await setImmediate();
          }
          check();
        }
        // A waiting request can be served as soon as the others have released their columns, one after another.
        for (let turns = 0; waiting.size > 0; turns++) {
          expect(turns).toBeLessThan(1000);
          held.shift()?.lease.release();
          await setImmediate();
          check();
        }
        for (const { lease } of held) lease.release();
        expect(pool.pinnedBytes).toBe(0);
        pool.close();
        expect(pool.bytes).toBe(0);
        expect(memory.takenBytes).toBe(0);
      }),
      { numRuns },
    );
  });

  test('evicts columns that were used only once first, and otherwise the least recently used', async () => {
    const pool = new BufferPool(4 * 1500, newMemory());
    const made: string[] = [];
    const use = async (key: string, how: 'once' | 'again' = 'again'): Promise<void> => {
      const lease = new ColumnLease();
      await pin(pool, [request(key, 100, 0, (one) => made.push(one))], how, lease);
      lease.release();
    };
    // Each column takes 1312 bytes while it is decoded, and 896 afterwards.
    for (const key of ['a', 'b', 'c', 'd']) await use(key);
    await use('a');
    for (const key of ['x', 'y', 'z']) await use(key, 'once');
    expect(made).toEqual(['a', 'b', 'c', 'd', 'x', 'y', 'z']);
    made.length = 0;
    for (const key of ['a', 'b', 'c', 'd']) await use(key);
    expect(made).toEqual([]);
    const before = pool.evictions;
    for (const key of ['e', 'f', 'g']) await use(key);
    expect(pool.evictions).toBe(before + 3);
    made.length = 0;
    await use('d');
    await use('a');
    expect(made).toEqual(['a']);
    pool.close();
  });

  test('serves waiting requests in order, lets them hold nothing while they wait, and ends a wait at its abort signal', async () => {
    const pool = new BufferPool(20_000, newMemory());
    const first = new ColumnLease();
    await pin(pool, [request('first', 2000)], 'again', first);
    const order: string[] = [];
    let letGo = 0;
    const abort = new AbortController();
    const ask = async (key: string, signal?: AbortSignal): Promise<void> => {
      const lease = new ColumnLease({ signal, onWait: () => letGo++ });
      try {
        await pin(pool, [request(key, 2000)], 'again', lease);
        order.push(key);
      } finally {
        lease.release();
      }
    };
    const second = ask('second');
    const gone = ask('gone', abort.signal);
    const third = ask('third');
    // A column that is already in the pool needs no room, so its request does not queue.
    const same = new ColumnLease();
    expect((await pin(pool, [request('first', 2000)], 'again', same))[0]!.cached).toBe(true);
    same.release();
    expect(letGo).toBe(3);
    abort.abort();
    await expect(gone).rejects.toMatchObject({ code: 'cancelled' });
    expect(order).toEqual([]);
    first.release();
    await Promise.all([second, third]);
    expect(order).toEqual(['second', 'third']);
    pool.close();
  });

  test('decodes outside the pool for a lease that must never wait and already holds a column', async () => {
    const memory = newMemory();
    const pool = new BufferPool(20_000, memory);
    const lease = new ColumnLease({ neverWaits: true });
    const [held] = await pin(pool, [request('held', 2000)], 'once', lease);
    const [onHeap] = await pin(pool, [request('on heap', 2000)], 'once', lease);
    const places = [held, onHeap].map((pinned) =>
      memory.holds((pinned!.column as Column & { kind: 'int64' }).values),
    );
    expect(places).toEqual([true, false]);
    expect(isWhole(held!.column, 'held') && isWhole(onHeap!.column, 'on heap')).toBe(true);
    pool.evict('');
    lease.release();
    expect(pool.bytes).toBe(0);
    pool.close();
    expect(memory.takenBytes).toBe(0);
  });

  test('decodes a column that is larger than the pool outside of it, once for all requests of that moment', async () => {
    const memory = newMemory();
    const pool = new BufferPool(1000, memory);
    const made: string[] = [];
    const leases = [new ColumnLease(), new ColumnLease()];
    const [one, other] = await Promise.all(
      leases.map((lease) => pin(pool, [request('large', 1000, 0, (key) => made.push(key))], 'again', lease)),
    );
    expect(one![0]!.column).toBe(other![0]!.column);
    expect(memory.holds((one![0]!.column as Column & { kind: 'int64' }).values)).toBe(false);
    expect([made, pool.bytes]).toEqual([['large'], 0]);
    pool.close();
  });

  test('lets one request at a time decode outside the pool, and keeps its columns until the next one does', async () => {
    const pool = new BufferPool(1000, newMemory());
    const made: string[] = [];
    const wants = (key: string): ColumnRequest => request(key, 1000, 0, () => made.push(key));
    const leases = [1, 2, 3, 4].map(() => new ColumnLease());
    await pin(pool, [wants('a'), wants('b')], 'again', leases[0]!);
    const waiting = pin(pool, [wants('c')], 'again', leases[1]!);
    // A column that is already decoded is given to other requests too.
    expect(await pin(pool, [wants('b')], 'again', leases[2]!)).toMatchObject([{ cached: true }]);
    for (const lease of [leases[0]!, leases[2]!]) {
      await setImmediate();
      expect(made).toEqual(['a', 'b']);
      lease.release();
    }
    await waiting;
    leases[1]!.release();
    expect(await pin(pool, [wants('c')], 'again', leases[3]!)).toMatchObject([{ cached: true }]);
    expect(made).toEqual(['a', 'b', 'c']);
    leases[3]!.release();
    pool.close();
    expect(pool.hasDecoded('c')).toBe(false);
  });

  test('evicts columns rather than let fragmented memory grow', async () => {
    const memory = newMemory();
    const bytes = 1024 * 1024;
    const pool = new BufferPool(40 * bytes, memory);
    const keys = Array.from({ length: 39 }, (_, i) => `k${i}`);
    for (let round = 0; round < 20; round++) {
      for (const key of keys) {
        // Memory that other users take and give back leaves gaps that are too small for any column.
        const gap = memory.allocate(bytes * 0.9);
        const lease = new ColumnLease();
        await pin(pool, [request(`${round} ${key}`, (bytes - 1000) / 8)], 'again', lease);
        lease.release();
        if (gap !== null) memory.free(gap);
      }
    }
    expect(memory.buffer.byteLength).toBeLessThan(70 * bytes);
    pool.close();
  });

  test('does not cache a failed decoding, and reports the failure to every request that waits for it', async () => {
    const memory = newMemory();
    const pool = new BufferPool(1 << 20, memory);
    const failing: ColumnRequest = {
      key: 'a',
      sizeBytes: 1000,
      load: () => Promise.reject(new Error('no')),
    };
    const leases = [new ColumnLease(), new ColumnLease()];
    const both = leases.map((lease) => pin(pool, [request('b', 10), failing], 'again', lease));
    for (const result of await Promise.allSettled(both)) expect(result.status).toBe('rejected');
    for (const lease of leases) lease.release();
    const lease = new ColumnLease();
    expect(await pin(pool, [request('a', 10)], 'again', lease)).toMatchObject([{ cached: false }]);
    lease.release();
    pool.close();
    expect(memory.takenBytes).toBe(0);
  });

  describe.each(['cancelled', 'timeout'] as const)('when a decoding ends as %s', (code) => {
    /** A column whose decoding stays pending until `giveUp` is called. */
    function abandoned(key: string): { request: ColumnRequest; giveUp: () => void } {
      const { promise, reject } = withReject();
      const given: ColumnRequest = { key, sizeBytes: 1000, load: () => promise };
      return { request: given, giveUp: () => reject(new LogstrataError(code, 'its query is over')) };
    }

    test.each([
      ['in the memory', 1 << 20],
      ['on the heap', 0],
    ])('decodes again for another request that waits for the column, %s', async (_, bytesMax) => {
      const memory = newMemory();
      const pool = new BufferPool(bytesMax, memory);
      const made: string[] = [];
      const leases = [new ColumnLease(), new ColumnLease(), new ColumnLease()];
      const { request: first, giveUp } = abandoned('a');
      const begun = expect(pin(pool, [first], 'again', leases[0]!)).rejects.toMatchObject({ code });
      const others = leases.slice(1).map((lease) => {
        const again = request('a', 100, 0, (key) => made.push(key));
        return pin(pool, [again], 'again', lease);
      });
      await setImmediate();
      expect(made).toEqual([]);
      giveUp();
      await begun;
      const pinned = (await Promise.all(others)).flat();
      for (const { column } of pinned) expect(isWhole(column, 'a')).toBe(true);
      // One of the two requests decodes the column again, and the other waits for that.
      expect(pinned.map(({ cached }) => cached)).toEqual([false, true]);
      expect(made).toEqual(['a']);
      expect(leases[0]!.isEmpty).toBe(true);
      for (const lease of leases) lease.release();
      expect(pool.pinnedBytes).toBe(0);
      pool.close();
      expect(memory.takenBytes).toBe(0);
    });

    test('gives a waiting request that has ended itself its own reason, and holds no column for it', async () => {
      const pool = new BufferPool(1 << 20, newMemory());
      const abort = new AbortController();
      const leases = [new ColumnLease(), new ColumnLease({ signal: abort.signal })];
      const { request: first, giveUp } = abandoned('a');
      const both = [
        pin(pool, [first], 'again', leases[0]!),
        pin(pool, [request('b', 10), request('a', 10)], 'again', leases[1]!),
      ];
      await setImmediate();
      const own = code === 'timeout' ? 'cancelled' : 'timeout';
      abort.abort(new LogstrataError(own, 'another reason'));
      giveUp();
      expect(await Promise.allSettled(both)).toMatchObject([
        { status: 'rejected', reason: { code } },
        { status: 'rejected', reason: { code: own } },
      ]);
      expect(leases.every(({ isEmpty }) => isEmpty)).toBe(true);
      expect(pool.pinnedBytes).toBe(0);
      pool.close();
    });
  });

  test('takes a fixed share of the memory by default', () => {
    expect(poolBytesDefault()).toBeGreaterThan(0);
    expect(poolBytesDefault()).toBeLessThanOrEqual(3.5 * 2 ** 30);
  });
});
