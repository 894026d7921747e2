import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { caseCount, isLong, seed } from '../cases.js';
import { generateLines } from '../../bench/generated-lines.js';
import { Random } from '../../bench/random.js';
import { run } from './here.js';
import { start, workFolder } from './process.js';
import { storedLines } from './stored.js';

const rounds = caseCount(3, 200);
const killsPerRound = 2;
const filesPerLoad = 4;
const linesPerFile = isLong ? 20_000 : 4_000;

/** Writes the files of one load, and returns their ids, each of which must be answered exactly once. */
function writeLogs(folder: string): string[] {
  const ids: string[] = [];
  for (let i = 0; i < filesPerLoad; i++) {
    const options = { rows: linesPerFile, days: 3, startMs: Date.UTC(2026, 10, 1), seed: seed + i };
    const lines = [...(generateLines('app', options) ?? [])];
    for (const line of lines) ids.push(/"trace_id":(\d+)/.exec(line)![1]!);
    const text = `${lines.join('\n')}\n`;
    if (i % 2 === 0) writeFileSync(join(folder, `${i}.log`), text);
    else writeFileSync(join(folder, `${i}.log.gz`), gzipSync(text));
  }
  return ids.sort();
}

async function storedIds(folder: string): Promise<string[]> {
  return [...(await storedLines(folder, 'app')).matchAll(/"trace_id":(\d+)/g)]
    .map((match) => match[1]!)
    .sort();
}

it(`kill -9 during a load loses nothing and repeats nothing (seed ${seed})`, async () => {
  const folder = workFolder();
  const random = new Random(seed);
  const expected = writeLogs(folder);
  const load = ['load', 'app', '*.log*'];

  const startedMs = performance.now();
  expect((await run(folder, load)).code).toBe(0);
  const wholeMs = performance.now() - startedMs;
  expect(await storedIds(folder)).toEqual(expected);

  for (let round = 0; round < rounds; round++) {
    rmSync(join(folder, 'data/store'), { recursive: true, force: true });
    for (let kill = 0; kill < killsPerRound; kill++) {
      const running = start(folder, load);
      await new Promise((resolve) => setTimeout(resolve, wholeMs * random.fraction()));
      running.child.kill('SIGKILL');
      await running.finished;
      // A killed load leaves whole files, which can be read before anything repairs them.
      if (random.below(2) === 0) continue;
      const between = await run(folder, ['stats', '--json']);
      const stats = between.code === 0 ? (JSON.parse(between.stdout) as { records: number }[]) : [];
      expect((stats[0]?.records ?? 0) % linesPerFile).toBe(0);
    }
    await run(folder, load);
    expect(await storedIds(folder)).toEqual(expected);
    const verified = await run(folder, ['verify']);
    // Standard error may show progress, since a busy machine takes seconds.
    expect(`${verified.code} ${verified.stdout}${verified.stderr}`).toMatch(/^0 ok /);
  }
});
