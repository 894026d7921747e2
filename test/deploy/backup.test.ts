import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { recordsOf, root, run, start, workFolder, freePort } from '../cli/process.js';

const script = join(root, 'deploy/backup.sh');
const exec = promisify(execFile);

it('a copy that is taken while a server runs has everything that was committed when it began', async () => {
  const folder = workFolder();
  writeFileSync(
    join(folder, 'agents/numbers.yaml'),
    "fields: [{ name: n, type: int }]\nfile: { path: '../logs/n\\.log', format: json }\n",
  );
  const port = await freePort();
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  const lines = (from: number, count: number): string =>
    Array.from({ length: count }, (_, i) => `{"n":${from + i}}\n`).join('');
  let written = 0;
  const add = async (): Promise<void> => {
    const { code } = await run(folder, ['load', 'numbers', '-'], lines(written, 500));
    expect(code).toBe(0);
    written += 500;
  };
  await add();
  for (let copy = 1; copy <= 3; copy++) {
    const atLeast = written;
    // Commits, sealing and merging go on while the copy is made.
    const target = `copy${copy}`;
    const [, , compacted] = await Promise.all([
      exec('sh', [script, 'data/store', target], { cwd: folder }),
      add(),
      run(folder, ['compact', 'numbers']),
    ]);
    expect(compacted.code).toBe(0);
    const copied = await run(folder, ['query', 'numbers', '--limit', '100000', '--data', target]);
    const numbers = recordsOf(copied.stdout).map(({ n }) => n);
    expect(numbers.length).toBeGreaterThanOrEqual(atLeast);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => i));
    expect((await run(folder, ['verify', '--data', target])).code).toBe(0);
  }
  server.child.kill('SIGTERM');
  expect((await server.finished).code).toBe(0);
});

it('a copy does not go over what is there, and says how it is used', async () => {
  const folder = workFolder();
  await expect(exec('sh', [script, folder], { cwd: folder })).rejects.toMatchObject({ code: 2 });
  await expect(exec('sh', [script, folder, folder], { cwd: folder })).rejects.toMatchObject({ code: 1 });
});

it('the unit starts the command that there is, and systemd takes it', () => {
  const path = join(root, 'deploy/logstrata.service');
  const unit = readFileSync(path, 'utf8');
  expect(unit).toContain('server/logstrata.mjs serve --config');
  expect(unit).toContain('ExecReload=/bin/kill -HUP $MAINPID');
  if (!existsSync('/usr/bin/systemd-analyze')) return;
  expect(execFileSync('systemd-analyze', ['verify', path], { encoding: 'utf8' })).toBe('');
});
