import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadRejected } from '../../agents/load/load-rejected.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { changedStatus } from './faulty-files.js';
import { follow, range, type FollowedFolder } from './followed-folder.js';

const stamped = (timezone: string): Parameters<typeof follow>[0] => ({
  timestamp: { format: 'stamp', timezone },
  file: { regex: '^(?P<time>\\w{3} [ \\d]\\d \\S+) (?P<n>\\d+) (?P<text>.*)$' },
});

/** The times of all records by number, as ISO texts. */
async function timesOf(followed: FollowedFolder): Promise<string[]> {
  const records = (await followed.records()).sort((a, b) => a.n - b.n);
  return records.map(({ time }) => new Date(time).toISOString().slice(0, 19));
}

describe('a followed line without a year', () => {
  it.each([
    {
      what: 'is from this year if it is a second ahead of the clock, and from the last year if more than a day ahead',
      now: '2026-11-17T10:00:00',
      timezone: 'UTC',
      lines: ['Nov 17 10:00:00', 'Nov 17 10:00:01', 'Nov 18 10:00:00', 'Nov 18 10:00:01'],
      times: ['2026-11-17T10:00:00', '2026-11-17T10:00:01', '2026-11-18T10:00:00', '2025-11-18T10:00:01'],
    },
    {
      what: 'is from the old year just after New Year, and from the new year just before',
      now: '2027-01-01T00:00:00',
      timezone: 'UTC',
      lines: ['Dec 31 23:59:59', 'Jan  1 00:00:00', 'Jan  1 00:00:01', 'Jan  2 00:00:01'],
      times: ['2026-12-31T23:59:59', '2027-01-01T00:00:00', '2027-01-01T00:00:01', '2026-01-02T00:00:01'],
    },
    {
      what: 'is from the year in its zone',
      now: '2026-12-31T10:00:00',
      timezone: 'Pacific/Kiritimati',
      lines: ['Dec 31 23:59:59', 'Jan  1 00:00:00', 'Jan  2 00:00:00', 'Jan  2 00:00:01'],
      times: ['2026-12-31T09:59:59', '2026-12-31T10:00:00', '2027-01-01T10:00:00', '2026-01-01T10:00:01'],
    },
    {
      what: 'is from a leap year if it has the 29th of February',
      now: '2027-03-01T00:00:00',
      timezone: 'Europe/Oslo',
      lines: ['Feb 28 23:59:59', 'Feb 29 12:00:00', 'Mar  1 00:59:59'],
      times: ['2027-02-28T22:59:59', '2024-02-29T11:00:00', '2027-02-28T23:59:59'],
    },
  ])('$what', async ({ now, timezone, lines, times }) => {
    const followed = await follow({ ...stamped(timezone), startMs: Date.parse(`${now}Z`) });
    writeFileSync(followed.path('web.log'), lines.map((line, n) => `${line} ${n} x\n`).join(''));
    await followed.collect();
    expect(await timesOf(followed)).toEqual(times);
  });

  it('that was rejected is read again by the time at which it arrived', async () => {
    const followed = await follow({ ...stamped('UTC'), startMs: Date.parse('2026-12-31T23:59:59Z') });
    writeFileSync(followed.path('web.log'), 'Dec 31 23:00:00 0 x\nJan  1 00:00:00 number 1\n');
    await followed.collect();
    followed.pass(400 * 86_400_000);
    const { definition, store, now } = followed;
    const mended = {
      ...definition.file!,
      regex: '^(?P<time>\\w{3} [ \\d]\\d \\S+) number (?P<n>\\d+)(?P<text>)',
    };
    const workers = new WorkerPool(0);
    await loadRejected({ store, definition: { ...definition, file: mended }, timezone: 'UTC', now, workers });
    expect(await timesOf(followed)).toEqual(['2026-12-31T23:00:00', '2027-01-01T00:00:00']);
  });

  it('shows where to continue in a log whose disk has lost its end', async () => {
    const startMs = Date.parse('2027-01-01T00:00:00Z');
    // A file that was created and written in one tick of the clock does not show that its file system keeps the time of its creation.
    const files = changedStatus(() => ({ bornMs: 1 }));
    const followed = await follow({ ...stamped('UTC'), startMs, files });
    const path = followed.path('web.log');
    const before = range(0, 50).map((n) => `Dec 31 23:59:${String(n).padStart(2, '0')} ${n} some text\n`);
    writeFileSync(path, before.join(''));
    await followed.settle();
    await followed.stop();
    truncateSync(path, before.slice(0, 45).join('').length);
    appendFileSync(path, 'Jan  1 00:00:01 50 some text\nJan  1 00:00:02 51 some text\n');
    expect(readFileSync(path).length).toBeGreaterThan(1024);
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 52));
  });
});
