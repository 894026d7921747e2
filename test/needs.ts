/**
 * What some tests need and a machine may lack: a program, a package, files, permissions. Tests that can't run are reported as skipped, and
 * their names say why, so that they are never counted as passed.
 */
import { spawnSync } from 'node:child_process';
import { describe, it, type TestFunction } from 'vitest';

/** What must be there, as in continuous integration. */
const required = (process.env['LOGSTRATA_REQUIRED'] ?? '').split(' ');

/** `whyNot`, the reason why something is missing, or null if it is there. Throws the reason if LOGSTRATA_REQUIRED has that name. */
export function unlessRequired(name: string, whyNot: string | null, names = required): string | null {
  if (whyNot !== null && names.includes(name))
    throw new Error(`${whyNot}, and LOGSTRATA_REQUIRED names ${name}`);
  return whyNot;
}

/** Why some of these programs can't be used, or null. */
export function missingProgram(...programs: readonly string[]): string | null {
  for (const program of programs) {
    const isThere = spawnSync(program, ['--version']).error === undefined;
    const whyNot = unlessRequired(program, isThere ? null : `there is no ${program} here`);
    if (whyNot !== null) return whyNot;
  }
  return null;
}

/** Why tests of root, of other users and of Linux can't run here, or null. */
export const notRoot = process.getuid?.() === 0 ? null : 'only root can do this';
export const isRoot = process.getuid?.() === 0 ? 'root may do everything' : null;
export const notLinux = process.platform === 'linux' ? null : 'this is not Linux';

const nameOf = (title: string, whyNot: string): string => `${title} [not tried: ${whyNot}]`;

/** Tests that are skipped if there is a reason why they can't run. */
export function describeUnless(whyNot: string | null, title: string, tests: () => void): void {
  if (whyNot === null) describe(title, tests);
  else describe.skip(nameOf(title, whyNot), tests);
}

/** A test that is skipped if there is a reason why it can't run. */
export function itUnless(whyNot: string | null, title: string, test: TestFunction, timeoutMs?: number): void {
  if (whyNot === null) it(title, test, timeoutMs);
  else it.skip(nameOf(title, whyNot), test);
}
