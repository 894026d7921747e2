import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isLong } from '../cases.js';
import { fetchAlone, freePort, recordsOf, root } from '../cli/process.js';

const exec = promisify(execFile);

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
}

interface PackageFile {
  readonly bin: { readonly logstrata: string };
  readonly engines: { node: string };
  readonly scripts: Record<string, string>;
}

/** Maximum disk space of the package with its dependencies; besides the engine it has the viewer, metrics, completion and the manual. */
const installedBytesMax = 42_000_000;

/** Disk space of the files below a folder, in whole blocks. */
function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((bytes, entry) => bytes + statSync(join(entry.parentPath, entry.name)).blocks * 512, 0);
}

/** Folders of `node_modules` that the program needs at run time by the lock file, as `npm install --omit=dev` would install them. */
function runtimePackages(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8')) as Lock;
  return Object.entries(lock.packages).flatMap(([path, { dev }]) => (dev === true ? [] : [path]));
}

/** An empty folder, and in it the package as it would be published. */
async function packed(): Promise<{ folder: string; tarball: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-package-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const ended = await exec('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  const [{ filename }] = JSON.parse(ended.stdout) as [{ filename: string }];
  return { folder, tarball: filename };
}

/** Installed in the layout of npm, but from the dependencies here, without network. */
async function layOut(folder: string, tarball: string): Promise<void> {
  await exec('tar', ['-xzf', tarball], { cwd: folder });
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const path of runtimePackages()) {
    const to = join(folder, path);
    cpSync(join(root, path), to, { recursive: true, filter: (from) => !from.endsWith('/.bin') });
  }
  cpSync(join(folder, 'package'), join(modules, 'logstrata'), { recursive: true });
}

