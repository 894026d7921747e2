import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { isLogstrataError } from '../../engine/core/errors.js';
import { run, start, type Running } from '../cli/process.js';
import { storedStats } from '../cli/stored.js';
import { numbersFolder, until } from './numbered-log.js';

/** A stream is committed at this many records, and sealed as one segment. */
const commitRecords = 64 * 1024;
/** This many small segments of a day are merged into one. */
const segmentsMerged = 8;

function lines(from: number, to: number): string {
  let text = '';
  for (let n = from; n < to; n++) text += `{"time":1767225600000,"n":${n},"source":"program"}\n`;
  return text;
}

/** Statistics, also before anything is stored. */
async function statsOf(folder: string): Promise<{ records: number; segments: number }> {
  return storedStats(folder, 'numbers').catch((error: unknown) => {
    if (isLogstrataError(error) && error.code === 'not_found') return { records: 0, segments: 0 };
    throw error;
  });
}

async function write(stream: Running, text: string): Promise<void> {
  if (!stream.child.stdin.write(text)) await once(stream.child.stdin, 'drain');
}

/** Whether no thread of a process has work: one with input that it has not read is not asleep, however long a busy machine lets it wait. */
function isAsleep({ child }: Running): boolean {
  const folder = `/proc/${child.pid}/task`;
  if (!existsSync(folder)) return true;
  return readdirSync(folder).every((thread) => {
    try {
      const stat = readFileSync(`${folder}/${thread}/stat`, 'latin1');
      // The state follows the name of the program, which is in parentheses.
      return stat.slice(stat.lastIndexOf(')') + 2).startsWith('S');
    } catch {
      // A thread that has ended meanwhile.
      return true;
    }
  });
}

/** Waits until a process has read all of its input, and is idle for a while. */
async function rest(stream: Running): Promise<void> {
  let times = 0;
  await until(() => (times = isAsleep(stream) ? times + 1 : 0) >= 20, 'it rests');
}

it('merges segments of a stream while the stream continues', async () => {
  const folder = numbersFolder();
  const stream = start(folder, ['load', 'numbers', '-']);
  const records = (segmentsMerged + 1) * commitRecords;
  for (let n = 0; n < records; n += commitRecords) await write(stream, lines(n, n + commitRecords));
  let stats = await statsOf(folder);
  await until(async () => {
    stats = await statsOf(folder);
    return stats.records === records && stats.segments < segmentsMerged;
  }, 'small segments are merged');
  expect(stream.child.exitCode).toBeNull();
  stream.child.stdin.end(lines(records, records + 10));
  expect(await stream.finished).toMatchObject({ code: 0 });
  expect(await statsOf(folder)).toMatchObject({ records: records + 10 });
  expect(await run(folder, ['verify'])).toMatchObject({ code: 0 });
});

it.each([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  'stores the records that a program wrote before %s, and ends with its code',
  async (signal, code) => {
    const folder = numbersFolder();
    const stream = start(folder, ['load', 'numbers', '-']);
    await write(stream, lines(0, commitRecords));
    await until(async () => (await statsOf(folder)).records === commitRecords, 'it has stored some');
    await write(stream, lines(commitRecords, commitRecords + 100));
    await rest(stream);
    // The program that reads its output may be gone by then, as when a whole pipeline is ended.
    stream.child.stdout.destroy();
    stream.child.kill(signal);
    expect(await stream.finished).toMatchObject({ code, signal: null });
    expect((await statsOf(folder)).records).toBe(commitRecords + 100);
  },
);
