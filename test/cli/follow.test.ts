import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { recordsOf, start, workFolder, type Running } from './process.js';

/** An agent `web` that follows `logs/web.log`, whose records have a number. */
function followedFolder(): { readonly folder: string; readonly log: string } {
  const folder = workFolder();
  mkdirSync(join(folder, 'logs'));
  writeFileSync(
    join(folder, 'agents/web.yaml'),
    `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - { name: n, type: int }
file:
  path: '../logs/web\\.log'
  format: json
`,
  );
  const log = join(folder, 'logs/web.log');
  writeFileSync(log, '');
  return { folder, log };
}

/** Lines with these numbers, one per second from now on. */
function linesOf(from: number, count: number, time = Date.now()): string {
  return Array.from(
    { length: count },
    (_, i) => `${JSON.stringify({ time: new Date(time + i).toISOString(), n: from + i })}\n`,
  ).join('');
}

async function serve(folder: string): Promise<Running> {
  const server = start(folder, ['serve', '--listen', '127.0.0.1:0', '--console', 'off']);
  await server.shows('serving ');
  return server;
}

const numbersOf = (text: string): unknown[] => recordsOf(text).map(({ n }) => n);

/** Waits until the following command has written that many records. */
async function reaches(running: Running, count: number): Promise<void> {
  while (running.output().split('\n').length <= count) {
    if (running.child.exitCode !== null) throw new Error(`it has ended: ${running.output()}`);
    await delay(20);
  }
}

it('continues with new records while servers stop and start', async () => {
  const { folder, log } = followedFolder();
  const first = await serve(folder);
  appendFileSync(log, linesOf(1, 5));
  const following = start(folder, ['query', 'web', '--follow', '-n', '2', '--workers', '0']);
  // Begins with the newest records that are stored by then.
  await reaches(following, 1);
  appendFileSync(log, linesOf(6, 20));
  await reaches(following, 20);
  first.child.kill('SIGKILL');
  await first.finished;
  appendFileSync(log, linesOf(26, 20));
  const second = await serve(folder);
  await reaches(following, 40);
  second.child.kill('SIGTERM');
  await second.finished;
  appendFileSync(log, linesOf(46, 5));
  await run(folder, ['load', 'web', log]);
  while (!following.output().includes('"n":50}')) await delay(20);
  following.child.kill('SIGINT');
  const ended = await following.finished;
  expect([ended.code, ended.stderr]).toEqual([0, '']);
  const numbers = numbersOf(ended.stdout);
  const from = numbers[0] as number;
  expect(from).toBeLessThan(6);
  expect(numbers).toEqual(Array.from({ length: 51 - from }, (_, i) => from + i));
});

it('reports how many records were inserted before the last one, and continues after a cursor', async () => {
  const { folder } = followedFolder();
  const day = Date.UTC(2026, 9, 1);
  writeFileSync(join(folder, 'new.log'), linesOf(10, 3, day));
  writeFileSync(join(folder, 'old.log'), linesOf(1, 4, day - 86_400_000));
  writeFileSync(join(folder, 'newer.log'), linesOf(20, 2, day + 86_400_000));
  await run(folder, ['load', 'web', 'new.log']);
  const cursor = String(recordsOf((await run(folder, ['query', 'web', '-n', '3'])).stdout)[0]!._cursor);
  const following = start(folder, ['query', 'web', 'n__ne=2', '--follow', '--after', cursor]);
  await reaches(following, 2);
  await run(folder, ['load', 'web', 'old.log']);
  await following.shows('late: 3 records stored before');
  await run(folder, ['load', 'web', 'newer.log']);
  await reaches(following, 4);
  following.child.kill('SIGINT');
  const ended = await following.finished;
  expect(ended.code).toBe(0);
  expect(numbersOf(ended.stdout)).toEqual([11, 12, 20, 21]);
});

it('refuses an end, and any format but lines', async () => {
  const { folder } = followedFolder();
  for (const [words, message] of [
    [['--before', '0'.repeat(16)], '--before cannot be combined'],
    [['--json'], 'JSON Lines or with --table, not as json'],
    [['--csv'], 'not as csv'],
  ] as const) {
    const ended = await run(folder, ['query', 'web', '--follow', ...words]);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(message);
  }
});
