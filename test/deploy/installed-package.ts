import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../cli/process.js';

const exec = promisify(execFile);

/** The package as it would be published, without its dependencies, in a new folder that the caller must remove with its parent. */
export async function unpackedPackage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-release-'));
  const packing = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await exec('npm', packing, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  await exec('tar', ['-xzf', filename], { cwd: folder });
  return join(folder, 'package');
}

/** Replaces the package in a folder, like `npm install --prefix`. Its dependencies are those of this project. */
export function installPackage(prefix: string, unpacked: string): void {
  const installed = join(prefix, 'node_modules/logstrata');
  rmSync(installed, { recursive: true, force: true });
  mkdirSync(join(prefix, 'node_modules'), { recursive: true });
  cpSync(unpacked, installed, { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(installed, 'node_modules'));
}

/** Replaces a text in a file of an unpacked package; throws if the text is missing. */
export function changePackage(unpacked: string, file: string, from: RegExp, to: string): void {
  const path = join(unpacked, file);
  const text = readFileSync(path, 'utf8');
  if (!from.test(text)) throw new Error(`${file} has no ${from}`);
  writeFileSync(path, text.replace(from, to));
}

/** Like `changePackage`, in each module of the program that contains the text. */
export function changeProgram(unpacked: string, from: RegExp, to: string): void {
  const modules = readdirSync(join(unpacked, 'dist/program'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js'))
    .map((path) => join('dist/program', path))
    .filter((path) => from.test(readFileSync(join(unpacked, path), 'utf8')));
  if (modules.length === 0) throw new Error(`the program has no ${from}`);
  for (const path of modules) changePackage(unpacked, path, from, to);
}
