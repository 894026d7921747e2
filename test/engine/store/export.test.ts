import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { queryDuckDb } from '../../oracle/duckdb.js';
import { runsOfFileMax } from '../../../engine/core/limits.js';
import { exportParquet } from '../../../engine/archive/parquet-export.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { openRealDirectory } from '../../../engine/store/disk/real-directory.js';
import type { Query } from '../../../engine/scan/query.js';
import { JobQueue } from '../../../engine/workers/job-queue.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import { answer, append, load, noon, openOn, schema } from './memory-archive.js';

function outputFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-export-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const nameOf = (index: number): string => `part-${index}.parquet`;
const everything: Query = { limit: Number.MAX_SAFE_INTEGER, predicates: [] };

describe('exportParquet', () => {
  it('writes the rows that the same query returns, sealed and hot, under the same positions', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('a', schema);
    const row = (i: number) => [
      BigInt(noon - 7_200_000 + (i % 97) * 60_000),
      BigInt(i),
      i / 4,
      `message ${i % 5}`,
    ];
    // Two loads of the same hours plus hot rows, so that runs of several row groups alternate.
    await load(
      store,
      Array.from({ length: 500 }, (_, i) => row(i)),
    );
    await load(
      store,
      Array.from({ length: 500 }, (_, i) => row(i + 500)),
    );
    await append(
      store,
      Array.from({ length: 100 }, (_, i) => row(i + 1000)),
      'load',
    );
    const lines = (await answer(store)).trimEnd().split('\n');
    const cursors = lines.map((line) => (JSON.parse(line) as { _cursor: string })._cursor);
    const position = fc.constantFrom(...cursors).map((cursor) => ({
      partition: parseInt(cursor.slice(0, 6), 16),
      ordinal: parseInt(cursor.slice(6), 16),
    }));
    const queries = fc.record({
      limit: fc.constantFrom(1, 17, 300, 5000),
      after: fc.option(position, { nil: undefined }),
      before: fc.option(position, { nil: undefined }),
      predicates: fc.constantFrom<Query['predicates']>(
        [],
        [{ kind: 'int', field: 1, op: 'lt', value: 700n }],
        [{ kind: 'string', field: 3, op: 'suffix', value: '3' }],
        [
          {
            kind: 'any',
            members: [
              { kind: 'int', field: 1, op: 'lt', value: 100n },
              { kind: 'string', field: 3, op: 'suffix', value: '3' },
            ],
          },
        ],
      ),
    });
    await fc.assert(
      fc.asyncProperty(queries, async (query) => {
        const folder = outputFolder();
        const expected = (await answer(store, query)).split('\n').filter((line) => line !== '');
        const directory = await openRealDirectory(folder, { create: false });
        const result = await exportParquet(store, query, directory, nameOf, { codec: 'zstd' });
        expect(result.records).toBe(expected.length);
        expect(readdirSync(folder)).toEqual(expected.length === 0 ? [] : ['part-0.parquet']);
        if (expected.length === 0) return;
        const rows = await queryDuckDb(
          `SELECT printf('%016x', _cursor) AS _cursor, epoch_ms("time")::VARCHAR AS "time", status::VARCHAR AS status,
                  took, message FROM '${folder}/part-0.parquet'`,
        );
        const wanted = expected.map((line) => JSON.parse(line) as Record<string, string | number>);
        expect(rows).toEqual(
          wanted.map((record) => ({
            ...record,
            time: String(record['time']),
            status: String(record['status']),
          })),
        );
      }),
      { numRuns: caseCount(25) },
    );
  });

  it('reads on threads if there are any, and writes the same bytes with 0, 1 and 8 of them', async () => {
    const read = vi.spyOn(JobQueue.prototype, 'run');
    const written: Buffer[] = [];
    for (const threads of [0, 1, 8]) {
      const workers = new WorkerPool(threads);
      onTestFinished(() => workers.close());
      const archive = await openOn(await openRealDirectory(outputFolder()), () => noon, workers);
      const store = await archive.agent('a', schema);
      for (let unit = 0; unit < 3; unit++) {
        const rows = Array.from({ length: 2000 }, (_, i) => [
          BigInt(noon - 7_200_000 + i * 1000),
          BigInt(i % 700),
          i / 4,
          `message ${unit} of ${i}`,
        ]);
        await load(store, rows);
      }
      const folder = outputFolder();
      const directory = await openRealDirectory(folder, { create: false });
      const query: Query = {
        limit: 5000,
        predicates: [{ kind: 'string', field: 3, op: 'suffix', value: '7' }],
      };
      read.mockClear();
      const result = await exportParquet(store, query, directory, nameOf, { codec: 'lz4' });
      expect(result).toMatchObject({ records: 600, files: ['part-0.parquet'] });
      // Each of three segments decodes one row group: the searched column, and the other columns of the matching rows.
      const chunks = read.mock.calls.filter(([task]) => task.module.pathname.includes('chunk-tasks'));
      expect(chunks.length).toBe(threads === 0 ? 0 : 3 * schema.fields.length);
      written.push(readFileSync(join(folder, 'part-0.parquet')));
      await archive.close();
    }
    read.mockRestore();
    expect(written.map((bytes) => Buffer.compare(bytes, written[0]!))).toEqual([0, 0, 0]);
  });

  it('begins another file before scattered rows make the footer too large', async () => {
    const folder = outputFolder();
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('a', makeSchema([{ name: 'odd', type: 'int' }]));
    const rows = 2 * runsOfFileMax + 2000;
    await load(
      store,
      Array.from({ length: rows }, (_, i) => [BigInt(i & 1)]),
      65_536,
    );
    const directory = await openRealDirectory(folder, { create: false });
    const query: Query = { ...everything, predicates: [{ kind: 'int', field: 0, op: 'eq', value: 1n }] };
    const result = await exportParquet(store, query, directory, nameOf, { codec: 'lz4' });
    expect(result).toMatchObject({ records: rows / 2, files: ['part-0.parquet', 'part-1.parquet'] });
    const [sums] = await queryDuckDb(
      `SELECT count(*) AS records, sum(odd)::BIGINT AS ones, count(DISTINCT _cursor) AS cursors FROM '${folder}/*.parquet'`,
    );
    expect(sums).toEqual({ records: BigInt(rows / 2), ones: BigInt(rows / 2), cursors: BigInt(rows / 2) });
  });

  it('leaves no file when it is stopped', async () => {
    const folder = outputFolder();
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('a', schema);
    await load(
      store,
      Array.from({ length: 100 }, (_, i) => [BigInt(noon), BigInt(i), null, 'x']),
    );
    const directory = await openRealDirectory(folder, { create: false });
    const stopped = exportParquet(store, everything, directory, nameOf, {
      codec: 'lz4',
      signal: AbortSignal.abort(),
    });
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' });
    expect(readdirSync(folder)).toEqual([]);
  });
});
