import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../tidy/source-files.js';
import { describeInBrowser } from './browser.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);

describeInBrowser('the measurements of the viewer', () => {
  it('have figures for a few thousand records, all of which were scrolled over', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-viewer-measures-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const out = join(folder, 'viewer');
    const { stdout } = await run(process.execPath, [script, 'viewer', '--tiny', '--out', out], {
      env: { ...process.env, TMPDIR: folder },
    });
    const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as {
      lines: readonly { readonly figure: string; readonly values: Readonly<Record<string, number>> }[];
    };
    for (const { figure } of lines) expect(stdout).toContain(figure);
    const values: Readonly<Record<string, number>> = Object.assign({}, ...lines.map((line) => line.values));
    expect(values['first']).toBeGreaterThan(0);
    expect(values['records']).toBeGreaterThanOrEqual(3000);
    expect(values['count']).toBeGreaterThan(10);
    // The figures are for 600 rows and not for 3000.
    expect(values['nodes']).toBeLessThan(8000);
  });
});
