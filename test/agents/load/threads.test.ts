import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { LoadSummary } from '../../../agents/load/load-report.js';
import { leasedMemoryBytes } from '../../../engine/core/memory-lease.js';
import { openArchive } from '../../../engine/index.js';
import { lineBytesMax, workerFileBytesMin } from '../../../engine/core/limits.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import { definitionOf, lineOf, load, nowMs, recordsOf } from './archive.js';
import { closeAtEnd, temporaryFolder } from './temporary.js';

const pools = [0, 1, 8].map((threads) => new WorkerPool(threads));
afterAll(async () => {
  for (const pool of pools) await pool.close();
});

/** Lines of two days in no order, some of which are rejected or lose a value, the last one without a line end. */
function mixedLines(): Buffer {
  const pieces: Buffer[] = [];
  for (let i = 0; i < 30_000; i++) {
    const n = (i * 7919) % 120_000;
    if (i % 5000 === 17) pieces.push(Buffer.from('nothing\n'));
    if (i % 7000 === 23) pieces.push(Buffer.from('2026-11-20T10:00:00Z x bytes \xff\xfe\n', 'latin1'));
    if (i === 15_000) pieces.push(Buffer.alloc(lineBytesMax + 1000, 'x'), Buffer.from('\n'));
    pieces.push(Buffer.from(lineOf(n)));
  }
  return Buffer.concat([...pieces, Buffer.from(lineOf(120_000).trimEnd())]);
}

async function filesUnder(folder: string, kind: string): Promise<string[]> {
  const names = await readdir(join(folder, 'app'), { recursive: true });
  const found: string[] = [];
  for (const name of names.filter((one) => one.startsWith(kind) && one.includes('.'))) {
    found.push((await readFile(join(folder, 'app', name))).toString('base64'));
  }
  return found.sort();
}

interface Stored {
  readonly summaries: readonly LoadSummary[];
  readonly segments: readonly string[];
  readonly rejected: readonly string[];
}

async function stored(workers: WorkerPool, input: string, grown: Buffer): Promise<Stored> {
  const folder = await temporaryFolder();
  const archive = await openArchive(folder, { mode: 'write', role: 'load', now: () => nowMs, workers });
  closeAtEnd(() => archive.close());
  const store = await archive.agent('app', definitionOf().schema);
  const whole = mixedLines();
  await writeFile(input, whole);
  const summaries = [await load(store, [input], { workers })];
  // The last line was stored as a complete one, so the text after it is not a line of its own.
  await writeFile(input, Buffer.concat([whole, grown]));
  summaries.push(await load(store, [input], { workers }));
  return {
    summaries,
    segments: await filesUnder(folder, 'dt='),
    rejected: await filesUnder(folder, 'rejected'),
  };
}

