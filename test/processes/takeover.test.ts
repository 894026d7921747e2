import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { caseCount } from '../cases.js';
import { freePort, run, start } from '../cli/process.js';
import {
  allNumbers,
  numberLines,
  numbersFolder,
  range,
  serveNumbers,
  until,
  writeNumbers,
} from './numbered-log.js';

/** A stream is committed at this many records, and therefore at once. */
const commitRecords = 64 * 1024;

/** The holder of the lock, as other processes see it. */
function writer(folder: string): { role: string; pid: number } | undefined {
  try {
    const [, role, pid] = readlinkSync(join(folder, 'data/store/.writer')).split('-');
    return { role: role!, pid: Number(pid) };
  } catch {
    return undefined;
  }
}

it('a server that starts beside a stream answers its records, and becomes the writer when the stream has ended', async () => {
  for (let round = 0; round < caseCount(1, 20); round++) {
    const folder = numbersFolder();
    const stream = start(folder, ['load', 'numbers', '-']);
    await until(() => writer(folder)?.pid === stream.child.pid, 'the stream holds the lock');
    const served = await serveNumbers(folder);
    expect(writer(folder)?.role).toBe('load');

    // Every query in the meantime is answered, without a repeated record, and never with fewer records than before.
    let isOver = false;
    let seen = 0;
    const asking = (async () => {
      while (!isOver) {
        const records = await served.ask('limit=1000000');
        expect(new Set(records.map(({ cursor }) => cursor)).size).toBe(records.length);
        expect(new Set(records.map(({ n }) => n)).size).toBe(records.length);
        expect(records.length).toBeGreaterThanOrEqual(seen);
        seen = records.length;
      }
    })();
    asking.catch(() => (isOver = true));

    stream.child.stdin.write(numberLines(0, commitRecords, 'stream'));
    await until(() => isOver || seen === commitRecords, 'the server answers what the stream has committed');
    expect(stream.child.exitCode).toBeNull();
    const total = commitRecords + 1000;
    stream.child.stdin.end(numberLines(commitRecords, total, 'stream'));
    expect((await stream.finished).code).toBe(0);
    await until(() => isOver || seen === total, 'the server answers all of the stream');
    await until(() => isOver || writer(folder)?.pid === served.process.child.pid, 'the server writes');

    const loaded = await run(folder, ['load', 'numbers', writeNumbers(folder, 'a.log', total, total + 500)]);
    expect(loaded).toMatchObject({ code: 0, stderr: expect.stringContaining('500 records') as unknown });
    await until(() => isOver || seen === total + 500, 'the server answers what was loaded through it');
    isOver = true;
    await asking;
    expect(writer(folder)).toMatchObject({ role: 'serve', pid: served.process.child.pid });
    expect(await allNumbers(served)).toEqual(range(0, total + 500));

    const second = await run(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`process ${served.process.child.pid}`);
    served.process.child.kill('SIGTERM');
    expect(await served.process.finished).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('warning') as unknown,
    });
    expect((await run(folder, ['verify', 'numbers'])).code).toBe(0);
  }
});
