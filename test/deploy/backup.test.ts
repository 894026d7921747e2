import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readConfig } from '../../agents/definition/config-file.js';
import { recordsOf, root, run, start, workFolder, freePort } from '../cli/process.js';
import { itUnless, missingProgram } from '../needs.js';

/** A folder with an agent of numbered lines. */
function numbersFolder(): string {
  const folder = workFolder();
  writeFileSync(
    join(folder, 'agents/numbers.yaml'),
    "fields: [{ name: n, type: int }]\nfile: { path: '../logs/n\\.log', format: json }\n",
  );
  return folder;
}

function lines(from: number, count: number): string {
  return Array.from({ length: count }, (_, i) => `{"n":${from + i}}\n`).join('');
}

async function numbersIn(folder: string, data: string): Promise<unknown[]> {
  const { stdout } = await run(folder, ['query', 'numbers', '--limit', '100000', '--data', data]);
  return recordsOf(stdout).map(({ n }) => n);
}

it('a copy that is updated while a server runs has everything that was committed when it began', async () => {
  const folder = numbersFolder();
  const port = await freePort();
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  let written = 0;
  const add = async (): Promise<void> => {
    const { code } = await run(folder, ['load', 'numbers', '-'], lines(written, 500));
    expect(code).toBe(0);
    written += 500;
  };
  await add();
  for (let round = 1; round <= 3; round++) {
    const atLeast = written;
    // Commits, sealing and compaction continue during the copy.
    const [copied, , compacted] = await Promise.all([
      run(folder, ['backup', 'copy', '--json', '--agent', 'numbers']),
      add(),
      run(folder, ['compact', 'numbers']),
    ]);
    expect(copied.stderr).toBe('');
    expect([copied.code, compacted.code]).toEqual([0, 0]);
    const { records } = JSON.parse(copied.stdout) as { records: number };
    const numbers = await numbersIn(folder, 'copy');
    expect(numbers.length).toBe(records);
    expect(numbers.length).toBeGreaterThanOrEqual(atLeast);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => i));
    const verified = await run(folder, ['verify', '--data', 'copy']);
    expect([verified.code, verified.stdout]).toEqual([
      0,
      expect.not.stringContaining('belongs to no record'),
    ]);
  }
  server.child.kill('SIGTERM');
  expect((await server.finished).code).toBe(0);
  // Files that are already in the copy are not copied again.
  await run(folder, ['backup', 'copy']);
  expect((await run(folder, ['backup', 'copy'])).stdout).toMatch(
    /^ok {7}numbers: 2,000 records in .*; nothing new$/m,
  );
});

it('a restored copy continues with the same cursors, and the log is read on', async () => {
  const folder = numbersFolder();
  mkdirSync(join(folder, 'logs'));
  writeFileSync(join(folder, 'logs/n.log'), lines(0, 300));
  await run(folder, ['load', 'numbers', 'logs/n.log']);
  const answer = (await run(folder, ['query', 'numbers'])).stdout;
  expect((await run(folder, ['backup', 'copy'])).code).toBe(0);
  rmSync(join(folder, 'data/store'), { recursive: true });
  execFileSync('cp', ['-a', join(folder, 'copy'), join(folder, 'data/store')]);
  expect((await run(folder, ['query', 'numbers'])).stdout).toBe(answer);
  writeFileSync(join(folder, 'logs/n.log'), lines(0, 310));
  expect((await run(folder, ['load', 'numbers', 'logs/n.log'])).code).toBe(0);
  expect(await numbersIn(folder, 'data/store')).toEqual(Array.from({ length: 310 }, (_, i) => i));
  // The earlier copy is still valid as an earlier state of the archive.
  expect((await run(folder, ['backup', 'copy'])).code).toBe(0);
});

it('a copy does not overwrite anything else', async () => {
  const folder = numbersFolder();
  await run(folder, ['load', 'numbers', '-'], lines(0, 10));
  const refused = async (target: string, message: RegExp): Promise<void> => {
    const { code, stderr } = await run(folder, ['backup', target]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
  };
  await refused('agents', /contains "[a-z]+\.yaml" but no records: name an empty or new folder/);
  await refused('data', /a copy of .*store can't be stored in .*data:/);
  await refused('data/store/inside', /can't be stored in/);
  expect(readdirSync(join(folder, 'data/store'))).not.toContain('inside');
  symlinkSync(join(folder, 'data/store'), join(folder, 'linked'));
  await refused('linked', /can't be stored in/);
  // A data folder of the same agent, with records of its own.
  await run(folder, ['load', 'numbers', '-', '--data', 'other'], lines(0, 20));
  const { code, stdout } = await run(folder, ['backup', 'other']);
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/^FAILED {3}numbers: .*has records that this data folder never had/),
  ]);
  expect(await numbersIn(folder, 'other')).toHaveLength(20);
  // A folder that a server uses.
  const server = start(folder, ['serve', '--data', 'other', '--listen', `127.0.0.1:${await freePort()}`]);
  await server.shows('serving ');
  await refused('other', /process \d+ \(serve\) writes to .*other: stop it, or name another folder/);
  server.child.kill('SIGTERM');
  await server.finished;
});

it('a damaged agent is named, and the others are copied', async () => {
  const folder = numbersFolder();
  writeFileSync(
    join(folder, 'agents/words.yaml'),
    'fields: [{ name: w }]\nfile: { path: /x/w, format: json }\n',
  );
  await run(folder, ['load', 'numbers', '-'], lines(0, 10));
  await run(folder, ['load', 'words', '-'], '{"w":"a"}\n');
  await run(folder, ['compact']);
  const day = readdirSync(join(folder, 'data/store/numbers')).find((name) => name.startsWith('dt='))!;
  rmSync(join(folder, 'data/store/numbers', day), { recursive: true });
  const { code, stdout } = await run(folder, ['backup', 'copy']);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^FAILED {3}numbers: .*\.parquet/m);
  expect(stdout).toMatch(/^ok {7}words: 1 record in 1 file/m);
});

const unitPath = join(root, 'deploy/logstrata.service');

it('the unit starts the installed command', () => {
  const unit = readFileSync(unitPath, 'utf8');
  expect(unit).toContain('server/logstrata.mjs serve --config');
  expect(unit).toContain('ExecReload=/bin/kill -HUP $MAINPID');
});

itUnless(missingProgram('systemd-analyze'), 'systemd accepts the unit', () => {
  expect(execFileSync('systemd-analyze', ['verify', unitPath], { encoding: 'utf8' })).toBe('');
});

it('the unit and typed commands find the same folders in the installed configuration', () => {
  const page = readFileSync(join(root, 'docs/deploy.md'), 'utf8');
  const [, text] = /^# echo '([^']+)' > \/etc\/logstrata\/config\.yaml$/m.exec(page)!;
  const path = join(workFolder(), 'installed.yaml');
  writeFileSync(path, text!);
  expect(`${readConfig(path).storage.path}`).toBe('/var/lib/logstrata');
  const unit = readFileSync(unitPath, 'utf8');
  expect(unit).toContain('\nStateDirectory=logstrata\n');
  expect(unit).toMatch(/^ExecStart=.* serve --config \/etc\/logstrata\/config\.yaml$/m);
});
