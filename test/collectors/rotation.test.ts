import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AfterRotation } from '../../agents/collect/after-rotation.js';
import type { LogFiles } from '../../agents/collect/logs/log-files.js';
import type { RotationMethod } from '../../agents/definition/definition.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { fetchAlone, freePort, recordsOf, run, start, workFolder } from '../cli/process.js';
import { faultyFiles, type LogCall } from './faulty-files.js';
import { FollowedFolder, lineOf } from './followed-folder.js';

async function rotating(method: RotationMethod, files?: LogFiles): Promise<FollowedFolder> {
  const options = { rotate: { method, sizeBytes: 100 }, ...(files === undefined ? {} : { files }) };
  const followed = new FollowedFolder(await temporaryFolder(), options);
  await followed.start();
  onTestFinished(() => followed.stop());
  await followed.collect();
  return followed;
}

function write(path: string, from: number, to: number): void {
  for (let n = from; n <= to; n++) appendFileSync(path, `${lineOf(n)}\n`);
}

const range = (to: number): number[] => Array.from({ length: to }, (_, i) => i + 1);

function warnings({ log }: FollowedFolder): string[] {
  return log.filter(({ level }) => level !== 'info').map(({ message }) => message);
}

describe('a log that is emptied', () => {
  it('must exceed its maximum size and be completely stored', async () => {
    const followed = await rotating('truncate');
    const path = followed.path('web.log');
    write(path, 1, 1);
    await followed.collect();
    expect(statSync(path).size).toBeGreaterThan(0);
    write(path, 2, 3);
    appendFileSync(path, lineOf(4).slice(0, 20));
    await followed.collect();
    // It ends inside a line, which is not stored.
    expect(statSync(path).size).toBeGreaterThan(100);
    appendFileSync(path, `${lineOf(4).slice(20)}\n`);
    await followed.collect();
    expect(statSync(path).size).toBe(0);
    write(path, 5, 6);
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(6));
    expect(followed.collector.status()).toMatchObject({ rotations: 1, truncations: 0, truncatedBytes: 0 });
    expect(warnings(followed)).toEqual([]);
  });

  it('is emptied at exactly the maximum size', async () => {
    const followed = await rotating('truncate');
    const path = followed.path('web.log');
    const text = 'x'.repeat(100);
    appendFileSync(path, `${`${lineOf(1)} ${text}`.slice(0, 98)}\n`);
    await followed.collect();
    expect(statSync(path).size).toBe(99);
    writeFileSync(followed.path('db.log'), `${`${lineOf(2)} ${text}`.slice(0, 99)}\n`);
    await followed.collect();
    expect(statSync(followed.path('db.log')).size).toBe(0);
    expect(await followed.numbers()).toEqual(range(2));
  });

  it('is left unchanged, with a warning, if it ends inside a line for long', async () => {
    const followed = await rotating('truncate');
    const path = followed.path('web.log');
    write(path, 1, 8);
    appendFileSync(path, 'half a line');
    await followed.collect();
    await followed.collect();
    expect(statSync(path).size).toBeGreaterThan(200);
    expect(warnings(followed)).toEqual([expect.stringContaining('it ends inside a record')]);
  });

  it('is left unchanged if lines arrive just before, which are stored first', async () => {
    let late = 3;
    const files = faultyFiles(({ operation, path }: LogCall) => {
      if (operation === 'empty' && late < 6) write(path, ++late, late);
      return null;
    });
    const followed = await rotating('truncate', files);
    write(followed.path('web.log'), 1, 3);
    await followed.collect();
    expect(late).toBe(6);
    expect(statSync(followed.path('web.log')).size).toBe(0);
    expect(await followed.numbers()).toEqual(range(6));
  });

  it('is left unchanged, with a warning, if lines arrive without a pause', async () => {
    let late = 3;
    const files = faultyFiles(({ operation, path }: LogCall) => {
      if (operation === 'empty') write(path, ++late, late);
      return null;
    });
    const followed = await rotating('truncate', files);
    write(followed.path('web.log'), 1, 3);
    await followed.collect();
    expect(statSync(followed.path('web.log')).size).toBeGreaterThan(100);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(late));
    expect(warnings(followed)).toHaveLength(1);
    expect(warnings(followed)[0]).toContain('Use the method rename');
  });

  it('is left unchanged, with a warning, if that is not permitted, and its lines are read on', async () => {
    let isAllowed = false;
    const files = faultyFiles(({ operation }) => (operation === 'empty' && !isAllowed ? 'EACCES' : null));
    const followed = await rotating('truncate', files);
    const path = followed.path('web.log');
    write(path, 1, 5);
    await followed.collect();
    write(path, 6, 7);
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(7));
    expect(warnings(followed)).toHaveLength(1);
    isAllowed = true;
    followed.pass(61_000);
    await followed.collect();
    expect(statSync(path).size).toBe(0);
  });
});

