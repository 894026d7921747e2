import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { batchFromRows } from '../../model/rows.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { Archive } from '../../../engine/archive/archive.js';
import { checkpointKey } from '../../../engine/store/manifest/commit.js';
import type { Checkpoint } from '../../../engine/store/manifest/manifest.js';
import type { WriterLock } from '../../../engine/store/writer/writer-link.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answerOf } from '../../model/answer.js';
import type { Value } from '../../model/dataset.js';
import { queries } from '../../model/arbitraries.js';
import {
  answer,
  append,
  load,
  lockOfNoOther,
  noon,
  openOn,
  openToRead,
  schema,
  textOf,
} from './memory-archive.js';
import { ModelStore } from './model-store.js';
import { anyText } from '../../model/any-text.js';

const hour = 3_600_000;

const row: fc.Arbitrary<Value[]> = fc
  .tuple(
    fc.option(fc.integer({ min: noon - 60 * hour, max: noon + 5 * hour }).map(BigInt), { freq: 10 }),
    fc.option(
      fc.oneof(fc.constantFrom(200n, 404n, 500n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    ),
    fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value))),
    fc.option(fc.oneof(fc.constantFrom('GET /', 'POST /a', ''), anyText({ maxLength: 12 }))),
  )
  .map((values) => values as Value[]);

type Step =
  | { readonly kind: 'live' | 'append' | 'load'; readonly rows: Value[][] }
  | { readonly kind: 'compact' | 'reopen' | 'advance' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('live' as const, 'append' as const, 'load' as const),
    rows: fc.array(row, { maxLength: 40 }),
  }),
  fc.record({ kind: fc.constantFrom('compact' as const, 'reopen' as const, 'advance' as const) }),
);

describe('a store', () => {
  it('answers like the model after any series of commits, compactions and restarts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 12 }),
        fc.infiniteStream(fc.nat()),
        async (steps, seeds) => {
          const directory = new MemoryDirectory();
          const model = new ModelStore(schema);
          let now = noon;
          let archive = await openOn(directory, () => now);
          let store = await archive.agent('web', schema);
          for (const next of steps) {
            switch (next.kind) {
              case 'live':
                await append(store, next.rows, 'live');
                model.live(next.rows, now, hour);
                break;
              case 'append':
                await append(store, next.rows, 'load');
                model.load(next.rows, now);
                break;
              case 'load':
                await load(store, next.rows, 7);
                model.load(next.rows, now);
                break;
              case 'compact':
                await store.compact();
                break;
              case 'advance':
                now += 13 * hour;
                break;
              case 'reopen':
                await archive.close();
                archive = await openOn(directory, () => now);
                store = await archive.agent('web', schema);
                break;
            }
            await compare(store, model, seeds);
          }
          const report = await store.verify();
          expect(report.damages).toEqual([]);
          expect(report.records).toBe(model.records.length);
          expect((await store.stats()).records).toBe(model.records.length);
          await archive.close();
        },
      ),
      { numRuns: caseCount(30, 2000) },
    );
  });

  it('sorts a load that exceeds one sort run, whatever the order of its rows', async () => {
    const rows: Value[][] = [];
    for (let i = 0; i < 150_000; i++) {
      rows.push([BigInt(noon - ((i * 7919) % 150_000) * 1000), BigInt(i), i / 8, `line ${i}`]);
    }
    const directory = new MemoryDirectory();
    const model = new ModelStore(schema);
    model.load(rows, noon);
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    await load(store, rows, 20_000);
    expect(await answer(store)).toBe(answerOf(model, { limit: 1_000_000, predicates: [] }));
    await archive.close();
  });

  it('shows a snapshot unchanged, whatever is committed after it', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    await append(store, [[BigInt(noon), 1n, null, 'first']], 'live');
    const scan = await store.scan({ limit: 10, predicates: [] });
    await append(store, [[BigInt(noon), 2n, null, 'second']], 'live');
    await store.compact();
    const pieces: string[] = [];
    for await (const piece of scan.lines) pieces.push(Buffer.from(piece).toString());
    expect(pieces.join('')).toBe(
      '{"_cursor":"079be40000000001","time":1795176000000,"status":1,"took":null,"message":"first"}\n',
    );
    await archive.close();
  });
});

async function compare(store: AgentStore, model: ModelStore, seeds: Iterable<number>): Promise<void> {
  const all = { limit: 1_000_000, predicates: [] };
  expect(await answer(store, all)).toBe(answerOf(model, all));
  for (const seed of seeds) {
    const [query] = fc.sample(queries(model), { seed, numRuns: 1 });
    expect(await answer(store, query!)).toBe(answerOf(model, query!));
    return;
  }
}

