import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Random } from '../../bench/random.js';

/** Number of generations to keep, as in a usual rotation. */
const generationsKept = 6;

interface Generation {
  readonly path: string;
  /** The number of the last line in it. */
  readonly last: number;
}

/** A program that writes numbered lines into `app.log`, and rotates that log in all usual ways. */
export class NumberedProgram {
  readonly log: string;
  /** Number of lines so far; they are numbered from 0 on. */
  written = 0;
  private rotations = 0;
  private generations: Generation[] = [];

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.log = join(folder, 'app.log');
  }

  write(count: number): void {
    let text = '';
    const time = new Date().toISOString();
    for (let i = 0; i < count; i++) text += `{"time":"${time}","n":${this.written++}}\n`;
    appendFileSync(this.log, text);
  }

  rename(): void {
    this.putAside((path) => renameSync(this.log, path));
  }

  /** Nothing is written between the two calls, since no reader could read that. */
  copyAndTruncate(): void {
    this.putAside((path) => {
      copyFileSync(this.log, path);
      truncateSync(this.log);
    });
  }

  private putAside(how: (path: string) => void): void {
    if (!existsSync(this.log) || statSync(this.log).size === 0) return;
    const path = `${this.log}.${++this.rotations}`;
    how(path);
    this.generations.push({ path, last: this.written - 1 });
  }

  /** Compresses the newest uncompressed generation. */
  compress(): void {
    const at = this.generations.findLastIndex(({ path }) => !path.endsWith('.gz'));
    const generation = this.generations[at];
    if (generation === undefined) return;
    const packed = `${generation.path}.gz`;
    writeFileSync(packed, gzipSync(readFileSync(generation.path)));
    unlinkSync(generation.path);
    this.generations[at] = { ...generation, path: packed };
  }

  /** Removes old generations if every line in them is before `seen` and therefore stored. */
  removeOld(seen: number): void {
    while (this.generations.length > generationsKept && this.generations[0]!.last < seen)
      unlinkSync(this.generations.shift()!.path);
  }

  /** One event in the life of a log, most often a few new lines. */
  act(random: Random, linesMax: number): void {
    const chance = random.below(30);
    if (chance === 0) this.rename();
    else if (chance === 1) this.copyAndTruncate();
    else if (chance === 2) this.compress();
    else this.write(1 + random.below(linesMax));
  }
}
