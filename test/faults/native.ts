import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missingProgram, notLinux } from '../needs.js';

const flags = { library: ['-shared', '-fPIC'], program: [] } as const;

/** Why calls of the file system can't be made to fail here, or null. */
export const missingCompiler = notLinux ?? missingProgram('cc');

/** Compiles a file of this folder, and returns the path of the result, which is removed when the process ends. */
export function compile(name: string, kind: keyof typeof flags): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-native-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const built = join(folder, name.replace(/\.c$/, ''));
  const source = join(import.meta.dirname, name);
  execFileSync('cc', ['-O1', '-Wall', '-Werror', ...flags[kind], '-o', built, source, '-ldl']);
  return built;
}
