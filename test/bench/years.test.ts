import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  readonly spread?: { readonly median: number };
}

it('has a figure for each line of a few days, and writes the table and the record', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-years-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'years');
  // The records of the last two runs are kept, older ones are not.
  for (const [i, age] of ['', '.1', '.2'].entries()) writeFileSync(`${out}${age}.json`, `"run ${i}"`);
  const { stdout } = await run(process.execPath, [script, 'years', '--tiny', '--out', out], {
    env: { ...process.env, TMPDIR: folder },
  });
  const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as { lines: readonly Line[] };
  expect(lines).toHaveLength(8);
  expect(lines[0]!.what).toContain('3,000 records');
  for (const { spread } of lines.slice(1)) expect(spread!.median).toBeGreaterThan(0);
  expect(['.1', '.2'].map((age) => readFileSync(`${out}${age}.json`, 'utf8'))).toEqual([
    '"run 0"',
    '"run 1"',
  ]);
  expect(existsSync(`${out}.3.json`)).toBe(false);
  const table = readFileSync(`${out}.md`, 'utf8');
  for (const { what, figure } of lines) {
    expect(table).toContain(`| ${what} |`);
    expect(stdout).toContain(figure);
  }
});

it('refuses an unknown option', async () => {
  const refused = run(process.execPath, [script, 'years', '--twice']);
  await expect(refused).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'--twice'") as string,
  });
});
