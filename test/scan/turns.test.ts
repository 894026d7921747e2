import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { answerBytesMax, cellsOfBlock, idleScansMax, lineJobsOfAllMax } from '../../engine/core/limits.js';
import { cellsTaken } from '../../engine/scan/json-lines.js';
import { executeScan, Answer } from '../../engine/scan/answer.js';
import type { Query } from '../../engine/scan/query.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-turns-'));
const columns = new BufferPool(1 << 28);
const pools = [0, 2].map((threads) => new WorkerPool(threads));
const [inline, threaded] = pools as [WorkerPool, WorkerPool];
const memory = sharedMemory();
const rows = 44_000;
let dataset: Dataset;
let snapshot: StoredSnapshot;

beforeAll(async () => {
  dataset = numbered(rows);
  const layout = { segments: 2, stretch: 9000, rowGroupRows: 8000, hotRecords: 5000, codec: 'lz4' } as const;
  snapshot = await storeSnapshot(await openRealDirectory(folder), 'turns', dataset, layout, columns);
});
afterAll(async () => {
  for (const pool of pools) await pool.close();
  columns.close();
  rmSync(folder, { recursive: true });
});

const after = { partition: 0, ordinal: 0 };
const like = (value: string) => ({ kind: 'string', field: 2, op: 'like', value }) as const;
const asked: readonly Query[] = [
  { limit: rows, after, predicates: [] },
  { limit: rows - 3000, predicates: [] },
  { limit: 20_000, after: { partition: 482136, ordinal: 777 }, predicates: [] },
  { limit: 30_000, predicates: [like('0')] },
  { limit: 9000, after, predicates: [like('no. 1')] },
  { limit: rows, before: { partition: 482137, ordinal: 40 }, predicates: [] },
  { limit: rows, after, predicates: [], form: { format: 'csv', fields: [2, 0] } },
  { limit: 40_000, predicates: [], form: { format: 'json', fields: null } },
];

interface Reader {
  readonly query: Query;
  /** How long it pauses after a piece. */
  readonly pauseMs: number;
  /** Number of pieces that it reads before it leaves. */
  readonly pieces: number;
  /** Whether it leaves by an abort. */
  readonly aborts: boolean;
}

/** Reads an answer like a slow client; returns the received text. */
async function read({ query, pauseMs, pieces, aborts }: Reader, workers: WorkerPool): Promise<string> {
  const abort = new AbortController();
  const settings = { workers, lends: true, pieceBytes: 20_000, signal: abort.signal };
  const lines = executeScan(snapshot, query, settings).lines[Symbol.asyncIterator]();
  const copies: Buffer[] = [];
  for (let left = pieces; left > 0; left--) {
    const result = await lines.next();
    if (result.done === true) return Buffer.concat(copies).toString();
    if (pauseMs > 0) await delay(pauseMs);
    // A lent piece is read only now: it must not have been overwritten.
    copies.push(Buffer.from(result.value));
  }
  if (aborts) abort.abort(new LogstrataError('timeout', 'the time is over'));
  await lines.return!();
  return Buffer.concat(copies).toString();
}

/** Checks that answers have given back all memory. */
async function vacant(scans: number): Promise<void> {
  await expect.poll(() => snapshot.released()).toBe(scans);
  expect([cellsTaken(), columns.pinnedBytes]).toEqual([0, 0]);
}

describe('long answers that are read at the same time', () => {
  it('have the same bytes, whichever of them are paused for others, and give back their memory', async () => {
    const readers: fc.Arbitrary<Reader> = fc.record({
      query: fc.constantFrom(...asked),
      pauseMs: fc.constantFrom(0, 0, 3, 30, 150),
      pieces: fc.oneof({ weight: 3, arbitrary: fc.constant(1000) }, { weight: 1, arbitrary: fc.nat(20) }),
      aborts: fc.boolean(),
    });
    const answers = new Map(asked.map((query) => [query, answerOf(dataset, query)]));
    await fc.assert(
      fc.asyncProperty(fc.array(readers, { minLength: 12, maxLength: 20 }), async (many) => {
        // Slow readers pause for two seconds in all, at most.
        const given = many.map((reader) => ({
          ...reader,
          pieces: Math.min(reader.pieces, Math.ceil(2000 / Math.max(1, reader.pauseMs))),
        }));
        const before = snapshot.released();
        const texts = await Promise.all(given.map((reader) => read(reader, threaded)));
        for (const [i, text] of texts.entries()) {
          const whole = answers.get(given[i]!.query)!;
          expect(text === (given[i]!.pieces === 1000 ? whole : whole.slice(0, text.length))).toBe(true);
        }
        await vacant(before + given.length);
      }),
      { numRuns: caseCount(2, 60) },
    );
  }, 600_000);

  it('limit their memory if many of their readers stop, and let one through that reads', async () => {
    const before = snapshot.released();
    const query = asked[0]!;
    const takenBytes = memory.takenBytes - columns.bytes;
    const pause = vi.spyOn(Answer.prototype, 'pause');
    const stopped = await Promise.all(
      Array.from({ length: 80 }, async () => {
        const settings = { workers: threaded, lends: true };
        const lines = executeScan(snapshot, query, settings).lines[Symbol.asyncIterator]();
        const pieces: Buffer[] = [];
        let last = new Uint8Array(0);
        // After the first row group, threads write them.
        while (pieces.length < 16) {
          last = (await lines.next()).value as Uint8Array<ArrayBuffer>;
          pieces.push(Buffer.from(last));
        }
        return { lines, last, pieces };
      }),
    );
    const whole = await read({ query, pauseMs: 0, pieces: 1000, aborts: false }, threaded);
    expect(whole === answerOf(dataset, query)).toBe(true);
    expect(pause).toHaveBeenCalled();
    pause.mockRestore();
    // A piece for each, and the jobs of those whose turn it is.
    const cellsMax = stopped.length + 2 * lineJobsOfAllMax * cellsOfBlock;
    expect(memory.takenBytes - columns.bytes - takenBytes).toBeLessThan(cellsMax * answerBytesMax);
    expect(columns.pinnedBytes).toBe(0);
    for (const { lines, last, pieces } of stopped) {
      expect(pieces.at(-1)!.equals(last)).toBe(true);
      for (let next = await lines.next(); next.done !== true; next = await lines.next())
        pieces.push(Buffer.from(next.value));
      expect(Buffer.concat(pieces).toString() === whole).toBe(true);
    }
    await vacant(before + stopped.length + 1);
  });

  it('continue after a pause also without threads', async () => {
    const before = snapshot.released();
    const query = asked[3]!;
    const wanted = answerOf(dataset, query);
    const count = idleScansMax + 6;
    const stopped = Array.from({ length: count }, () =>
      executeScan(snapshot, query, { workers: inline, lends: true, pieceBytes: 30_000 }).lines[
        Symbol.asyncIterator
      ](),
    );
    const pieces: Buffer[][] = [];
    for (const lines of stopped) pieces.push([Buffer.from((await lines.next()).value as Uint8Array)]);
    for (const [i, lines] of stopped.slice(0, 8).entries())
      for (let next = await lines.next(); next.done !== true; next = await lines.next())
        pieces[i]!.push(Buffer.from(next.value));
    for (const given of pieces.slice(0, 8)) expect(Buffer.concat(given).toString() === wanted).toBe(true);
    for (const lines of stopped.slice(8)) await lines.return!();
    await vacant(before + count);
  });
});
