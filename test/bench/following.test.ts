import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../tidy/source-files.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);

interface Line {
  readonly what: string;
  readonly figure: string;
  readonly values: Readonly<Record<string, number>>;
}

it('clients that follow lose and repeat nothing, although the server is killed and stopped, and connections break', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-following-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'following');
  const { stdout } = await run(process.execPath, [script, 'following', '--tiny', '--out', out], {
    env: { ...process.env, TMPDIR: folder },
  });
  const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as { lines: readonly Line[] };
  const table = readFileSync(`${out}.md`, 'utf8');
  for (const { what, figure } of lines) {
    expect(table).toContain(`| ${what} |`);
    expect(stdout).toContain(figure);
  }
  const { connections, ...faults } = lines[0]!.values;
  expect(faults).toEqual({ lost: 0, repeated: 0, unfinished: 0 });
  // Each of 22 clients, and all of them again after each of two restarts.
  expect(connections).toBeGreaterThan(2 * 22);
});

it('refuses an unknown option', async () => {
  const refused = run(process.execPath, [script, 'following', '--twice']);
  await expect(refused).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'--twice'") as string,
  });
});
