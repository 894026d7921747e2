import { afterAll, describe, expect, it } from 'vitest';
import { isLong } from '../../cases.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { leasedMemoryBytes } from '../../../engine/core/memory-lease.js';
import { workerRowsMin } from '../../../engine/core/limits.js';
import { readNewestManifest } from '../../../engine/store/manifest/manifest-file.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import type { Value } from '../../model/dataset.js';
import { seededRandom } from '../../model/random.js';
import { answer, append, load, noon, openOn, schema } from './memory-archive.js';

const day = 86_400_000;
const pools = [0, 1, 8].map((threads) => new WorkerPool(threads));
afterAll(async () => {
  for (const pool of pools) await pool.close();
});

/** Rows of three days in any order, with enough rows in each day for a thread. */
function rows(count: number, seed: number): Value[][] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, i) => [
    i % 97 === 0 ? null : BigInt(noon - Math.floor(random() * 3 * day)),
    random() < 0.1 ? null : BigInt(Math.floor(random() * 5) * 100),
    random() < 0.5 ? null : random(),
    i % 31 === 0 ? null : `${i % 7 === 0 ? 'É' : 'e'} ${Math.floor(random() * 2 ** 32).toString(16)} end`,
  ]);
}

/** The live segments in the order of the manifest, without the random unit in their names. */
async function contents(directory: MemoryDirectory): Promise<string[]> {
  const manifest = await readNewestManifest(directory, 'web');
  const found: string[] = [];
  for (const { file: name, bytes } of manifest!.segments) {
    const file = await directory.openRead(`web/${name}`);
    found.push(Buffer.from(await file.read(0, bytes)).toString('base64'));
    await file.close();
  }
  return found;
}

describe('segments', () => {
  it('have the same bytes with 0, 1 and 8 threads, whether loaded, sealed or compacted', async () => {
    const loaded = rows(6 * workerRowsMin, 1);
    const live = rows(6 * workerRowsMin, 2);
    const lives: string[][][] = [];
    for (const workers of pools) {
      const directory = new MemoryDirectory();
      const archive = await openOn(directory, () => noon, workers);
      const store = await archive.agent('web', schema);
      await load(store, loaded, 5000);
      const stages = [await contents(directory)];
      await append(store, live, 'load');
      await store.compact();
      stages.push(await contents(directory));
      await store.compact({ codec: 'zstd' });
      stages.push(await contents(directory));
      stages.push([await answer(store)]);
      await archive.close();
      // The memory that was lent to threads is given back.
      expect(leasedMemoryBytes()).toBe(0);
      lives.push(stages);
    }
    expect(lives[0]![0]!.length).toBeGreaterThanOrEqual(3);
    expect(lives[1]).toEqual(lives[0]);
    expect(lives[2]).toEqual(lives[0]);
  });
});

describe('a load on threads', () => {
  const records = rows(4 * workerRowsMin, 3);

  it('that fails at any step because of the disk leaves the former records, and the archive accepts the next load', async () => {
    const live = async (directory: MemoryDirectory): Promise<void> => {
      const archive = await openOn(directory, () => noon, pools[1]!);
      await load(await archive.agent('web', schema), records, 5000);
      await archive.close();
    };
    const whole = new MemoryDirectory();
    await live(whole);
    const expected = await answer(await (await openOn(whole)).agent('web', schema));
    const steps = whole.mutations;
    for (let step = 1; step <= steps; step += isLong ? 1 : 6) {
      const directory = new MemoryDirectory({ failAtOperation: step, seed: step });
      const failure = await live(directory).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failure !== undefined) expect(failure).toBeInstanceOf(LogstrataError);
      directory.setFaults({});
      const left = directory.crash('kept');
      const archive = await openOn(left);
      const store = await archive.agent('web', schema);
      expect(failure === undefined ? [expected] : ['', expected]).toContain(await answer(store));
      expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
      await archive.close();
    }
  });

  it('whose threads end halfway fails as a whole and leaves no file', async () => {
    const directory = new MemoryDirectory();
    const workers = new WorkerPool(2);
    const archive = await openOn(directory, () => noon, workers);
    const store = await archive.agent('web', schema);
    const loading = load(store, records, 5000);
    const failure = expect(loading).rejects.toMatchObject({ code: 'closed' });
    await workers.close();
    await failure;
    expect(await answer(store)).toBe('');
    expect(await directory.list('web/building').catch(() => [])).toEqual([]);
    expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [] });
    await archive.close();
  });
});
