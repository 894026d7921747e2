import { expect, it } from 'vitest';
import { caseCount, isWhole, seed } from '../../cases.js';
import { isLogstrataError } from '../../../engine/core/errors.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { CrashMode } from '../../storage-doubles/memory-file.js';
import { between, seededRandom } from '../../model/random.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, backupFolderOn, load, noon, openOn, openToRead, schema } from './memory-archive.js';
import { ShiftingStore, type Disturbances } from './shifting-store.js';

const hour = 3_600_000;

function rows(from: number, count: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - 30 * hour + (from + i) * 600_000),
    BigInt(from + i),
    null,
    `line ${from + i}`,
  ]);
}

/** All records of a copy, as read by a process without a writer. */
async function answerOf(copy: MemoryDirectory): Promise<string[]> {
  const archive = await openToRead(copy);
  try {
    return (await answer(await archive.agent('web'))).split('\n').slice(0, -1);
  } finally {
    await archive.close();
  }
}

/** The records of a copy that must be undamaged; also returns the files that belong to no record. */
async function restored(copy: MemoryDirectory): Promise<{ lines: string[]; unnamed: readonly string[] }> {
  const archive = await openToRead(copy);
  try {
    const { damages, unnamedFiles } = await archive.verify('web');
    expect(damages).toEqual([]);
    return { lines: await answerOf(copy), unnamed: unnamedFiles };
  } finally {
    await archive.close();
  }
}

it('a copy taken at random moments can be restored, and holds exactly the records of one committed state', async () => {
  const random = seededRandom(seed);
  const done: Disturbances = { appends: 0, loads: 0, compactions: 0, retired: 0, restarts: 0, crashes: 0 };
  const store = new ShiftingStore(random, done);
  await store.disturb(10);
  let copy = new MemoryDirectory();
  try {
    for (let moment = 1; moment <= caseCount(50, 1000); moment++) {
      const before = await store.ask({});
      await Promise.all([store.copyTo(copy), store.disturb(between(random, 1, 6))]);
      const after = new Set(await store.ask({}));
      const { lines: found, unnamed } = await restored(copy);
      expect(unnamed).toEqual([]);
      const message = `seed ${seed}, moment ${moment}`;
      expect(new Set(found).size, message).toBe(found.length);
      expect(
        before.filter((line) => after.has(line) && !found.includes(line)),
        message,
      ).toEqual([]);
      const known = new Set([...before, ...after]);
      // Only files that were written and retired between the two states are in neither.
      if (done.retired === 0)
        expect(
          found.filter((line) => !known.has(line)),
          message,
        ).toEqual([]);
      await store.copyTo(copy);
      copy = copy.crash('lost');
      // A crash may bring removed names back, and the next backup removes them again.
      expect((await restored(copy)).lines, message).toEqual(await store.ask({}));
    }
  } finally {
    await store.close();
  }
  if (isWhole) expect(Math.min(...Object.values(done))).toBeGreaterThan(0);
});

it('a crash at any step of an update of a copy leaves the earlier state or the new one', async () => {
  const source = new MemoryDirectory();
  const archive = await openOn(source);
  const store = await archive.agent('web', schema);
  await load(store, rows(0, 40));
  await append(store, rows(40, 5), 'live');
  const first = new MemoryDirectory();
  await store.backup(backupFolderOn(first));
  const before = (await answer(store)).split('\n').slice(0, -1);
  await append(store, rows(45, 5), 'live');
  await load(store, rows(50, 30));
  await store.compact();
  await append(store, rows(80, 5), 'live');
  const after = (await answer(store)).split('\n').slice(0, -1);

  const outcomes = { before: 0, after: 0 };
  for (let step = 1; ; step++) {
    const modes: CrashMode[] = ['lost', 'kept', { seed: step }];
    for (const mode of modes) {
      // The disk has all of the first copy, since a backup ends only when it is durable.
      const copy = first.crash('lost', { crashAtOperation: step });
      const ended = await store.backup(backupFolderOn(copy)).then(
        () => true,
        (error: unknown) => {
          if (!isLogstrataError(error)) throw error;
          return false;
        },
      );
      if (ended) {
        expect(step).toBeGreaterThan(10);
        expect(Math.min(outcomes.before, outcomes.after)).toBeGreaterThan(0);
        await archive.close();
        return;
      }
      const left = copy.crash(mode);
      const found = await answerOf(left);
      expect([before, after]).toContainEqual(found);
      outcomes[found.length === before.length ? 'before' : 'after']++;
      await store.backup(backupFolderOn(left));
      expect(await restored(left)).toEqual({ lines: after, unnamed: [] });
    }
  }
});