describe('a log that is renamed', () => {
  it('is read on while its program still writes to it', async () => {
    const followed = await rotating('rename');
    const path = followed.path('web.log');
    write(path, 1, 4);
    const handle = openSync(path, 'a');
    await followed.collect();
    expect(existsSync(path)).toBe(false);
    writeSync(handle, `${lineOf(5)}\n`);
    closeSync(handle);
    write(path, 6, 7);
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(7));
    expect(readFileSync(`${path}.1`, 'utf8')).toBe(
      range(5)
        .map((n) => `${lineOf(n)}\n`)
        .join(''),
    );
    // The previous generation is removed once all of it is stored.
    write(path, 8, 9);
    await followed.collect();
    expect(existsSync(path)).toBe(false);
    expect(readFileSync(`${path}.1`, 'utf8')).toContain(lineOf(9));
    expect(await followed.numbers()).toEqual(range(9));
    expect(followed.collector.status()).toMatchObject({ rotations: 2 });
  });

  it('is left unchanged if its new name belongs to a file that is not stored', async () => {
    const followed = await rotating('rename');
    const path = followed.path('web.log');
    // web.log.1 has an unfinished line, and db.log.1 is a folder.
    appendFileSync(`${path}.1`, 'not stored');
    mkdirSync(`${followed.path('db.log')}.1`);
    write(path, 1, 4);
    write(followed.path('db.log'), 5, 9);
    await followed.collect();
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(9));
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('not stored');
    expect(existsSync(path)).toBe(true);
    const [folder, ...others] = warnings(followed);
    expect(folder).toContain('db.log.1 is skipped');
    expect(others).toHaveLength(2);
    expect(others[0]).toContain('.log.1 exists, and not all of it is stored');
  });

  it('may not be a link', async () => {
    const followed = await rotating('rename');
    const target = join(followed.directory, 'web-2026.txt');
    write(target, 1, 4);
    symlinkSync(target, followed.path('web.log'));
    await followed.collect();
    expect(await followed.numbers()).toEqual(range(4));
    expect(warnings(followed)).toEqual([expect.stringContaining('it is a symbolic link')]);
  });
});

describe('the command after a rotation', () => {
  it("runs in the agent's folder, once for rotations during its run, and its failure is reported", async () => {
    const folder = await temporaryFolder();
    const said: string[] = [];
    const say = (_facts: unknown, message: string): number => said.push(message);
    const log = { info: say, warn: say, error: say };
    const agent = join(folder, 'shop.yaml');
    const after = new AfterRotation('shop', agent, 'echo ran >> runs; sleep 0.05', log);
    after.call();
    after.call();
    after.call();
    await after.idle();
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('ran\nran\n');
    const failing = new AfterRotation('shop', agent, 'echo no such unit >&2; exit 5', log);
    failing.call();
    await failing.idle();
    expect(said.at(-1)).toBe('the command after a rotation failed: exit code 5: no such unit');
  });

  it('lets a program start a new log, and no line is lost', async () => {
    const folder = workFolder();
    mkdirSync(join(folder, 'logs'));
    const log = join(folder, 'logs/app.log');
    writeFileSync(
      join(folder, 'agents/numbers.yaml'),
      `fields: [{ name: n, type: int }]
file:
  path: '../logs/app\\.log'
  format: json
  rotate: { method: rename, size: 2kb, run: 'touch ../logs/reopen' }
`,
    );
    const port = await freePort();
    const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
    await server.shows('serving ');
    let handle = openSync(log, 'a');
    let written = 0;
    const reopen = (): void => {
      closeSync(handle);
      handle = openSync(log, 'a');
    };
    for (let seen = 0; written < 400;) {
      for (let i = 0; i < 10; i++) writeSync(handle, `{"n":${written++}, "text":"some more of it"}\n`);
      const signal = join(folder, 'logs/reopen');
      const stamp = existsSync(signal) ? statSync(signal).mtimeMs : 0;
      if (stamp > seen) reopen();
      seen = Math.max(seen, stamp);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    closeSync(handle);
    const numbers = async (): Promise<number[]> => {
      const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/numbers?limit=10000`);
      return recordsOf(await response.text()).map(({ n }) => Number(n));
    };
    while ((await numbers()).length < written) await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await numbers()).toSorted((a, b) => a - b)).toEqual(range(written).map((n) => n - 1));
    // A log is rotated after the round that stores the rest of it, so the records may be stored before the rotation.
    const rotations = async (): Promise<number> => {
      const shown = await run(folder, ['stats', 'numbers', '--json']);
      return (JSON.parse(shown.stdout) as { collecting: { rotations: number } }).collecting.rotations;
    };
    await expect.poll(rotations).toBeGreaterThan(0);
    expect(existsSync(`${log}.1`)).toBe(true);
    server.child.kill('SIGTERM');
    expect((await server.finished).code).toBe(0);
  });
});
