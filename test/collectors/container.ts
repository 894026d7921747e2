import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { lines, type FollowedFolder } from './followed-folder.js';

/** A container's log in a folder that is not followed, to which a link leads. Files have the times of the test's clock. */
export class Container {
  readonly log: string;
  private rotations = 0;

  constructor(
    readonly followed: FollowedFolder,
    name = 'one',
  ) {
    const folder = join(followed.directory, '..', `pod-${name}`);
    mkdirSync(folder);
    this.log = join(folder, '0.log');
    writeFileSync(this.log, '');
  }

  /** Makes the link lead to this log. */
  link(): void {
    rmSync(this.followed.path('web.log'), { force: true });
    symlinkSync(this.log, this.followed.path('web.log'));
  }

  write(from: number, to: number): void {
    appendFileSync(this.log, lines(from, to));
  }

  /** Puts the log aside as container runtimes do. Returns its new path. */
  rotate(): string {
    const path = `${this.log}.20261128-${100_000 + this.rotations++}`;
    renameSync(this.log, path);
    this.stamp(path);
    writeFileSync(this.log, '');
    return path;
  }

  /** Writes lines before it puts the log aside. */
  rotateWith(from: number, to: number): string {
    this.write(from, to);
    return this.rotate();
  }

  /** Compresses a log that was put aside. */
  compress(path: string): void {
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
    this.stamp(`${path}.gz`);
    unlinkSync(path);
  }

  /** Sets the time of a file's last change. */
  stamp(path: string, timeMs = this.followed.now()): void {
    utimesSync(path, timeMs / 1000, timeMs / 1000);
  }
}
