import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { recordsOf, root } from '../cli/process.js';

const exec = promisify(execFile);

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

/** Folders of `node_modules` that the program needs to run, by the lock file: what `npm install --omit=dev` would put there. */
function runtimePackages(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8')) as Lock;
  return Object.entries(lock.packages).flatMap(([path, { dev }]) => (dev === true ? [] : [path]));
}

it('the package runs elsewhere, with what it says that it needs and nothing else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-package-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const packed = await exec('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  await exec('tar', ['-xzf', filename], { cwd: folder });
  // Laid out as npm would, but from what is installed here: no network is needed.
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const path of runtimePackages()) {
    const to = join(folder, path);
    cpSync(join(root, path), to, { recursive: true, filter: (from) => !from.endsWith('/.bin') });
  }
  cpSync(join(folder, 'package'), join(modules, 'logstrata'), { recursive: true });
  const main = join(modules, 'logstrata/dist/server/main.js');
  const work = join(folder, 'work');
  mkdirSync(join(work, 'agents'), { recursive: true });
  const run = async (...args: string[]): Promise<string> =>
    (await exec(process.execPath, [main, ...args], { cwd: work })).stdout;
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  expect((await run('--version')).trim()).toBe(version);
  writeFileSync(
    join(work, 'agents/app.yaml'),
    "fields: [{ name: n, type: int }]\nfile: { path: 'logs/x', format: json }\n",
  );
  writeFileSync(join(work, 'x.log'), '{"n":1}\n{"n":2}\n');
  await run('load', 'app', 'x.log');
  expect(recordsOf(await run('query', 'app', 'n__gt=1')).map(({ n }) => n)).toEqual([2]);
});
