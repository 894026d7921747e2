import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { lagsOf } from '../../bench/collecting/lags.js';
import { root } from '../tidy/source-files.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);

interface Line {
  readonly what: string;
  readonly figure: string;
  readonly values: Readonly<Record<string, number>>;
}

it('has figures for a few lines, loses none, and writes the table and the record', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-collecting-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'collecting');
  const { stdout } = await run(process.execPath, [script, 'collecting', '--tiny', '--out', out], {
    env: { ...process.env, TMPDIR: folder },
  });
  const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as { lines: readonly Line[] };
  expect(lines).toHaveLength(14);
  const table = readFileSync(`${out}.md`, 'utf8');
  for (const { what, figure, values } of lines) {
    expect(table).toContain(`| ${what} |`);
    expect(stdout).toContain(figure);
    for (const value of Object.values(values)) expect(value).toBeGreaterThan(0);
  }
});

it('measures the time from each write to the first commit that has all of it', () => {
  const written = [
    { atMs: 10, path: 'a', endOffset: 100 },
    { atMs: 11, path: 'b', endOffset: 50 },
    { atMs: 20, path: 'a', endOffset: 200 },
  ];
  const committed = [
    { atMs: 30, ends: [['a', 150] as const] },
    { atMs: 40, ends: [['b', 50] as const, ['a', 200] as const] },
  ];
  expect(lagsOf(written, committed)).toEqual([20, 29, 20]);
  expect(() => lagsOf(written, committed.slice(0, 1))).toThrow('b was not stored up to byte 50');
});

it('refuses an unknown option', async () => {
  const refused = run(process.execPath, [script, 'collecting', '--twice']);
  await expect(refused).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'--twice'") as string,
  });
});
