import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { caseCount, fc, isWhole } from '../cases.js';
import { countParts } from '../../engine/scan/count.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Predicate, Query, ScanStats } from '../../engine/scan/query.js';
import { runsOfSegment } from '../../engine/store/reading/agent-state.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import type { Snapshot } from '../../engine/store/reading/snapshot.js';
import { makeSchema, type Field } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import { countsOf } from '../model/count.js';
import type { Dataset, ModelRecord, Value } from '../model/dataset.js';
import { batchFromRows } from '../model/rows.js';
import { openSegment, sealBatches } from '../parquet/segment-sample.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { storeSnapshot, type StoredLayout } from './stored-snapshot.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-anywhere-'));
const workers = new WorkerPool(2);
afterAll(async () => {
  await workers.close();
  rmSync(folder, { recursive: true });
});

const time: Field = { name: 'time', type: 'time' };
const level: Field = { name: 'level', type: 'string' };
const path: Field = { name: 'path', type: 'string', index: true };
const message: Field = { name: 'message', type: 'string', index: true };

/** 24 hexadecimal digits that occur in no other text. */
function digitsOf(text: string): string {
  return createHash('md5').update(text).digest('hex').slice(0, 24);
}

/** Texts that occur in no other record, so that gram filters distinguish row groups. */
const valueOf = {
  time: (i: number) => BigInt(1_735_689_600_000 + i),
  level: (i: number) => (i % 3 === 0 ? 'warning' : 'notice'),
  path: (i: number) => (i % 7 === 0 ? null : `/item/${digitsOf(`path ${i}`)}/edit`),
  message: (i: number) => `user ${digitsOf(`user ${i}`)} has read page ${i} of the book`,
};

/** 3000 records of these fields. */
function recordsOf(...fields: readonly Field[]): Dataset {
  const records = Array.from({ length: 3000 }, (_, i) => ({
    position: { partition: 482136, ordinal: i + 1 },
    values: fields.map(({ name }): Value => valueOf[name as keyof typeof valueOf](i)),
  }));
  return { schema: makeSchema(fields), records };
}

const layout: StoredLayout = { segments: 3, stretch: 250, rowGroupRows: 100, hotRecords: 0, codec: 'lz4' };
const rowGroups = 30;

const anywhere = (value: string, isAbsent = false): Predicate => ({
  kind: 'anywhere',
  op: 'like',
  value,
  isAbsent,
});
const like = (field: number, value: string): Predicate => ({ kind: 'string', field, op: 'like', value });
const query = (...predicates: Predicate[]): Query => ({ limit: 10_000, predicates });

async function answer(
  snapshot: Snapshot,
  asked: Query,
  threads: WorkerPool | undefined = workers,
): Promise<{ text: string; stats: ScanStats }> {
  const { lines, stats } = executeScan(snapshot, asked, { workers: threads });
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece.slice());
  return { text: Buffer.concat(pieces).toString('utf8'), stats };
}

/** The filter of a query, which finds rows without writing them. */
async function matches(snapshot: Snapshot, asked: Query, dataset: Dataset): Promise<ScanStats> {
  const form = { format: 'jsonl', fields: [] } as const;
  const { text, stats } = await answer(snapshot, { ...asked, form });
  expect(text).toBe(answerOf(dataset, { ...asked, form }));
  return stats;
}

async function stored(dataset: Dataset, name: string, columns: BufferPool): Promise<Snapshot> {
  return storeSnapshot(await openRealDirectory(folder), name, dataset, layout, columns);
}

const wanted = digitsOf('user 1234');

