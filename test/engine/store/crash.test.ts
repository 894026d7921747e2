import { describe, expect, it } from 'vitest';
import { isLong, isWhole } from '../../cases.js';
import { batchFromRows } from '../../model/rows.js';
import { formatCursor } from '../../../engine/core/cursor.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { CrashMode } from '../../storage-doubles/memory-file.js';
import { answerOf } from '../../model/answer.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, load, noExtras, noon, openOn, openToRead, schema } from './memory-archive.js';
import { ModelStore } from './model-store.js';

const everything = { limit: 1_000_000, predicates: [] };
const hour = 3_600_000;

function rows(from: number, count: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - 30 * hour + (from + i) * 600_000),
    BigInt(from + i),
    null,
    `line ${from + i}`,
  ]);
}

type Store = Awaited<ReturnType<Awaited<ReturnType<typeof openOn>>['agent']>>;

/** Steps in the life of a store, each of which commits as a whole. `apply` does the same to the model. */
const life: readonly {
  readonly run: (store: Store) => Promise<unknown>;
  readonly apply: (model: ModelStore) => void;
}[] = [
  { run: (store) => append(store, rows(0, 5), 'live'), apply: (model) => model.live(rows(0, 5), noon, hour) },
  {
    run: (store) => append(store, rows(5, 60), 'live'),
    apply: (model) => model.live(rows(5, 60), noon, hour),
  },
  { run: (store) => load(store, rows(20, 90), 25), apply: (model) => model.load(rows(20, 90), noon) },
  { run: (store) => store.compact(), apply: () => {} },
  { run: (store) => append(store, rows(110, 5), 'load'), apply: (model) => model.load(rows(110, 5), noon) },
  { run: (store) => load(store, rows(60, 30)), apply: (model) => model.load(rows(60, 30), noon) },
  { run: (store) => store.compact(), apply: () => {} },
  {
    run: (store) => append(store, rows(150, 5), 'live'),
    apply: (model) => model.live(rows(150, 5), noon, hour),
  },
  {
    run: (store) => store.remove({ kind: 'times', sinceMs: noon - 29 * hour, untilMs: noon - 20 * hour }),
    apply: (model) =>
      model.remove(({ values }) => {
        const time = Number(values[0]);
        return time >= noon - 29 * hour && time < noon - 20 * hour;
      }),
  },
];

interface End {
  readonly directory: MemoryDirectory;
  /** The rows that must be there, and those of the step under way, which may be there too. */
  readonly done: ModelStore;
  readonly doing: ModelStore;
  readonly finished: boolean;
}

async function live(directory: MemoryDirectory): Promise<End> {
  const done = new ModelStore(schema);
  let doing = done;
  let released = false;
  const archive = await openOn(directory, undefined, undefined, {}, () => (released = true));
  try {
    const store = await archive.agent('web', schema);
    for (const step of life) {
      doing = done.copy();
      step.apply(doing);
      await step.run(store);
      step.apply(done);
    }
    await archive.close();
    return { directory, done, doing, finished: true };
  } catch (error) {
    if (!(error instanceof LogstrataError)) throw error;
    if (directory.crashed) {
      // The process ends too: none of its work may be waited for, and the next process gets the lock.
      await archive.close().catch(() => undefined);
      expect(released).toBe(true);
    }
    return { directory, done, doing, finished: false };
  }
}

/** Opens the store after the crash, compares it with the model, commits once more and compares again. */
async function survive(directory: MemoryDirectory, end: End): Promise<void> {
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  const found = await answer(store);
  const before = answerOf(end.done, everything);
  const after = answerOf(end.doing, everything);
  expect([before, after]).toContain(found);
  const model = found === before ? end.done.copy() : end.doing.copy();
  await load(store, rows(200, 20));
  model.load(rows(200, 20), noon);
  await append(store, rows(220, 3), 'live');
  model.live(rows(220, 3), noon, hour);
  expect(await answer(store)).toBe(answerOf(model, everything));
  expect(await store.verify()).toMatchObject({
    damages: [],
    unnamedFiles: [],
    records: model.records.length,
  });
  // A file that was being removed is gone, or has its name back and counts as a live file.
  for (const folder of (await directory.list('web')).filter((name) => name.startsWith('dt=')))
    expect((await directory.list(`web/${folder}`)).filter((name) => name.endsWith('.left'))).toEqual([]);
  await archive.close();
}

const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);

function succeeds(step: Promise<unknown>): Promise<boolean> {
  return step.then(
    () => true,
    () => false,
  );
}

/** Commits some rows and a rejected line. */
async function appendRejecting(store: Store, index: number): Promise<void> {
  const rejected = [{ reason: 'no match', file: 'a.log', offset: index, line: Buffer.from('what is this') }];
  await store.append(batchFromRows(schema, rows(index * 5, 5)), { ...noExtras, rejected }, 'live');
}

describe('a crash', () => {
  const modes: CrashMode[] = ['lost', 'kept', { seed: 1 }, { seed: 2 }];

  it('at any step of append, load, seal, compaction and manifest leaves the state before or after that step', async () => {
    const whole = await live(new MemoryDirectory());
    expect(whole.finished).toBe(true);
    const steps = whole.directory.mutations;
    expect(steps).toBeGreaterThan(100);
    const stride = isLong ? 1 : isWhole ? 3 : 7;
    for (let step = 1; step <= steps; step += stride) {
      const end = await live(new MemoryDirectory({ crashAtOperation: step, seed: step }));
      expect(end.finished).toBe(false);
      const mode = modes[step % modes.length]!;
      for (const how of isLong ? modes : [mode]) await survive(end.directory.crash(how), end);
    }
  });

  it('of a second process right after the first loses nothing', async () => {
    const whole = await live(new MemoryDirectory());
    const left = whole.directory.crash('lost');
    const steps = await countSteps(whole.directory.crash('lost'));
    for (let step = 1; step <= steps; step += isLong ? 1 : isWhole ? 4 : 9) {
      const again = whole.directory.crash('lost', { crashAtOperation: step });
      await openOn(again)
        .then((archive) => archive.agent('web', schema))
        .catch(() => undefined);
      await survive(again.crash('lost'), whole);
    }
    await survive(left, whole);
  });
});

