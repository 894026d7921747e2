import { copyFile, appendFile, mkdir, rename, rm, truncate, unlink } from 'node:fs/promises';
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Random } from '../random.js';

/** Simulated time is this many times faster: a minute of the run is an hour in the log, so that hours end and retention has something to remove. */
const hastening = 60;

const rotationMs = 20_000;
const generationsKept = 4;

/** The next line to be written at a time. Lags are computed from these. */
interface Mark {
  readonly n: number;
  readonly atMs: number;
}

const marksMax = 100_000;

/** Writes numbered lines to a log at a steady rate, and rotates the log. */
export class PacedLog {
  /** Number of lines so far. */
  written = 0;
  rotations = 0;
  private readonly startedMs = Date.now();
  private readonly random = new Random(1);
  private marks: Mark[] = [];
  private generations: string[] = [];
  private rotatedMs = this.startedMs;
  private packing: Promise<void> = Promise.resolve();
  private readonly log: string;

  private constructor(
    folder: string,
    private readonly rate: number,
    /** Simulated hours of the whole log. The log ends at the present, as no record may be in the future. */
    private readonly hours: number,
  ) {
    this.log = join(folder, 'app.log');
  }

  /** Makes the folder and begins the log. */
  static async begin(folder: string, rate: number, minutes: number): Promise<PacedLog> {
    await mkdir(folder, { recursive: true });
    return new PacedLog(folder, rate, (minutes * hastening) / 60);
  }

  /** Writes the lines that are due, and rotates the log when that is due. */
  async tick(): Promise<void> {
    const nowMs = Date.now();
    // After a long wait, at most the lines of a second are written at once.
    const due = Math.min(this.rate, Math.floor(((nowMs - this.startedMs) / 1000) * this.rate) - this.written);
    this.marks.push({ n: this.written, atMs: nowMs });
    if (this.marks.length > marksMax) this.marks.shift();
    await appendFile(this.log, this.lines(due, nowMs));
    if (nowMs - this.rotatedMs >= rotationMs) await this.rotate(nowMs);
  }

  private lines(count: number, nowMs: number): string {
    const timeMs = nowMs - this.hours * 3_600_000 + (nowMs - this.startedMs) * (hastening - 1);
    const time = new Date(Math.min(nowMs, timeMs)).toISOString();
    const parts: string[] = [];
    for (let i = 0; i < count; i++) {
      const n = this.written++;
      const id = this.random.hex(16);
      parts.push(
        `{"time":"${time}","n":${n},"shard":${n % 10},"level":"info","message":"request ${id} took ${n % 997} ms"}\n`,
      );
    }
    return parts.join('');
  }

  /** Rotates the log, alternately by renaming and by copying and truncating. The previous file is compressed, and old ones are removed. */
  private async rotate(nowMs: number): Promise<void> {
    this.rotatedMs = nowMs;
    const path = `${this.log}.${++this.rotations}`;
    if (this.rotations % 2 === 1) await rename(this.log, path);
    else {
      await copyFile(this.log, path);
      await truncate(this.log);
    }
    const before = this.generations.at(-1);
    if (before !== undefined) {
      this.generations[this.generations.length - 1] = `${before}.gz`;
      this.packing = this.packing.then(() => pack(before));
    }
    this.generations.push(path);
    while (this.generations.length > generationsKept) await rm(this.generations.shift()!, { force: true });
  }

  /** Milliseconds since line `n` was written; 0 where it has not been written yet. */
  waitingMs(n: number): number {
    if (n >= this.written) return 0;
    while (this.marks.length > 1 && this.marks[1]!.n <= n) this.marks.shift();
    return Date.now() - (this.marks[0]?.atMs ?? this.startedMs);
  }

  /** Waits until rotated files have been compressed. */
  async end(): Promise<void> {
    await this.packing;
  }
}

async function pack(path: string): Promise<void> {
  await pipeline(createReadStream(path), createGzip({ level: 1 }), createWriteStream(`${path}.gz`));
  await unlink(path);
}
