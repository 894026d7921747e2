import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem, type as systemName } from 'node:os';
import { packageRoot } from '../server/cli/options.js';

/** The machine and the version that figures were measured with. */
export interface MachineDescription {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly system: string;
  readonly node: string;
  /** Load average over the minute before the run: a value well above 0 makes the figures worse. */
  readonly loadBefore: number;
  /** The measured commit, with `+` where there were uncommitted changes. Null outside of a clone. */
  readonly commit: string | null;
}

function commitOf(folder: string): string | null {
  const git = (args: readonly string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const changed = git([
      'status',
      '--porcelain',
      '--untracked-files=no',
      '--',
      'engine',
      'agents',
      'server',
      'bench',
      // The results of an earlier run do not change what is measured.
      ':!bench/results',
    ]);
    return git(['rev-parse', '--short=12', 'HEAD']) + (changed === '' ? '' : '+');
  } catch {
    return null;
  }
}

/** Describes the machine before a run. */
export function describeMachine(): MachineDescription {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    system: `${systemName()} ${release()}`,
    node: process.versions.node,
    loadBefore: loadavg()[0] ?? 0,
    commit: commitOf(packageRoot()),
  };
}