async function countSteps(directory: MemoryDirectory): Promise<number> {
  const archive = await openOn(directory);
  await archive.agent('web', schema);
  return directory.mutations;
}

describe('a load', () => {
  it('that could neither be stored nor removed does not block later commits', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    const { remove, rename } = directory;
    // The load has its positions by then, and those of every later commit depend on its outcome.
    directory.rename = () => Promise.reject(new LogstrataError('io', 'the disk reported an error'));
    directory.remove = () => Promise.reject(new LogstrataError('io', 'the disk reported another error'));
    await expect(load(store, rows(0, 5))).rejects.toMatchObject({ code: 'io' });
    Object.assign(directory, { remove, rename });
    await append(store, rows(5, 3), 'load');
    await load(store, rows(8, 2));
    const messages = (await answer(store))
      .split('\n')
      .slice(0, -1)
      .map((line) => /line \d+/.exec(line)![0]);
    expect(messages).toEqual(['line 5', 'line 6', 'line 7', 'line 8', 'line 9']);
    await archive.close();
  });
});

describe('a failing disk', () => {
  it('fails the commit that it affects, keeps committed records, and accepts commits again afterwards', async () => {
    const steps = (await live(new MemoryDirectory())).directory.mutations;
    for (let step = 1; step <= steps; step += isLong ? 1 : isWhole ? 3 : 7) {
      const end = await live(new MemoryDirectory({ failAtOperation: step, seed: step }));
      end.directory.setFaults({});
      await survive(end.directory.crash('kept'), end);
    }
  });

  it('whose sync fails, and which loses power after a restart, keeps all records that were shown to clients', async () => {
    const steps = (await live(new MemoryDirectory())).directory.mutations;
    const modes: CrashMode[] = ['lost', { seed: 3 }];
    for (let step = 1; step <= steps; step += isLong ? 1 : isWhole ? 3 : 7) {
      const plan = { failAtOperation: step, failedSyncStays: true, seed: step };
      // The process ends with its next step, before it can record how much of its file is durable or report the failure.
      const endsAtOnce = step % 2 === 1;
      const end = await live(
        new MemoryDirectory(endsAtOnce ? { ...plan, crashAtOperation: step + 1 } : plan),
      );
      const directory = end.directory.restart();
      const answered = await answer(await (await openOn(directory)).agent('web', schema));
      expect([answerOf(end.done, everything), answerOf(end.doing, everything)]).toContain(answered);
      const left = directory.crash(modes[step % modes.length]!);
      const archive = await openOn(left);
      expect(await answer(await archive.agent('web', schema))).toBe(answered);
      await archive.close();
      await survive(left, end);
    }
  });

  it.each(['new', 'open'])(
    'that fails a commit to a hot file that is %s keeps the committed records, wherever the next commit is cut off',
    async (kind) => {
      const begun = new MemoryDirectory();
      const opening = await openOn(begun);
      await appendRejecting(await opening.agent('web', schema), 0);
      await opening.close();
      let hasFailed = true;
      let first = 0;
      for (; hasFailed; first++) {
        let isDone = false;
        for (let second = 1 + (first % 2); hasFailed && !isDone; second += isLong ? 1 : 2) {
          const directory = begun.crash('kept');
          const store = await (await openOn(directory)).agent('web', schema);
          if (kind === 'open') await appendRejecting(store, 1);
          const committed = linesOf(await answer(store));
          directory.setFaults({ failAtOperation: directory.mutations + first + 1, seed: first });
          hasFailed = !(await succeeds(appendRejecting(store, 2)));
          directory.setFaults({ crashAtOperation: directory.mutations + second });
          isDone = await succeeds(appendRejecting(store, 3));
          const reader = await openToRead(directory.crash('kept'));
          expect(await reader.verify('web')).toMatchObject({ damages: [] });
          const found = linesOf(await answer(await reader.agent('web', schema)));
          expect(committed.filter((line) => found.includes(line))).toEqual(committed);
          await reader.close();
        }
      }
      expect(first).toBeGreaterThan(4);
    },
  );

  it('that is full is reported as full, and the committed records stay', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    await load(store, rows(0, 50));
    const before = await answer(store);
    for (const freeBytes of [0, 100, 1000, 3000, 6000]) {
      directory.setFaults({ freeBytes: directory.bytesWritten + freeBytes });
      await expect(load(store, rows(50, 4000))).rejects.toMatchObject({ code: 'disk_full' });
      await expect(append(store, rows(50, 4000), 'live')).rejects.toMatchObject({ code: 'disk_full' });
      directory.setFaults({});
      expect(await answer(store)).toBe(before);
    }
    await append(store, rows(50, 1), 'live');
    const lines = (await answer(store)).trimEnd().split('\n');
    expect(lines).toHaveLength(51);
    expect(new Set(lines.map((line) => line.slice(12, 28))).size).toBe(51);
    expect(lines.at(-1)).toContain(
      formatCursor({ partition: Math.floor((noon - 30 * hour + 50 * 600_000) / hour), ordinal: 3 }),
    );
    await archive.close();
  });
});