/** Installed by npm, which gets the dependencies from the registry. */
async function install(folder: string, tarball: string): Promise<void> {
  const args = ['install', '--omit=dev', '--prefer-offline', '--no-audit', '--no-fund', `./${tarball}`];
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  await exec('npm', args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
}

/** The file that npm links to as the command of a package. */
function commandOf(packageFolder: string): string {
  const { bin } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as PackageFile;
  return bin.logstrata;
}

const places = [{ how: 'laid out from what is here', put: layOut }];
if (isLong) places.push({ how: 'installed by npm', put: install });

describe.each(places)('the package, $how in an empty folder', ({ put }) => {
  it('loads, answers and serves with its declared dependencies only', async () => {
    const { folder, tarball } = await packed();
    await put(folder, tarball);
    for (const tool of ['typescript', 'vitest', 'eslint', 'assemblyscript'])
      expect(existsSync(join(folder, 'node_modules', tool))).toBe(false);
    expect(bytesBelow(join(folder, 'node_modules'))).toBeLessThan(installedBytesMax);
    const installed = join(folder, 'node_modules/logstrata');
    const main = join(installed, commandOf(installed));
    const work = join(folder, 'work');
    mkdirSync(join(work, 'agents'), { recursive: true });
    const run = async (...args: string[]): Promise<string> =>
      (await exec(process.execPath, [main, ...args], { cwd: work })).stdout;
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect((await run('--version')).trim()).toBe(version);
    if (put === install)
      expect((await exec('npx', ['logstrata', '--version'], { cwd: work })).stdout.trim()).toBe(version);
    writeFileSync(
      join(work, 'agents/app.yaml'),
      "fields: [{ name: n, type: int }]\nfile: { path: 'logs/x', format: json }\n",
    );
    writeFileSync(join(work, 'x.log'), '{"n":1}\n{"n":2}\n');
    await run('load', 'app', 'x.log');
    expect(recordsOf(await run('query', 'app', 'n__gt=1')).map(({ n }) => n)).toEqual([2]);
    expect(await served(main, work, 'serve', 'app')).toEqual([1, 2]);

    // In an empty folder, the demonstration brings its own agents and logs.
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    expect(await served(main, empty, 'demo', 'nginx')).toHaveLength(100);
  });
});

/** The files of the command in a clone. */
function copyCommand(clone: string): void {
  mkdirSync(join(clone, 'server'));
  for (const name of readdirSync(join(root, 'server')).filter((file) => file.endsWith('.mjs')))
    cpSync(join(root, 'server', name), join(clone, 'server', name));
  cpSync(join(root, 'package.json'), join(clone, 'package.json'));
}

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-clone-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Applies `change` to the copied package.json. */
function changePackage(clone: string, change: (json: PackageFile) => void): void {
  const path = join(clone, 'package.json');
  const json = JSON.parse(readFileSync(path, 'utf8')) as PackageFile;
  change(json);
  writeFileSync(path, JSON.stringify(json));
}

it('the package is built when it is packed, and has only the shipped agents', async () => {
  const clone = emptyFolder();
  copyCommand(clone);
  for (const name of ['app', 'nginx', 'mysite']) {
    mkdirSync(join(clone, 'agents'), { recursive: true });
    writeFileSync(join(clone, 'agents', `${name}.yaml`), '');
  }
  mkdirSync(join(clone, 'dist/program/server'), { recursive: true });
  writeFileSync(join(clone, 'dist/program/server/stale.js'), '');
  const made = [
    'program/server/main.js',
    'server/main.js',
    'engine/kernels.wasm.made-of',
    'bench/run.js',
    '.tsbuildinfo',
  ];
  // Stands in for the compiler, which takes longer.
  const build = made.map((file) => `mkdir -p dist/${file} && rmdir dist/${file} && echo > dist/${file}`);
  changePackage(clone, ({ scripts }) => (scripts['build'] = build.join(' && ')));
  await exec('npm', ['pack'], { cwd: clone });
  const { stdout } = await exec('tar', ['-tzf', 'logstrata-0.1.0.tgz'], { cwd: clone });
  expect(stdout.trim().split('\n').sort()).toEqual(
    [
      'agents/app.yaml',
      'agents/nginx.yaml',
      'dist/program/server/main.js',
      'package.json',
      'server/logstrata.mjs',
      'server/node-version.mjs',
    ].map((file) => `package/${file}`),
  );
});

it('package.json admits no Node that is older than the one that the build of the viewer needs', () => {
  const nodeOf = (path: string): string =>
    (JSON.parse(readFileSync(join(root, path), 'utf8')) as PackageFile).engines.node;
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(nodeOf('package.json'))!;
  const [, least] = new RegExp(`\\^${major}\\.(\\d+)\\.0`).exec(nodeOf('node_modules/vite/package.json'))!;
  expect(Number(minor)).toBeGreaterThanOrEqual(Number(least));
});

it('an older Node can parse the command, and reports which version is needed', async () => {
  const clone = emptyFolder();
  copyCommand(clone);
  changePackage(clone, ({ engines }) => (engines.node = '>=99.5'));
  await expect(exec(join(clone, commandOf(root)), ['--version'])).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      `^logstrata: Node.js 99.5 or newer is needed, and this is ${process.versions.node} `,
    ) as string,
  });
  for (const name of ['logstrata.mjs', 'node-version.mjs']) {
    const text = readFileSync(join(clone, 'server', name), 'utf8');
    expect(text).not.toMatch(/\bawait\b|'node:/);
    const written = (target: ts.ScriptTarget): string =>
      ts.transpileModule(text, { compilerOptions: { target, module: ts.ModuleKind.ESNext } }).outputText;
    expect(written(ts.ScriptTarget.ES2019)).toBe(written(ts.ScriptTarget.ESNext));
  }
});

it('the command of a clone reports a missing build, and works once it is built', async () => {
  const clone = emptyFolder();
  const command = commandOf(root);
  // The file that npm links to must be part of the clone.
  expect(command).not.toMatch(/^(\.\/)?dist\//);
  copyCommand(clone);
  const ask = (): Promise<{ stdout: string }> => exec(join(clone, command), ['--version']);
  await expect(ask()).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: `logstrata: ${clone}/ is not built yet; run \`npm run build\` there\n`,
  });
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
  cpSync(join(root, 'dist'), join(clone, 'dist'), { recursive: true });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  expect((await ask()).stdout.trim()).toBe(version);
});

/** The answer of a server that is started this way: the values of `n`, if the records have it. */
async function served(main: string, folder: string, command: string, agent: string): Promise<unknown[]> {
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(process.execPath, [main, command, '--listen', address], { cwd: folder });
  const ended = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  let shown = '';
  child.stderr.on('data', (text: Buffer) => (shown += text.toString()));
  child.stdout.on('data', (text: Buffer) => (shown += text.toString()));
  while (!shown.includes('serving ')) {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${shown}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const response = await fetchAlone(`http://${address}/api/query/${agent}`);
  expect(response.status).toBe(200);
  const values = recordsOf(await response.text()).map(({ n }) => n);
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
  return values;
}