describe('a file that is decoded on threads', () => {
  it('is stored as the same bytes with 0, 1 and 8 of them, including rejected lines and counts', async () => {
    const input = join(await temporaryFolder(), 'app_web.log');
    const grown = Buffer.concat([Buffer.from(' and its rest\n'), mixedLines()]);
    expect(mixedLines().length).toBeGreaterThan(workerFileBytesMin);
    const [none, ...others] = [
      await stored(pools[0]!, input, grown),
      await stored(pools[1]!, input, grown),
      await stored(pools[2]!, input, grown),
    ];
    const counts = ({ summaries }: Stored): unknown =>
      summaries.map(({ records, rejected, unreadableValues, replacedBytes, files }) => ({
        records,
        rejected,
        unreadableValues,
        replacedBytes,
        contentBytes: files[0]!.contentBytes,
        continuedAt: files[0]!.continuedAt,
      }));
    expect(none.summaries[0]).toMatchObject({ records: 30_006, rejected: 7 });
    expect(none.summaries[1]).toMatchObject({ records: 30_006, rejected: 8 });
    expect(none.segments.length).toBeGreaterThan(2);
    for (const other of others) {
      expect(counts(other)).toEqual(counts(none));
      expect(other.segments).toEqual(none.segments);
      expect(other.rejected).toEqual(none.rejected);
    }
  });

  it('leaves nothing after it is cancelled halfway, and is loaded completely the next time', async () => {
    const folder = await temporaryFolder();
    const input = join(await temporaryFolder(), 'app_web.log');
    await writeFile(input, mixedLines());
    const workers = pools[2]!;
    const archive = await openArchive(folder, { mode: 'write', role: 'load', now: () => nowMs, workers });
    closeAtEnd(() => archive.close());
    const store = await archive.agent('app', definitionOf().schema);
    const stop = new AbortController();
    const summary = await load(store, [input], {
      workers,
      signal: stop.signal,
      onEvent: (event) => {
        if (event.kind === 'progress' && event.phase === 'reading') stop.abort();
      },
    });
    expect(summary).toMatchObject({ records: 0, stopped: { code: 'cancelled' }, exitCode: 1 });
    expect(await recordsOf(store)).toEqual([]);
    expect(await readdir(join(folder, 'app', 'building')).catch(() => [])).toEqual([]);
    expect(await load(store, [input], { workers })).toMatchObject({ records: 30_006, exitCode: 0 });
    expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
  });

  it('is not stored if the threads end, and the failure states the reason', async () => {
    const folder = await temporaryFolder();
    const input = join(await temporaryFolder(), 'app_web.log');
    await writeFile(input, mixedLines());
    const workers = new WorkerPool(1);
    await workers.close();
    const archive = await openArchive(folder, { mode: 'write', role: 'load', now: () => nowMs });
    closeAtEnd(() => archive.close());
    const store = await archive.agent('app', definitionOf().schema);
    expect(await load(store, [input], { workers })).toMatchObject({
      records: 0,
      stopped: { code: 'closed' },
      exitCode: 1,
    });
    expect(await recordsOf(store)).toEqual([]);
  });

  it('is shared with them in leased memory, which is given back after the load and after its cancellation', async () => {
    const folder = await temporaryFolder();
    const input = join(folder, 'app_web.log');
    await writeFile(input, Buffer.concat([mixedLines(), Buffer.from('\n'), mixedLines()]));
    const workers = pools[1]!;
    const archive = await openArchive(join(folder, 'data'), {
      mode: 'write',
      role: 'load',
      now: () => nowMs,
      workers,
    });
    closeAtEnd(() => archive.close());
    const store = await archive.agent('app', definitionOf().schema);
    for (const isStopped of [true, false]) {
      const stop = new AbortController();
      let mostBytes = 0;
      const summary = await load(store, [input], {
        workers,
        signal: stop.signal,
        onEvent: (event) => {
          mostBytes = Math.max(mostBytes, leasedMemoryBytes());
          if (isStopped && event.kind === 'progress' && event.records > 0) stop.abort();
        },
      });
      expect(summary.exitCode).toBe(isStopped ? 1 : 0);
      expect(mostBytes).toBeGreaterThan(workerFileBytesMin);
      expect(leasedMemoryBytes()).toBe(0);
    }
  });
});

it('a load is stopped between slow lines, also of a small file', async () => {
  const folder = await temporaryFolder();
  const archive = await openArchive(join(folder, 'data'), {
    mode: 'write',
    role: 'load',
    now: () => nowMs,
    workers: pools[1]!,
  });
  closeAtEnd(() => archive.close());
  const store = await archive.agent('app', definitionOf().schema);
  const path = join(folder, 'app_web.log');
  // Each of these lines takes about a second, and a thread gets a megabyte of them at a time.
  const large = definitionOf({ regex: `^(?P<text>${'.{0,1000}'.repeat(20)})$` });
  await writeFile(path, `a\n${`${'b'.repeat(2500)}\n`.repeat(600)}`);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 1000);
  const summary = await load(store, [path], {
    definition: large,
    workers: pools[1]!,
    signal: controller.signal,
  });
  expect(summary).toMatchObject({
    loaded: 0,
    files: [{ outcome: 'not_stored' }],
    stopped: { code: 'cancelled' },
  });
  // The thread does other work afterwards.
  await writeFile(path, lineOf(1));
  expect(await load(store, [path], { workers: pools[1]! })).toMatchObject({ records: 1 });
});
