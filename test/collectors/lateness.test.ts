import { appendFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { closeAtEnd, temporaryFolder } from '../agents/load/temporary.js';
import { FollowedFolder } from './followed-folder.js';

const hourMs = 3_600_000;

function lineAt(timeMs: number, n: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z ${n} text\n`;
}

it('places lines that were written while the service was down among the newest, and later late records by their time', async () => {
  const followed = new FollowedFolder(await temporaryFolder());
  await followed.start();
  closeAtEnd(() => followed.stop());
  const path = followed.path('web.log');
  const nowMs = followed.now();
  writeFileSync(path, lineAt(nowMs, 0));
  await followed.collect();
  await followed.stop();
  const lateMs = nowMs - 10 * hourMs;
  appendFileSync(path, lineAt(lateMs, 1));
  await followed.start();
  await followed.collect();
  appendFileSync(path, lineAt(lateMs, 2));
  await followed.collect();
  const hours = new Map(
    (await followed.records()).map(({ n, _cursor }) => [n, parseInt(_cursor.slice(0, 6), 16)]),
  );
  expect(hours.get(1)).toBe(hours.get(0));
  expect(hours.get(2)).toBe(Math.floor(lateMs / hourMs));
});
