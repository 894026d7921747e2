import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import type { Explained } from '../../bench/far/explained.js';
import { peerPackageFolder } from '../../bench/sides/peer-package.js';
import { root } from '../tidy/source-files.js';
import { missingChdb } from '../far/with-chdb.js';
import { itUnless } from '../needs.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);

interface Result {
  readonly settings: { readonly explained: readonly Explained[] };
  readonly lines: readonly { readonly what: string; readonly figure: string }[];
}

const isInstalled = peerPackageFolder('clickhouse', 'chdb') !== undefined;

function measure(): { readonly out: string; readonly running: Promise<{ readonly stdout: string }> } {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-far-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, 'far');
  const running = run(process.execPath, [script, 'far', '--tiny', '--out', out], {
    env: { ...process.env, TMPDIR: folder },
  });
  return { out, running };
}

itUnless(
  isInstalled ? 'chdb is installed' : null,
  'says how to install chdb where it is missing',
  async () => {
    await expect(measure().running).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('node bench/peers/install.mjs clickhouse') as string,
    });
  },
);

itUnless(
  missingChdb,
  'the far tier is measured next to near records, and its queries use the key and the filters',
  async () => {
    const { out, running } = measure();
    const { stdout } = await running;
    const { settings, lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as Result;
    for (const { figure } of lines) expect(stdout).toContain(figure);
    const [page, id, both] = settings.explained.map(({ indexes }) => indexes);
    const key = { name: 'PrimaryKey', granules: 1 };
    expect(page).toContainEqual(expect.objectContaining(key));
    expect(id).toContainEqual(
      expect.objectContaining({ name: 'Skip request_id__string_values', granules: 1 }),
    );
    expect(both).toContainEqual(expect.objectContaining(key));
    expect(both).toContainEqual(expect.objectContaining({ name: 'Skip remote_addr__string_values' }));
    for (const indexes of [page!, id!, both!])
      expect(indexes.at(-1)!.granules).toBeLessThan(indexes[0]!.granulesBefore);
  },
);

it('refuses an unknown option', async () => {
  await expect(run(process.execPath, [script, 'far', '--twice'])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'--twice'") as string,
  });
});
