import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Written } from './lags.js';

/** The task of a writing process, which is its only argument. */
export interface WritingTask {
  /** Folder of the logs `0.log`, `1.log`, … */
  readonly directory: string;
  readonly files: number;
  /** Lines per second that are appended to each log, and for how many seconds. */
  readonly linesPerSecond: number;
  readonly seconds: number;
  /** File with lines, which are written repeatedly. */
  readonly lines: string;
  /** File that the writes are recorded in. */
  readonly notes: string;
}

/** The totals of all logs. */
export interface WritingFigures {
  readonly lines: number;
  readonly bytes: number;
  readonly seconds: number;
}

const tickMs = 100;

/** Maximum number of lines in a write. Must be less than half of the lines in the source. */
const pieceLinesMax = 500;

interface Log {
  readonly path: string;
  readonly handle: number;
  endOffset: number;
  lines: number;
}

/** Takes pieces of whole lines from a text, and begins again at its start when it is used up. */
class LineSource {
  private at = 0;

  constructor(private readonly text: Buffer) {}

  next(lines: number): Buffer {
    if (this.at >= this.text.length / 2) this.at = 0;
    let end = this.at;
    for (let i = 0; i < lines; i++) end = this.text.indexOf(0x0a, end) + 1;
    const piece = this.text.subarray(this.at, end);
    this.at = end;
    return piece;
  }
}

async function write(task: WritingTask): Promise<WritingFigures> {
  const source = new LineSource(readFileSync(task.lines));
  const logs = Array.from({ length: task.files }, (_, i): Log => {
    const path = join(task.directory, `${i}.log`);
    return { path, handle: openSync(path, 'a'), endOffset: 0, lines: 0 };
  });
  const written: Written[] = [];
  const startMs = performance.now();
  for (let elapsedMs = 0; elapsedMs < task.seconds * 1000;) {
    await delay(tickMs - (elapsedMs % tickMs));
    elapsedMs = performance.now() - startMs;
    const due = Math.floor(Math.min(elapsedMs / 1000, task.seconds) * task.linesPerSecond);
    for (const log of logs) {
      if (due === log.lines) continue;
      while (log.lines < due) {
        const lines = Math.min(pieceLinesMax, due - log.lines);
        const piece = source.next(lines);
        writeSync(log.handle, piece);
        log.endOffset += piece.length;
        log.lines += lines;
      }
      written.push({ atMs: Date.now(), path: log.path, endOffset: log.endOffset });
    }
  }
  const seconds = (performance.now() - startMs) / 1000;
  for (const { handle } of logs) closeSync(handle);
  writeFileSync(task.notes, JSON.stringify(written));
  const sum = (of: (log: Log) => number): number => logs.reduce((total, log) => total + of(log), 0);
  return { lines: sum((log) => log.lines), bytes: sum((log) => log.endOffset), seconds };
}

const figures = await write(JSON.parse(process.argv[2]!) as WritingTask);
process.stdout.write(`${JSON.stringify(figures)}\n`);
