import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { compile, compilerMissing } from './native.js';

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

  /** A mounted disk, or the reason why there can be none. */
  static make(): LoopDisk | string {
    const missing = compilerMissing();
    if (missing !== null) return missing;
    if (process.getuid?.() !== 0) return 'a disk can be mounted by root alone';
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
