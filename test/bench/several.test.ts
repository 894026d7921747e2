import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../tidy/source-files.js';

const run = promisify(execFile);

it('measures four agents in one answer beside the single ones, on a few records', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-several-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'several');
  const args = [join(root, 'dist/bench/run.js'), 'several', '--tiny', '--out', out];
  const { stdout } = await run(process.execPath, args, { env: { ...process.env, TMPDIR: folder } });
  const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as {
    lines: readonly { readonly figure: string; readonly spread: { readonly median: number } }[];
  };
  expect(lines).toHaveLength(8);
  for (const { figure, spread } of lines) {
    expect(spread.median).toBeGreaterThan(0);
    expect(stdout).toContain(figure);
  }
});
