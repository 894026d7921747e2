import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { columnLayout, type BytesColumn } from '../../engine/columns/column.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { patternSearch } from '../../engine/patterns/pattern-search.js';
import { searchPattern } from '../../engine/patterns/search-pattern.js';
import { executeScan } from '../../engine/scan/answer.js';
import { preparePredicates } from '../../engine/scan/predicate.js';
import type { Query } from '../../engine/scan/query.js';
import { findMatches } from '../../engine/scan/row-group-task.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { JobQueue } from '../../engine/workers/job-queue.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import { numbered, schema } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-pattern-ends-'));
const columns = new BufferPool(1 << 28);
const dataset = numbered(20_000);
let snapshot: StoredSnapshot;
beforeAll(async () => {
  const layout = {
    segments: 1,
    stretch: 20_000,
    rowGroupRows: 20_000,
    hotRecords: 0,
    codec: 'lz4',
  } as const;
  snapshot = await storeSnapshot(await openRealDirectory(folder), 'ends', dataset, layout, columns);
});
afterAll(() => {
  columns.close();
  rmSync(folder, { recursive: true });
});

/** A pattern that matches no message and has too many states to keep; it is known to have them. */
const hostile = '[02468].{60}[02468]\\p{Greek}';
const query: Query = {
  limit: 10,
  predicates: [{ kind: 'string', field: 2, op: 'regex', value: hostile }],
};

function exhaust(): void {
  const search = patternSearch(searchPattern(hostile));
  let seed = 1;
  const digits = Buffer.from(
    Array.from({ length: 30_000 }, () => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return 0x30 + ((seed >>> 16) % 10);
    }),
  );
  const bits = Uint8Array.of(1);
  const texts = { offsets: Uint32Array.of(0, digits.length), bytes: digits };
  for (const step of search.narrow(texts, bits, 0, 1)) expect(step).toBeUndefined();
  expect(search.isExhausted).toBe(true);
}

/** Runs the query, and calls `onStep` after each step of its search. */
async function answer(onStep: () => void, signal?: AbortSignal, workers?: WorkerPool): Promise<string> {
  const search = patternSearch(searchPattern(hostile));
  const narrow = search.narrow.bind(search);
  search.narrow = function* (...parameters) {
    for (const step of narrow(...parameters)) {
      onStep();
      yield step;
    }
  };
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of executeScan(snapshot, query, { signal, workers }).lines) pieces.push(piece);
  } finally {
    search.narrow = narrow;
  }
  return Buffer.concat(pieces).toString();
}

it.each([undefined, new WorkerPool(0)])(
  'a scan for a hostile pattern gives up its turn between steps',
  async (workers) => {
    exhaust();
    let steps = 0;
    expect(await answer(() => steps++, undefined, workers)).toBe(answerOf(dataset, query));
    // A megabyte of messages, 64 KiB a step.
    expect(steps).toBeGreaterThan(10);
    const abort = new AbortController();
    steps = 0;
    const aborted = answer(
      () => {
        if (++steps === 3) abort.abort(new LogstrataError('timeout', 'the time is over'));
      },
      abort.signal,
      workers,
    );
    await expect(aborted).rejects.toMatchObject({ code: 'timeout' });
    expect(steps).toBe(3);
  },
);

it('a job for a hostile pattern ends once its query has ended', () => {
  exhaust();
  const memory = sharedMemory();
  const texts = dataset.records.map(({ values }) => String(values[2]));
  const bytesAt = memory.allocate(2_000_000)!;
  const offsetsAt = memory.allocate(4 * texts.length + 64)!;
  const offsets = new Uint32Array(memory.buffer, offsetsAt, texts.length + 1);
  let end = 0;
  texts.forEach((text, row) => {
    new Uint8Array(memory.buffer, bytesAt + end, text.length).set(Buffer.from(text));
    offsets[row + 1] = end += text.length;
  });
  const column: BytesColumn = {
    kind: 'bytes',
    length: texts.length,
    offsets,
    bytes: new Uint8Array(memory.buffer, bytesAt, end),
    validity: null,
  };
  const { members } = preparePredicates(query, schema).clauses[0]!;
  const job = {
    predicates: members,
    mode: 'all',
    layouts: columnLayout(column),
    memoryBytes: memory.buffer.byteLength,
    rows: texts.length,
    firstRow: 0,
    endRow: texts.length,
    bits: null,
  } as const;
  const queue = new JobQueue({ threads: 1, ownBytesMax: 0, announce: () => undefined });
  expect(findMatches({ ...job, ended: queue.ended }).result).toMatchObject({
    bits: null,
    narrowedBy: 'values',
  });
  queue.end();
  expect(() => findMatches({ ...job, ended: queue.ended })).toThrow('the query has ended');
  expect(new Int32Array(queue.ended)).toEqual(Int32Array.of(1));
  memory.free(bytesAt);
  memory.free(offsetsAt);
});
