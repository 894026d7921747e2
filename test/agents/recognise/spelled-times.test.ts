import { describe, expect, it } from 'vitest';
import { fieldsOf, firstOf, recognised } from './recognised.js';

/** Lines with a time, and the instant that it means. */
const times: readonly (readonly [line: string, time: string])[] = [
  // AM or PM after the clock time.
  ['2026-11-17 01:02:03 PM ERROR x', '2026-11-17T13:02:03.000Z'],
  ['11/17/2026 1:02:03 PM: x', '2026-11-17T13:02:03.000Z'],
  ['11/17/26, 1:02:03 PM - x', '2026-11-17T13:02:03.000Z'],
  ['Nov 17, 2026, 1:02:03\u202fPM INFO x', '2026-11-17T13:02:03.000Z'],
  // A zone by name, and an offset in hours.
  ['[17-Nov-2026 13:02:03 Europe/Berlin] PHP Warning:  x', '2026-11-17T12:02:03.000Z'],
  ['2026-11-17 13:02:03 +02 INFO x', '2026-11-17T11:02:03.000Z'],
  // A date that is separated from the clock time by something other than a blank, or that follows it.
  ['2026-11-17  9:02:03 0 [Note] x', '2026-11-17T09:02:03.000Z'],
  ['2026-11-17|13:02:03|INFO|x', '2026-11-17T13:02:03.000Z'],
  ['2026-11-17,13:02:03,INFO,x', '2026-11-17T13:02:03.000Z'],
  ['2026-11-17\t13:02:03\tINFO\tx', '2026-11-17T13:02:03.000Z'],
  ['[2026-11-17] [13:02:03] INFO x', '2026-11-17T13:02:03.000Z'],
  ['nov/17/2026 13:02:03 system,info x', '2026-11-17T13:02:03.000Z'],
  ['[17/11/2026, 13:02:03] x', '2026-11-17T13:02:03.000Z'],
  ['17.11.26 13:02:03 INFO x', '2026-11-17T13:02:03.000Z'],
  ['13:02:03 17/11/2026 INFO x', '2026-11-17T13:02:03.000Z'],
  // Without seconds, and without separators.
  ['2026-11-17 13:02 INFO x', '2026-11-17T13:02:00.000Z'],
  ['20261117T130203Z INFO x', '2026-11-17T13:02:03.000Z'],
  // In keys.
  ['date=2026-11-17 time=13:02:03 level=notice', '2026-11-17T13:02:03.000Z'],
  ['date=2026-11-17 time=13:02:03 tz="+0100" level=notice', '2026-11-17T12:02:03.000Z'],
  ['{"date":"2026-11-17","time":"13:02:03","msg":"x"}', '2026-11-17T13:02:03.000Z'],
  ['{"__REALTIME_TIMESTAMP":"1794920523000000","MESSAGE":"x"}', '2026-11-17T13:02:03.000Z'],
  ['{"timeMillis":1794920523000,"message":"x"}', '2026-11-17T13:02:03.000Z'],
];

describe('recognised times', () => {
  it.each(times)('of %s have the right instant', (line, time) => {
    const trial = recognised(`${line}\n`.repeat(3));
    expect([firstOf(trial)['time'], trial.records, trial.unmatchedLines]).toEqual([time, 3, 0]);
  });

  it('are not assumed for a date in an unknown form, and no other date is read instead', () => {
    for (const line of ['Tue 17 Nov 13:02:03 2026 INFO x', '2026-W47-2 13:02:03 INFO x']) {
      const trial = recognised(`${line}\n`.repeat(3));
      expect(fieldsOf(trial)).not.toContain('time:15:04:05');
    }
    expect(fieldsOf(recognised('13:02:03 INFO x\n13:02:04 INFO y\n'))).toContain('time:15:04:05');
  });

  it('begin records most of whose lines have no time', () => {
    const trace = Array.from({ length: 20 }, (_line, i) => `#${i} /srv/app/file.php(${i}): f()\n`).join('');
    const trial = recognised(`[2026-11-17 13:02:03] production.ERROR: x\n[stacktrace]\n${trace}`.repeat(4));
    expect(trial).toMatchObject({ records: 4, unmatchedLines: 0, untimed: 0 });
    expect(firstOf(trial)).toEqual({
      time: '2026-11-17T13:02:03.000Z',
      environment: 'production',
      level: 'ERROR',
      message: expect.stringMatching(/^x\n/) as string,
    });
    // The time may be the whole line.
    const alone = recognised('2026-11-17T13:02:03.5Z\nThread 1 advanced\n  Current log# 3\n'.repeat(3));
    expect(alone).toMatchObject({ records: 3, unmatchedLines: 0 });
    expect(firstOf(alone)['message']).toBe('Thread 1 advanced\n  Current log# 3');
  });
});
