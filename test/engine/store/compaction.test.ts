import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isLong } from '../../cases.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { parseCursor, type Position } from '../../../engine/core/cursor.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { openArchive } from '../../../engine/index.js';
import { sharedMemory } from '../../../engine/core/shared-memory.js';
import type { Archive } from '../../../engine/archive/archive.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { CrashMode } from '../../storage-doubles/memory-file.js';
import type { Value } from '../../model/dataset.js';
import { seededRandom } from '../../model/random.js';
import { answer, append, load, noon, openCompacting, openOn, schema, textOf } from './memory-archive.js';

const dayMs = 86_400_000;

/** Records that hardly compress, of the hours before `endMs`. */
function rows(count: number, endMs: number, seed: number): Value[][] {
  const random = seededRandom(seed);
  const word = (): string => Math.floor(random() * 2 ** 32).toString(36);
  return Array.from({ length: count }, () => [
    BigInt(endMs - Math.floor(random() * 6 * 3_600_000)),
    BigInt(Math.floor(random() * 6)) * 100n,
    random(),
    `${word()} ${word()} ${word()}`,
  ]);
}

const oldDay = noon - 10 * dayMs;

/** An old day in three segments, and a recent day in four. */
async function fill(store: AgentStore, count: number): Promise<void> {
  for (let i = 0; i < 3; i++) await load(store, rows(count, oldDay, i));
  for (let i = 0; i < 4; i++) await load(store, rows(50, noon, 10 + i));
  await append(store, rows(20, noon, 20), 'live');
}

async function compactAll(archive: Archive): Promise<number> {
  let jobs = 0;
  while (await archive.compactNext()) jobs++;
  return jobs;
}

