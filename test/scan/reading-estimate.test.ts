import { afterAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Predicate, Query, ScanStats } from '../../engine/scan/query.js';
import type { ScanOptions } from '../../engine/scan/scan.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import type { LogstrataError } from '../../engine/core/errors.js';
import { answerOf } from '../model/answer.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

const dataset = numbered(4000);
const layout = { segments: 3, stretch: 700, rowGroupRows: 500, hotRecords: 40, codec: 'lz4' } as const;

/** Answers of a store that has nothing in memory. */
class ColdStore {
  readonly #pool = new BufferPool(1 << 26);
  #stored: Promise<StoredSnapshot> | undefined;

  /** Runs a query, and returns the answer and its cost apart from footers. */
  async ask(query: Query, options: ScanOptions = {}): Promise<{ text: string; stats: ScanStats }> {
    this.#stored ??= storeSnapshot(new MemoryDirectory(), 'cold', dataset, layout, this.#pool);
    const snapshot = await this.#stored;
    for (const segment of snapshot.segments) segment.close();
    for (const { rowGroup } of snapshot.runs) await rowGroup.open();
    const { lines, stats } = executeScan(snapshot, query, options);
    const pieces: Uint8Array[] = [];
    for await (const piece of lines) pieces.push(piece.slice());
    return { text: Buffer.concat(pieces).toString('utf8'), stats };
  }

  close(): void {
    this.#pool.close();
  }

  /** How much a query may have to read, as its refusal states. */
  async estimate(query: Query): Promise<number> {
    try {
      await this.ask(query, { bytesMax: 0 });
      return 0;
    } catch (error) {
      expect(error).toMatchObject({ code: 'invalid' });
      const said = /may have to read ([\d,]+) bytes, but the maximum for a query is 0/.exec(
        (error as LogstrataError).message,
      );
      return Number(said![1]!.replaceAll(',', ''));
    }
  }
}

const store = new ColdStore();
afterAll(() => store.close());
const firstTime = 1_735_689_600_000n;
const time = (op: 'gte' | 'lt', value: bigint): Predicate => ({ kind: 'int', field: 0, op, value });
const text = (op: 'exact' | 'like' | 'suffix', value: string): Predicate => ({
  kind: 'string',
  field: 2,
  op,
  value,
});

describe('the estimate of what a query may read', () => {
  it('is what the query reads if all records are wanted, and less for fewer fields', async () => {
    const all = { limit: 10_000, predicates: [] };
    const bytes = await store.estimate(all);
    expect((await store.ask(all)).stats.bytesRead).toBe(bytes);
    const some: Query = { ...all, form: { format: 'jsonl', fields: [1] } };
    const fewer = await store.estimate(some);
    expect((await store.ask(some)).stats.bytesRead).toBe(fewer);
    expect(fewer).toBeLessThan(bytes / 2);
  });

  it('ends with the newest records if those are enough, and at the bounds of the time', async () => {
    const all = await store.estimate({ limit: 10_000, predicates: [] });
    const newest = await store.estimate({ limit: 600, predicates: [] });
    expect(newest).toBeLessThan(all / 3);
    const early = await store.estimate({ limit: 10_000, predicates: [time('lt', firstTime + 100n)] });
    expect(early).toBeLessThan(all / 3);
    expect(await store.estimate({ limit: 10, predicates: [time('lt', 0n)] })).toBe(0);
    expect(await store.estimate({ limit: 0, predicates: [] })).toBe(0);
  });

  it('is limited: a query at the limit is answered, and one byte above it is refused before anything is read', async () => {
    const query = { limit: 300, predicates: [text('suffix', '5 DONE')] };
    const bytes = await store.estimate(query);
    expect((await store.ask(query, { bytesMax: bytes })).text).toBe(answerOf(dataset, query));
    await expect(store.ask(query, { bytesMax: bytes - 1 })).rejects.toThrow('ask for a shorter time');
  });

  it('is never less than what a query reads', async () => {
    const predicate = fc.oneof(
      fc.bigInt({ min: 0n, max: 4000n }).map((n) => time('gte', firstTime + n)),
      fc.bigInt({ min: 0n, max: 4000n }).map((n) => time('lt', firstTime + n)),
      fc.constantFrom(text('suffix', '5 DONE'), text('like', '7'), text('exact', 'nothing like it')),
    );
    const anyQuery: fc.Arbitrary<Query> = fc.record({
      limit: fc.constantFrom(1, 10, 300, 5000),
      predicates: fc.array(predicate, { maxLength: 3 }),
      form: fc.constantFrom(undefined, { format: 'jsonl' as const, fields: [1, 0] }),
      after: fc.constantFrom(undefined, dataset.records[1234]!.position),
    });
    await fc.assert(
      fc.asyncProperty(anyQuery, async (query) => {
        const bytes = await store.estimate(query);
        const { stats, text: answered } = await store.ask(query, { bytesMax: bytes });
        expect(answered).toBe(answerOf(dataset, query));
        // Filters are read in addition to the values.
        if (stats.gramPiecesRead + stats.valuePiecesRead === 0)
          expect(stats.bytesRead).toBeLessThanOrEqual(bytes);
      }),
      { numRuns: caseCount(60) },
    );
  });
});
