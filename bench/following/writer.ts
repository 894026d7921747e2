import { closeSync, openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** The task of a writing process, which is its only argument. */
export interface WriterTask {
  readonly log: string;
  readonly linesPerSecond: number;
  readonly seconds: number;
  /** One line in `step` matches the filter. */
  readonly step: number;
}

/** The result: the number of lines written. */
export interface WriterFigures {
  readonly lines: number;
}

const tickMs = 20;
const message = 'GET /api/v1/orders?page=2&size=50 answered in 33 ms from the cache of the second shard';

const { log, linesPerSecond, seconds, step } = JSON.parse(process.argv[2]!) as WriterTask;
const handle = openSync(log, 'a');
const startMs = performance.now();
let lines = 0;
for (let elapsedMs = 0; elapsedMs < seconds * 1000;) {
  await delay(tickMs);
  elapsedMs = performance.now() - startMs;
  const due = Math.floor(Math.min(elapsedMs / 1000, seconds) * linesPerSecond);
  const sent = Date.now();
  let text = '';
  for (; lines < due; lines++)
    text += `{"time":${sent},"n":${lines},"matches":${lines % step === 0 ? 1 : 0},"sent":${sent},"message":"${message}"}\n`;
  writeSync(handle, text);
}
closeSync(handle);
process.stdout.write(`${JSON.stringify({ lines } satisfies WriterFigures)}\n`);