describe('two loads of the same file at once', () => {
  const checkpoint: Checkpoint = {
    headHash: 'a'.repeat(64),
    headBytes: 10,
    offset: 10,
    contentHash: 'b'.repeat(64),
    endsInLine: false,
    path: 'access.log',
    lastTimeMs: noon,
    records: 1,
    rejected: 0,
  };
  const rows = [[BigInt(noon), 1n, null, 'only once']];
  const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 10 };

  it('store it once, and the second load is refused', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    const sessions = [await store.beginLoad(), await store.beginLoad()];
    for (const session of sessions) await session.append(batchFromRows(schema, rows), 0);
    await sessions[0]!.commit({ checkpoints: [checkpoint], counters });
    await expect(sessions[1]!.commit({ checkpoints: [checkpoint], counters })).rejects.toMatchObject({
      code: 'conflict',
      path: 'access.log',
    });
    await sessions[1]!.abort();
    expect((await answer(store)).split('\n')).toHaveLength(2);
    // A repeated load on purpose stores it again.
    const again = await store.beginLoad();
    await again.append(batchFromRows(schema, rows), 0);
    await again.commit({ checkpoints: [checkpoint], counters });
    expect((await answer(store)).split('\n')).toHaveLength(3);
    await archive.close();
  });

  it('of a file that has grown continue at its former end only once', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    const first = await store.beginLoad();
    await first.commit({ checkpoints: [checkpoint], counters });
    const continues = checkpointKey(checkpoint);
    const sessions = [await store.beginLoad(), await store.beginLoad()];
    const grown = { ...checkpoint, offset: 20, contentHash: 'c'.repeat(64), continues };
    await sessions[0]!.commit({ checkpoints: [grown], counters });
    const other = { ...grown, offset: 30, contentHash: 'd'.repeat(64) };
    await expect(sessions[1]!.commit({ checkpoints: [other], counters })).rejects.toMatchObject({
      code: 'conflict',
    });
    await sessions[1]!.abort();
    expect(await store.checkpoints()).toMatchObject([{ offset: 20 }]);
    await archive.close();
  });
});

describe('a process that only reads', () => {
  it('refuses a query whose agent gets other fields before the query has its records', async () => {
    const directory = new MemoryDirectory();
    const writer = await openOn(directory);
    await append(await writer.agent('web', schema), [[BigInt(noon), 1n, null, 'one']], 'live');
    await writer.close();
    const reader = await openToRead(directory);
    const store = await reader.agent('web', schema);
    const message = { kind: 'string', field: 3, op: 'exact', value: 'one' } as const;
    expect(await answer(store, { predicates: [message] })).toContain('"message":"one"');
    const other = makeSchema([...schema.fields].reverse());
    const { list } = directory;
    directory.list = async (path) => {
      directory.list = list;
      await reader.redefine('web', other, undefined);
      return directory.list(path);
    };
    // The predicate refers to the field by an index that now belongs to another field.
    await expect(answer(store, { predicates: [message] })).rejects.toMatchObject({ code: 'conflict' });
    expect(await answer(store, { predicates: [{ ...message, field: 0 }] })).toContain('"message":"one"');
    await reader.close();
  });
});

describe('a server that starts on a full disk', () => {
  const full = new LogstrataError('disk_full', 'there is no room for the lock');
  const begin = (directory: MemoryDirectory, role: string, lock: () => Promise<WriterLock>) => {
    const warnings: string[] = [];
    const archive = new Archive(
      directory,
      { mode: 'write', role, now: () => noon, onWarning: (message) => warnings.push(message) },
      { lock, connect: () => Promise.resolve(undefined) },
    );
    return { archive, warnings };
  };

  it('answers from stored records, warns once, and writes as soon as there is room', async () => {
    const directory = new MemoryDirectory();
    const before = await openOn(directory);
    await append(await before.agent('web', schema), [[BigInt(noon), 1n, null, 'one']], 'live');
    await before.close();
    let tries = 0;
    let isFull = true;
    const { archive, warnings } = begin(directory, 'serve', () => {
      tries++;
      return isFull ? Promise.reject(full) : Promise.resolve(lockOfNoOther());
    });
    await archive.start();
    const store = await archive.agent('web', schema);
    expect(await answer(store)).toContain('"message":"one"');
    const more = () => append(store, [[BigInt(noon), 2n, null, 'two']], 'live');
    await expect(more()).rejects.toMatchObject({ code: 'disk_full' });
    await expect.poll(() => tries).toBeGreaterThan(3);
    expect(warnings).toEqual([full.message]);
    isFull = false;
    await more();
    expect(await answer(store)).toContain('"message":"two"');
    await archive.close();
  });

  it('waits for room, whereas a load fails', async () => {
    const { archive } = begin(new MemoryDirectory(), 'load', () => Promise.reject(full));
    await expect(archive.start()).rejects.toMatchObject({ code: 'disk_full' });
  });
});

describe('the columns of a long answer', () => {
  it('stay cached while there is room, and are counted once however many pieces the answer has', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    const rows = Array.from({ length: 20_000 }, (_, i) => [
      BigInt(noon - 20_000 + i),
      200n,
      null,
      `line ${i}`,
    ]);
    await load(store, rows, 20_000);
    const read = async (limit: number) => {
      const scan = await store.scan({ limit, predicates: [] });
      await textOf(scan.lines);
      return { decoded: scan.stats.columnsDecoded, cached: scan.stats.columnsCached };
    };
    expect(await read(20_000)).toEqual({ decoded: 4, cached: 0 });
    expect(await read(20_000)).toEqual({ decoded: 0, cached: 4 });
    expect(await read(100)).toEqual({ decoded: 0, cached: 4 });
    await archive.close();
  });
});
