import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const flags = { library: ['-shared', '-fPIC'], program: [] } as const;

/** Why C cannot be compiled here, or null. */
export function compilerMissing(): string | null {
  if (process.platform !== 'linux') return 'calls of the file system can be made to fail on Linux alone';
  return spawnSync('cc', ['--version']).status === 0 ? null : 'there is no C compiler (cc)';
}

/** Compiles a file of this folder, and returns the path of the result, which is removed when the process ends. */
export function compile(name: string, kind: keyof typeof flags): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-native-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const built = join(folder, name.replace(/\.c$/, ''));
  const source = join(import.meta.dirname, name);
  execFileSync('cc', ['-O1', '-Wall', '-Werror', ...flags[kind], '-o', built, source, '-ldl']);
  return built;
}
