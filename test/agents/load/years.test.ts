import { appendFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { findZone, type Zone } from '../../../engine/times/zone.js';
import { loadRejected } from '../../../agents/load/load-rejected.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import { archiveAt, definitionOf, load, pour, recordsOf, rejectedOf } from './archive.js';
import { gzip } from './compressed.js';
import { temporaryFolder } from './temporary.js';

/** Long after the times of these files, so that no year can come from the clock. */
const nowMs = Date.UTC(2031, 6, 1);

const dayMs = 86_400_000;
const workers = new WorkerPool(2);
afterAll(() => workers.close());

/** Lines `Nov 17 10:00:00 7 some text`. */
function stampAgent(timezone = 'UTC', namePattern = 'app_(?P<host>.*)\\.log'): AgentDefinition {
  const agent = definitionOf({
    regex: '^(?P<time>\\w{3} [ \\d]\\d \\S+) (?P<n>\\d+) (?P<text>.*)$',
    namePattern,
  });
  const [time, ...others] = agent.fields;
  return { ...agent, fields: [{ ...time!, timestamp: { format: 'stamp', timezone } }, ...others] };
}

/** The form in which syslog writes an instant. */
function stamp(timeMs: number, zone: Zone): string {
  // Such as `Fri, 21 Nov 2026 12:00:00 GMT`.
  const wall = new Date(timeMs + zone.offsetAt(timeMs)).toUTCString();
  return `${wall.slice(8, 11)} ${wall.slice(5, 7).replace(/^0/, ' ')} ${wall.slice(17, 25)}`;
}

function log(timesMs: readonly number[], timezone = 'UTC'): string {
  const zone = findZone(timezone);
  return timesMs.map((timeMs, i) => `${stamp(timeMs, zone)} ${i} some text\n`).join('');
}

async function emptyStore(): Promise<{ folder: string; store: AgentStore }> {
  const folder = await temporaryFolder();
  const store = await (await archiveAt(join(folder, 'data'))).agent('app', stampAgent().schema);
  return { folder, store };
}

/** Writes a file with the given modification time. */
async function fileOf(path: string, content: string | Buffer, modifiedMs: number): Promise<string> {
  await writeFile(path, content);
  await utimes(path, modifiedMs / 1000, modifiedMs / 1000);
  return path;
}

/** The times of the lines of a file, in their order. */
async function loaded(
  content: string | Buffer,
  modifiedMs: number,
  definition = stampAgent(),
  name = 'app_web.log',
): Promise<(number | null)[]> {
  const { folder, store } = await emptyStore();
  const path = await fileOf(join(folder, name), content, modifiedMs);
  const summary = await load(store, [path], { definition, now: () => nowMs });
  expect(summary).toMatchObject({ failed: 0, rejected: 0 });
  return (await recordsOf(store)).sort((a, b) => a.n! - b.n!).map(({ time }) => time);
}

const utc = (text: string): number => Date.parse(`${text}Z`);

describe('times without a year of a file', () => {
  it('are counted back from its modification time, across New Year', async () => {
    const times = [
      '2025-11-17T10:00:00',
      '2025-12-31T23:59:59',
      '2026-01-01T00:00:00',
      '2026-01-05T10:00:00',
    ].map(utc);
    expect(await loaded(log(times), utc('2026-01-05T10:00:00'))).toEqual(times);
    // The clock of a file server may be behind that of the log.
    expect(await loaded(log(times), utc('2026-01-04T10:00:00'))).toEqual(times);
    expect(await loaded(gzip(log(times)), utc('2026-01-05T11:00:00'), undefined, 'app_web.log.1.gz')).toEqual(
      times,
    );
  });

  it.each(['Europe/Oslo', 'America/Los_Angeles', 'Pacific/Kiritimati', 'Pacific/Pago_Pago', '+05:45'])(
    'are those of the zone %s',
    async (timezone) => {
      const newYear = utc('2025-12-31T23:00:00');
      const times = [-26, -14, -12, -2, -1, 0, 1, 2, 8, 10, 12, 13].map(
        (hours) => newYear + hours * 3_600_000,
      );
      expect(await loaded(log(times, timezone), times.at(-1)!, stampAgent(timezone))).toEqual(times);
    },
  );

  it('are one year earlier for each end of a year that follows them', async () => {
    const times = [
      '2023-11-30T10:00:00',
      '2024-02-28T10:00:00',
      '2024-02-29T10:00:00',
      '2024-03-01T10:00:00',
    ];
    times.push('2024-07-01T10:00:00', '2024-12-24T10:00:00', '2025-04-01T10:00:00', '2025-09-01T10:00:00');
    times.push('2025-12-30T10:00:00', '2026-01-02T10:00:00');
    expect(await loaded(log(times.map(utc)), utc('2026-01-02T10:00:01'))).toEqual(times.map(utc));
  });

  it('are also right if late lines surround the day on which a year ends', async () => {
    // A year before the latest possible time of the lines.
    const end = utc('2025-01-03T00:00:00');
    const late = Array.from({ length: 40 }, (_, i) => end + (i % 2 === 0 ? -i : i) * 60_000);
    const times = [
      utc('2024-04-01T10:00:00'),
      ...late,
      ...[60, 150, 240, 330, 364].map((days) => end + days * dayMs),
    ];
    expect(await loaded(log(times), times.at(-1)!)).toEqual(times);
  });

  it('are as late as possible if the lines are in no order', async () => {
    const times = [
      '2025-10-01T10:00:00',
      '2025-03-01T10:00:00',
      '2025-08-01T10:00:00',
      '2025-06-01T10:00:00',
    ].map(utc);
    expect(await loaded(log(times), utc('2025-10-02T00:00:00'))).toEqual(times);
  });

  it('are in the last leap year for a 29th of February', async () => {
    expect(await loaded('Feb 29 10:00:00 0 x\n', utc('2027-03-01T00:00:00'))).toEqual([
      utc('2024-02-29T10:00:00'),
    ]);
    const times = ['2028-02-28T10:00:00', '2028-02-29T10:00:00', '2028-03-01T10:00:00'].map(utc);
    expect(await loaded(log(times), utc('2028-03-01T10:00:00'))).toEqual(times);
  });

  it('have the year in the name of the file', async () => {
    const definition = stampAgent('UTC', 'app_(?P<host>.*)-(?P<year>\\d{4})\\.log');
    const times = ['2019-12-31T10:00:00', '2019-01-01T10:00:00'].map(utc);
    expect(await loaded(log(times), utc('2026-01-05T10:00:00'), definition, 'app_web-2019.log.1')).toEqual(
      times,
    );
  });

  it('of the lines by which a file has grown are counted back from its new modification time', async () => {
    const { folder, store } = await emptyStore();
    const definition = stampAgent();
    const path = join(folder, 'app_web.log');
    const first = ['2024-08-01T10:00:00', '2024-12-31T10:00:00'].map(utc);
    await fileOf(path, log(first), first.at(-1)!);
    await load(store, [path], { definition, now: () => nowMs });
    await appendFile(
      path,
      'Jan  1 00:00:00 2 x\nJul  1 00:00:00 3 x\nDec 31 00:00:00 4 x\nJan  1 00:00:00 5 x',
    );
    await utimes(path, nowMs / 1000, utc('2026-01-02T00:00:00') / 1000);
    await load(store, [path], { definition, now: () => nowMs });
    const grown = ['2025-01-01', '2025-07-01', '2025-12-31', '2026-01-01'].map((day) =>
      utc(`${day}T00:00:00`),
    );
    expect((await recordsOf(store)).map(({ time }) => time)).toEqual([...first, ...grown]);
  });

  it('are read back exactly, over some years and many frames, with and without threads', async () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 170 * 86_400 }), { minLength: 3, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(
        gaps,
        fc.integer({ min: 0, max: 3 * 365 }),
        fc.boolean(),
        async (days, start, threads) => {
          // Around each time, a run of lines that together exceed one frame.
          let at = utc('2021-01-01T00:00:00') + start * dayMs;
          const times = days.flatMap((gap) => {
            at += gap * 1000;
            const run = Array.from({ length: 4000 }, (_, i) => at + i * 1000);
            at = run.at(-1)!;
            return run;
          });
          const { folder, store } = await emptyStore();
          const text = log(times).replaceAll(
            'some text',
            'some text that makes lines long enough for many frames',
          );
          const path = await fileOf(join(folder, 'app_web.log'), text, at);
          const pool = threads ? { workers } : {};
          await load(store, [path], { definition: stampAgent(), now: () => nowMs, ...pool });
          expect((await recordsOf(store)).map(({ time }) => time)).toEqual(times);
        },
      ),
      { numRuns: caseCount(3) },
    );
  });
});