describe('the filters of row groups for a text in any string field', () => {
  it('rule out all row groups but the one that has it, if each string field has filters', async () => {
    const columns = new BufferPool(1 << 27);
    const dataset = recordsOf(time, path, message);
    const snapshot = await stored(dataset, 'all', columns);
    const stats = await matches(snapshot, query(anywhere(wanted)), dataset);
    expect(stats.rowGroups).toBe(rowGroups);
    expect(stats).toMatchObject({ rowGroupsPrunedByGram: rowGroups - 1, rowGroupsScanned: 1 });
    // In the remaining row group, the paths are not read either.
    expect(stats).toMatchObject({ columnsPrunedByGram: 1, columnsDecoded: 1 });
    expect(stats.gramPiecesRead).toBeLessThan(rowGroups * 4);
    const nowhere = await matches(snapshot, query(anywhere('which nobody wrote')), dataset);
    expect(nowhere).toMatchObject({ rowGroupsPrunedByGram: rowGroups, columnsDecoded: 0 });
    columns.close();
  });

  it('exclude the columns that lack the text if others have to be read', async () => {
    const columns = new BufferPool(1 << 27);
    const dataset = recordsOf(time, level, path, message);
    const snapshot = await stored(dataset, 'some', columns);
    const stats = await matches(snapshot, query(anywhere(wanted)), dataset);
    expect(stats).toMatchObject({
      rowGroupsPrunedByGram: 0,
      rowGroupsPrunedByDictionary: rowGroups - 1,
      rowGroupsScanned: 1,
      columnsPrunedByGram: 2 * rowGroups - 1,
      columnsDecoded: rowGroups + 1,
    });
    columns.close();
  });

  it('show for an excluded text which columns need not be read', async () => {
    const columns = new BufferPool(1 << 27);
    const dataset = recordsOf(time, path, message);
    const snapshot = await stored(dataset, 'absent', columns);
    const stats = await matches(snapshot, query(anywhere(wanted, true)), dataset);
    expect(stats).toMatchObject({
      rowsReturned: 2999,
      rowGroupsPrunedByGram: 0,
      rowGroupsScanned: rowGroups,
    });
    expect(stats).toMatchObject({
      columnsPrunedByGram: 2 * rowGroups - 1,
      columnsDecoded: 1,
      rowsScanned: 100,
    });
    columns.close();
  });

  it('are asked for several texts, and together with filters of one field', async () => {
    const columns = new BufferPool(1 << 27);
    const dataset = recordsOf(time, level, path, message);
    const snapshot = await stored(dataset, 'several', columns);
    const alone = await matches(snapshot, query(like(3, wanted)), dataset);
    expect(alone.rowGroupsPrunedByGram).toBe(rowGroups - 1);
    const both = await matches(snapshot, query(anywhere('HAS read page 1234'), like(3, wanted)), dataset);
    expect(both).toMatchObject({ rowGroupsPrunedByGram: rowGroups - 1, rowsReturned: 1 });
    const texts = [anywhere('read page 12'), anywhere('warning'), anywhere(wanted, true)];
    const several = await matches(snapshot, query(...texts), dataset);
    expect(several.columnsPrunedByGram).toBeGreaterThan(3 * rowGroups);
    columns.close();
  });

  it('stay in memory, and give the same verdicts', async () => {
    const columns = new BufferPool(1 << 27);
    const dataset = recordsOf(time, level, path, message);
    const snapshot = await stored(dataset, 'kept', columns);
    const [first, second] = [
      await matches(snapshot, query(anywhere(wanted)), dataset),
      await matches(snapshot, query(anywhere(wanted)), dataset),
    ];
    expect(first.gramPiecesRead).toBeGreaterThan(0);
    expect(second).toMatchObject({
      gramPiecesRead: 0,
      bytesRead: 0,
      columnsPrunedByGram: first.columnsPrunedByGram,
      rowGroupsPrunedByDictionary: first.rowGroupsPrunedByDictionary,
    });
    columns.close();
  });

  it('need no footer of a segment that is older than a field, and rule nothing out for values stored as another type', async () => {
    const status: Field = { name: 'status', type: 'int' };
    const { schema: was, records } = recordsOf(time, message);
    const values = records.map((record, i) => [...record.values, BigInt(i % 700)]);
    const asWas = makeSchema([...was.fields, status]);
    const directory = new MemoryDirectory();
    const batches = Array.from({ length: rowGroups }, (_, i) =>
      batchFromRows(asWas, values.slice(100 * i, 100 * (i + 1))),
    );
    const run = { partition: 482136, firstOrdinal: 1, firstRow: 0, rows: records.length };
    const entry = await sealBatches(directory, 'old.parquet', asWas, batches, 'lz4', [run]);
    const opened = async (
      fields: readonly Field[],
      valuesOf: (record: ModelRecord, i: number) => Value[],
    ) => {
      const schema = makeSchema(fields);
      const segment = (await openSegment(directory, entry, asWas)).rowGroups(schema);
      const snapshot = { schema, runs: runsOfSegment(entry, segment), release: () => undefined };
      const dataset = { schema, records: records.map((each, i) => ({ ...each, values: valuesOf(each, i) })) };
      return { segment, snapshot, dataset };
    };
    const added = await opened([time, message, { name: 'note', type: 'string' }], (record) => [
      ...record.values,
      null,
    ]);
    const nowhere = query(anywhere('which nobody wrote'));
    const stats = await matches(added.snapshot, nowhere, added.dataset);
    expect(stats).toMatchObject({ rowGroupsPrunedByGram: rowGroups, columnsDecoded: 0 });
    expect(added.segment.some((rowGroup) => rowGroup.opened() !== null)).toBe(false);
    const changed = await opened([time, message, { ...status, type: 'string' }], (record, i) => [
      ...record.values,
      String(i % 700),
    ]);
    const read = await matches(changed.snapshot, query(anywhere('699')), changed.dataset);
    expect(read).toMatchObject({ rowGroupsPrunedByGram: 0 });
    expect(read.rowsReturned).toBeGreaterThanOrEqual(4);
  });
});

