import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { range } from './followed-folder.js';

// Alone in this file, because what file systems keep is learned once in a process.
it('the time of creation is known of a log that was created and written in one tick of the clock', async () => {
  const folder = await temporaryFolder();
  const keepsBirths = (): boolean => {
    const { birthtimeMs, ctimeMs } = statSync(folder);
    return birthtimeMs > 0 && birthtimeMs < ctimeMs;
  };
  // The folder is changed in a later tick than the one in which it was created.
  for (const untilMs = Date.now() + 1000; !keepsBirths() && Date.now() < untilMs;) chmodSync(folder, 0o700);
  const log = range(0, 1000)
    .map((n) => join(folder, `${n}.log`))
    .find((path) => {
      writeFileSync(path, 'a line\n');
      const { birthtimeMs, ctimeMs } = statSync(path);
      return birthtimeMs === 0 || birthtimeMs === ctimeMs;
    });
  await realLogFiles.list(folder);
  const { bornMs } = await realLogFiles.status(log!);
  expect(bornMs).toBe(keepsBirths() ? Math.floor(statSync(log!).birthtimeMs) : null);
});