describe('lines that were rejected', () => {
  it('are read with the year in which they were written, however late they are loaded again', async () => {
    const { folder, store } = await emptyStore();
    const strict = {
      ...stampAgent(),
      file: { ...stampAgent().file!, regex: '^(?P<time>\\w{3} [ \\d]\\d \\S+) (?P<n>[0-4]) (?P<text>.*)$' },
    };
    const times = ['2023-06-01', '2023-12-01', '2024-05-01', '2024-11-01', '2025-04-01', '2025-10-01'];
    const all = times.map((day) => utc(`${day}T00:00:00`));
    const path = await fileOf(
      join(folder, 'app_web.log'),
      log(all) + 'Nov  5 00:00:00 6 x\n',
      utc('2025-11-06T00:00:00'),
    );
    await load(store, [path], { definition: strict, now: () => nowMs });
    await pour(store, {
      input: Readable.from([Buffer.from('Jul  2 00:00:00 3 x\nJul  1 23:00:00 7 x\n')]),
      definition: strict,
      now: () => nowMs,
    });
    const kept = await rejectedOf(join(folder, 'data'));
    expect(kept.map(({ writtenMs }) => writtenMs).sort()).toEqual([
      utc('2025-11-06T00:00:00'),
      utc('2025-11-06T00:00:00'),
      nowMs,
    ]);
    const later = nowMs + 400 * dayMs;
    await loadRejected({ store, definition: stampAgent(), timezone: 'UTC', now: () => later, workers });
    const found = (await recordsOf(store)).filter(({ n }) => n! > 4).sort((a, b) => a.n! - b.n!);
    expect(found.map(({ time }) => time)).toEqual([
      all[5],
      utc('2025-11-05T00:00:00'),
      utc('2031-07-01T23:00:00'),
    ]);
  });
});
