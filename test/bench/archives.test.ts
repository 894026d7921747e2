import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../tidy/source-files.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);

it('an archive of many files is created, attached, and queried through a server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-archives-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'archives');
  const { stdout } = await run(process.execPath, [script, 'archives', '--tiny', '--out', out], {
    env: { ...process.env, TMPDIR: folder },
  });
  const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as {
    lines: readonly { figure: string; values: Readonly<Record<string, number>> }[];
  };
  expect(lines).toHaveLength(7);
  for (const { figure, values } of lines) {
    expect(stdout).toContain(figure);
    for (const value of Object.values(values)) expect(value).toBeGreaterThan(0);
  }
});
