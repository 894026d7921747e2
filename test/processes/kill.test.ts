import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { caseCount, seed } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { run, start, type Running } from '../cli/process.js';
import { storedStats } from '../cli/stored.js';
import { allNumbers, numbersFolder, range, serveNumbers, until, writeNumbers } from './numbered-log.js';

/** Units of work that have begun in the store and not ended. */
function building(folder: string): string[] {
  try {
    return readdirSync(join(folder, 'data/store/numbers/building'));
  } catch {
    return [];
  }
}

/** Waits until a load has begun work. A short load may already be over when the test looks again. */
function hasBegun(folder: string, loads: readonly Running[]): Promise<void> {
  const isOver = ({ child }: Running): boolean => child.exitCode !== null;
  return until(() => building(folder).length > 0 || loads.some(isOver), 'a load has begun');
}

/**
 * Files of records in the agent's folder, segments or not. Returns undefined if compaction removes a folder during the search; the caller
 * then searches again.
 */
function parquetFiles(folder: string): number | undefined {
  try {
    const names = readdirSync(join(folder, 'data/store/numbers'), { recursive: true, encoding: 'utf8' });
    return names.filter((name) => name.endsWith('.parquet')).length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Like `toEqual`, which takes minutes to show how long lists differ. */
function expectSame(found: readonly number[], expected: readonly number[]): void {
  const at = expected.findIndex((n, i) => found[i] !== n);
  expect({ at, numbers: found.length }).toEqual({ at: -1, numbers: expected.length });
}

it(`kill -9 of the server that other processes commit through loses nothing and repeats nothing (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const folder = numbersFolder();
  const perFile = 4000;
  let next = 0;
  let served = await serveNumbers(folder);
  for (let round = 0; round < caseCount(2, 60); round++) {
    const first = next;
    const sides = [0, 1].map(() =>
      range(0, 3).map(() => writeNumbers(folder, `${next}.log`, next, (next += perFile))),
    );
    const loads = sides.map((files) => start(folder, ['load', 'numbers', ...files]));
    await hasBegun(folder, loads);
    await delay(between(random, 0, 250));
    served.process.child.kill('SIGKILL');
    // A load whose writer is killed ends with a message or continues by itself; it does not hang.
    for (const { finished } of loads) {
      const { code, stderr } = await finished;
      expect([0, 1]).toContain(code);
      expect(stderr).not.toMatch(/\n\s+at /);
    }
    served = await serveNumbers(folder);
    // The records of earlier rounds are checked at the end, because reading them each time takes ever longer.
    const before = await allNumbers(served, first);
    expect(new Set(before).size).toBe(before.length);
    expect(before.length % perFile).toBe(0);
    for (const files of sides) await run(folder, ['load', 'numbers', ...files]);
    expectSame(await allNumbers(served, first), range(first, next));
  }
  expectSame(await allNumbers(served), range(0, next));
  // The server may be compacting in the background.
  await until(() => building(folder).length === 0, 'nothing is being built');
  // Standard error may show progress, since a busy machine takes seconds.
  const { code, stdout, stderr } = await run(folder, ['verify', 'numbers']);
  expect(`${code} ${stdout}${stderr}`).toMatch(/^0 ok /);
});

it(`kill -9 of a load leaves nothing of its file, and the other loads continue (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const folder = numbersFolder();
  // Files that the server has compacted are removed when no query can need them any more.
  writeFileSync(join(folder, 'config.yaml'), 'server: { query_timeout: 10s }\n');
  const small = 2000;
  const large = 150_000;
  let next = 0;
  const served = await serveNumbers(folder);
  for (let round = 0; round < caseCount(2, 60); round++) {
    const largeFile = writeNumbers(folder, `large-${round}.log`, next, next + large);
    const smallFiles = range(0, 3).map((i) =>
      writeNumbers(
        folder,
        `small-${round}-${i}.log`,
        next + large + i * small,
        next + large + (i + 1) * small,
      ),
    );
    const killed = start(folder, ['load', 'numbers', largeFile]);
    const other = start(folder, ['load', 'numbers', ...smallFiles]);
    await hasBegun(folder, [killed, other]);
    await delay(between(random, 0, 600));
    killed.child.kill('SIGKILL');
    await killed.finished;
    expect(await other.finished).toMatchObject({ code: 0 });
    // While the server runs, it removes the files that the killed load built or had moved into place before publication.
    await until(() => building(folder).length === 0, 'what was being built is removed');
    const verified = await run(folder, ['verify', 'numbers']);
    expect(`${verified.code} ${verified.stdout}${verified.stderr}`).toMatch(/^0 ok /);
    const found = new Set(await allNumbers(served, next));
    const ofLarge = range(next, next + large).filter((n) => found.has(n)).length;
    expect([0, large]).toContain(ofLarge);
    for (const n of range(next + large, next + large + 3 * small)) expect(found.has(n)).toBe(true);

    await run(folder, ['load', 'numbers', largeFile]);
    const first = next;
    next += large + 3 * small;
    expectSame(await allNumbers(served, first), range(first, next));
  }
  expectSame(await allNumbers(served), range(0, next));
  await until(async () => {
    const { segments } = await storedStats(folder, 'numbers');
    return parquetFiles(folder) === segments;
  }, 'no file is left that is no segment');
  expect(readlinkSync(join(folder, 'data/store/.writer'))).toContain('-serve-');
});
