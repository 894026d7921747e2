import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import { compile, missingCompiler } from './native.js';
import { notRoot } from '../needs.js';

const sizeBytes = 512 * 1024 * 1024;

/** Names reach the disk when they are synced, or after this time, which is long enough for a power cut to lose them. */
const commitSeconds = 300;

function attempt(command: string, args: readonly string[]): string | null {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? null : `${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`;
}

let cutPower: string | undefined;

/** A separate ext4 disk in a file, whose power can be cut. It needs root. */
export class LoopDisk {
  /** Where it is mounted. */
  readonly folder: string;
  private readonly image: string;

  private constructor() {
    const base = mkdtempSync(join(tmpdir(), 'logstrata-disk-'));
    this.folder = join(base, 'mounted');
    this.image = join(base, 'image');
    onTestFinished(() => {
      attempt('umount', [this.folder]);
      rmSync(base, { recursive: true, force: true });
    });
  }

  /** A mounted disk. Skips the rest of the test if none can be mounted here. */
  static make(context: TestContext): LoopDisk {
    const disk = missingCompiler ?? notRoot ?? LoopDisk.tryToMake();
    if (typeof disk === 'string') context.skip(`not tried: ${disk}`);
    return disk;
  }

  private static tryToMake(): LoopDisk | string {
    cutPower ??= compile('power-cut.c', 'program');
    const disk = new LoopDisk();
    mkdirSync(disk.folder);
    writeFileSync(disk.image, '');
    truncateSync(disk.image, sizeBytes);
    return attempt('mkfs.ext4', ['-q', '-F', disk.image]) ?? disk.mount() ?? disk;
  }

  private mount(): string | null {
    return attempt('mount', ['-o', `loop,commit=${commitSeconds}`, this.image, this.folder]);
  }

  /** From now on nothing reaches the disk, and every call to it fails. */
  cut(): void {
    must(attempt(cutPower!, [this.folder]));
  }

  /** Restores the power with the content of the disk. No process may have a file open. */
  restore(): void {
    must(attempt('umount', [this.folder]));
    must(this.mount());
  }
}

function must(failure: string | null): void {
  if (failure !== null) throw new Error(failure);
}