const letters = fc.string({ unit: fc.constantFrom(...'abcdefgKſé '), maxLength: 24 });
const texts = fc.oneof(
  letters,
  fc.constantFrom('GET', 'POST', 'a long text that repeats'),
  fc.constant(null),
);
const indexes = fc.constantFrom(true, undefined, false, 'full' as const, 'full' as const);

/** Records with four strings, some of them null in all records, with filters or without. */
const drawn = fc
  .tuple(
    fc.array(fc.tuple(texts, letters, fc.option(letters)), { minLength: 20, maxLength: 90 }),
    fc.tuple(indexes, indexes, indexes, indexes),
  )
  .map(([rows, [a, b, c, d]]): Dataset => {
    const strings = ['a', 'b', 'c', 'd'].map((name, i): Field => ({
      name,
      type: 'string',
      index: [a, b, c, d][i],
    }));
    const records = rows.map((values, i): ModelRecord => ({
      position: { partition: 482136, ordinal: i + 1 },
      values: [BigInt(1_735_689_600_000 + i), ...values, null],
    }));
    return { schema: makeSchema([time, ...strings]), records };
  });

describe('a text in any string', () => {
  it('is found, and counted, in the same records as in the model', async () => {
    let leftOut = 0;
    const cases = drawn.chain((dataset) => {
      const values = dataset.records
        .flatMap((record) => record.values.slice(1))
        .filter((value) => value !== null);
      const parts = fc
        .tuple(fc.constantFrom('GET', ...values.map(String)), fc.nat(8), fc.integer({ min: 1, max: 16 }))
        .map(([value, from, length]) => [...value].slice(from, from + length).join(''));
      const sought = fc.tuple(fc.oneof(parts, letters), fc.boolean());
      return fc.tuple(
        fc.constant(dataset),
        fc.array(sought, { minLength: 1, maxLength: 3 }),
        fc.constantFrom(5, 20),
        fc.constantFrom(0, 30),
      );
    });
    await fc.assert(
      fc.asyncProperty(cases, async ([dataset, sought, rowGroupRows, hotRecords]) => {
        const columns = new BufferPool(1 << 26);
        const own: StoredLayout = { segments: 2, stretch: 12, rowGroupRows, hotRecords, codec: 'lz4' };
        const snapshot = await storeSnapshot(new MemoryDirectory(), 'drawn', dataset, own, columns);
        const asked = query(...sought.map(([value, isAbsent]) => anywhere(value, isAbsent)));
        for (const limit of [3, 1000]) {
          const { text, stats } = await answer(snapshot, { ...asked, limit }, undefined);
          expect(text).toBe(answerOf(dataset, { ...asked, limit }));
          leftOut += stats.columnsPrunedByGram + stats.rowGroupsPrunedByGram;
        }
        const counted = { predicates: asked.predicates, values: { field: 1, top: 5 } };
        const { stats: _, ...counts } = await countParts([{ snapshot, query: counted }], {});
        expect(counts).toEqual(countsOf(dataset, counted));
        columns.close();
      }),
      { numRuns: caseCount(30, 2000) },
    );
    if (isWhole) expect(leftOut).toBeGreaterThan(10);
  });
});
