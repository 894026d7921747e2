import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { itUnless } from '../needs.js';
import { Nginx, nginxAgent, rotate, whyNoNginx } from './nginx.js';
import { allNumbers, allRead, numbersFolder, serveNumbers, until } from './numbered-log.js';

const rotations = 5;

/** The rotation in the middle of which the server is killed and started again. */
const killedAt = 2;

const numbersIn = (content: Buffer): number[] =>
  [...content.toString('latin1').matchAll(/GET \/(\d+) /g)].map(([, n]) => Number(n));

/** The numbers in all files of a folder of logs. */
function numbersOfFolder(folder: string): Set<number> {
  const contents = readdirSync(folder).map((name) => {
    const content = readFileSync(join(folder, name));
    return name.endsWith('.gz') ? gunzipSync(content) : content;
  });
  return new Set(contents.flatMap(numbersIn));
}

/** With a buffer, nginx still writes many lines to the renamed log, also while that is compressed. */
const modes = [
  { mode: 'create', options: 'create', buffer: '' },
  { mode: 'copytruncate', options: 'copytruncate', buffer: '' },
  { mode: 'compress with delaycompress', options: 'create\n compress\n delaycompress', buffer: '' },
  { mode: 'compress without delaycompress', options: 'create\n compress', buffer: 'buffer=64k flush=1s' },
];

for (const { mode, options, buffer } of modes)
  itUnless(
    whyNoNginx,
    `the log of nginx under load is stored once through rotations by logrotate: ${mode}`,
    async () => {
      const folder = numbersFolder();
      const logs = join(folder, 'logs');
      const log = join(logs, 'access.log');
      writeFileSync(join(folder, 'agents/numbers.yaml'), nginxAgent);
      const nginx = await Nginx.start(folder, buffer);
      let served = await serveNumbers(folder);
      nginx.startLoad();
      /** Each log before its rotation, which shows its lines also when it has been removed. */
      const handles: number[] = [];
      for (let i = 0; i < rotations; i++) {
        await nginx.moreRequests();
        handles.push(openSync(log, 'r'));
        // A log that is gone before the server has opened it has nothing but its compressed copy.
        await until(async () => {
          const [first] = numbersIn(readFileSync(log));
          return first !== undefined && (await served.ask(`n__eq=${first}`)).length > 0;
        }, 'the log is read');
        const rotated = rotate(folder, options);
        if (i === killedAt) {
          served.process.child.kill('SIGKILL');
          await served.process.finished;
          served = await serveNumbers(folder);
        }
        await rotated;
      }
      await nginx.moreRequests();
      await nginx.stop();
      await allRead(folder);
      const running = await allNumbers(served);
      served.process.child.kill('SIGTERM');
      await served.process.finished;
      served = await serveNumbers(folder);
      await allRead(folder);
      const stored = await allNumbers(served);

      expect({ mode, records: stored.length }).toEqual({ mode, records: running.length });
      expect({ mode, records: stored.length }).toEqual({ mode, records: new Set(stored).size });

      const remaining = numbersOfFolder(logs);
      const before = handles.map((handle) => {
        const numbers = numbersIn(readFileSync(handle));
        closeSync(handle);
        return numbers;
      });
      const written = new Set([...remaining, ...before.flat()]);
      // What logrotate itself loses: lines between copying and truncating, and lines that were removed while the server was down.
      if (mode !== 'copytruncate')
        expect({ mode, written: written.size }).toEqual({ mode, written: nginx.answered });
      const removed = new Set(before[killedAt]!.filter((n) => !remaining.has(n)));
      const known = new Set(stored);
      const lost = [...written].filter((n) => !known.has(n) && !removed.has(n));
      expect({ mode, lost }).toEqual({ mode, lost: [] });
    },
  );