describe('compaction in the background', () => {
  it('merges small segments, gives old ones ZSTD, and changes no answer', async () => {
    const archive = await openCompacting(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    await fill(store, 1500);
    const before = await answer(store);
    expect(await store.stats()).toMatchObject({ segments: 7, bytesZstd: 0 });
    const size = (await store.stats()).bytesSealed;

    expect(await compactAll(archive)).toBe(2);
    const stats = await store.stats();
    expect(stats).toMatchObject({ segments: 2, hotRecords: 20 });
    expect(stats.bytesZstd).toBeGreaterThan(64 * 1024);
    expect(stats.bytesSealed).toBeLessThan(size);
    expect(await answer(store)).toBe(before);
    expect(await store.verify()).toMatchObject({ damages: [], records: 4720 });
    await archive.close();
  });

  it('leaves out a segment that it cannot read, reports it once, and continues with the others', async () => {
    const directory = new MemoryDirectory();
    const first = await openOn(directory);
    await fill(await first.agent('web', schema), 1500);
    const [folder] = (await directory.list('web')).filter((name) => name.startsWith('dt='));
    await first.close();
    const [name] = await directory.list(`web/${folder}`);
    const file = await directory.openWrite(`web/${folder}/${name}`);
    // Damages a byte behind the header.
    await file.write(2300, new Uint8Array(64));
    await file.close();

    const warnings: string[] = [];
    const archive = await openOn(directory, undefined, undefined, {
      background: { threads: 0 },
      onWarning: (message) => warnings.push(message),
    });
    const store = await archive.agent('web', schema);
    await compactAll(archive);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(name);
    expect(await store.stats()).toMatchObject({ segments: 3 });
    await archive.close();
  });

  it('frees all memory that it took, also after a failure', async () => {
    const taken: number[] = [];
    for (const damagedAt of [null, null, 2300, 20_000]) {
      const directory = new MemoryDirectory();
      const archive = await openCompacting(directory);
      const store = await archive.agent('web', schema);
      await fill(store, 1500);
      const [day] = (await directory.list('web')).filter((name) => name.startsWith('dt='));
      const [name] = await directory.list(`web/${day}`);
      const file = await directory.openWrite(`web/${day}/${name}`);
      if (damagedAt !== null) await file.write(damagedAt, new Uint8Array(64));
      await file.close();
      await compactAll(archive);
      expect((await store.stats()).segments).toBe(damagedAt === null ? 2 : 3);
      await archive.close();
      taken.push(sharedMemory()!.takenBytes);
    }
    // Only the working memory of the kernels is left.
    expect(new Set(taken.slice(1))).toEqual(new Set([taken[0]]));
  });

  it('lets a stream that began before it finish, and lets a walk over pages return each record once', async () => {
    const archive = await openCompacting(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    await fill(store, 1500);
    const before = await answer(store);
    const expected = before.trimEnd().split('\n');

    const stream = (await store.scan({ limit: 1_000_000, predicates: [] }, { pieceBytes: 4096 })).lines;
    const pieces = stream[Symbol.asyncIterator]();
    const first = await pieces.next();
    const forward: string[] = [];
    const backward: string[] = [];
    let after: Position = { partition: 0, ordinal: 0 };
    let before2: Position | undefined;
    for (let page = 0; ; page++) {
      const lines = (await answer(store, { after, limit: 500 })).split('\n').slice(0, -1);
      const older = (await answer(store, { before: before2, limit: 500 })).split('\n').slice(0, -1);
      forward.push(...lines);
      backward.unshift(...older);
      if (lines.length + older.length === 0) break;
      after = parseCursor(lines.at(-1)!.slice(12, 28))!;
      before2 = parseCursor(older[0]!.slice(12, 28))!;
      if (page % 2 === 1) await archive.compactNext();
      if (page === 6) await load(store, rows(50, oldDay - 9 * 3_600_000, 99));
    }
    expect(await compactAll(archive)).toBeLessThanOrEqual(2);
    const rest = await textOf({ [Symbol.asyncIterator]: () => pieces });
    expect(Buffer.from(first.value as Uint8Array).toString() + rest).toBe(before);
    expect(backward.filter((line) => expected.includes(line))).toEqual(expected);
    expect(new Set(backward).size).toBe(backward.length);
    expect(forward.filter((line) => expected.includes(line))).toEqual(expected);
    await archive.close();
  });

  it('in a thread of its own does the same to a folder on the disk, and stops with the archive', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-compaction-'));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    const options = { mode: 'write', role: 'serve', now: () => noon, background: { threads: 1 } } as const;
    const archive = (await openArchive(folder, options)) as Archive;
    const store = await archive.agent('web', schema);
    await fill(store, 1500);
    const before = await answer(store);
    // The archive may already have compacted in the background.
    await compactAll(archive);
    expect((await store.stats()).bytesZstd).toBeGreaterThan(0);
    expect(await answer(store)).toBe(before);
    for (let i = 0; i < 3; i++) await load(store, rows(3000, oldDay - dayMs, 50 + i));
    const more = await answer(store);
    const stopped = archive.compactNext();
    await archive.close();
    await stopped;

    const again = await openArchive(folder, { mode: 'read', role: 'query' });
    const left = await again.agent('web', schema);
    expect(await answer(left)).toBe(more);
    expect(await left.verify()).toMatchObject({ damages: [] });
    await again.close();
  });
});

describe('a crash while the archive compacts in the background', () => {
  const modes: CrashMode[] = ['lost', 'kept', { seed: 1 }, { seed: 2 }];

  it('at any step changes no answer and leaves no file behind', async () => {
    const whole = new MemoryDirectory();
    const made = await openOn(whole);
    await fill(await made.agent('web', schema), 700);
    const expected = await answer(await made.agent('web', schema));
    await made.close();

    let steps = 0;
    for (let step = 1; step === 1 || step <= steps; step += isLong ? 1 : 2) {
      const directory = whole.crash('kept', { crashAtOperation: step, seed: step });
      const archive = await openCompacting(directory);
      try {
        await archive.agent('web', schema);
        await compactAll(archive);
        await archive.close();
      } catch (error) {
        if (!(error instanceof LogstrataError)) throw error;
      }
      if (step === 1) steps = await countSteps(whole.crash('kept'));
      const left = await openOn(directory.crash(modes[step % modes.length]!));
      const store = await left.agent('web', schema);
      expect(await answer(store)).toBe(expected);
      expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
      await left.close();
    }
    expect(steps).toBeGreaterThan(20);
  });
});

async function countSteps(directory: MemoryDirectory): Promise<number> {
  const archive = await openCompacting(directory);
  await archive.agent('web', schema);
  expect(await compactAll(archive)).toBe(2);
  await archive.close();
  return directory.mutations;
}
