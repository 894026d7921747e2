import { expect, it } from 'vitest';
import { UsageFailure } from '../../bench/options.js';
import { plotSoak } from '../../bench/report/soak-plot.js';
import { readSoakOptions } from '../../bench/soak/options.js';
import { slopeOf } from '../../bench/soak/result.js';
import { runSoak } from '../../bench/soak/soak.js';

it('counts every record of a small soak, and plots what it saw', async () => {
  const options = readSoakOptions(['--minutes', '0.1', '--rate', '3000', '--clients', '6'])!;
  const result = await runSoak(options, () => {}, new AbortController().signal);
  const { lines, clients, samples } = result;
  expect(result.settings).toEqual({ minutes: 0.1, rate: 3000, clients: 6, cacheMib: options.cacheMib });
  expect(lines.written).toBeGreaterThan(3000);
  expect(lines).toMatchObject({ stored: lines.written - lines.removed, rejected: 0 });
  // Five clients follow a tenth of the records each, and have seen it to its end; the sixth walks.
  expect(clients).toMatchObject({ count: 6 });
  expect(clients.records).toBeGreaterThan(Math.floor(lines.written / 10) * 5);
  expect(samples.length).toBeGreaterThan(2);
  for (const sample of samples) {
    expect(sample.rssBytes).toBeGreaterThan(10_000_000);
    expect(sample.handles).toBeGreaterThan(5);
    // Processor time is counted in hundredths of a second.
    expect(sample.cpuCores).toBeLessThan(result.machine.cores + 0.1);
  }
  const plot = plotSoak(result);
  expect(plot.match(/<polyline /g)).toHaveLength(5);
  expect(plot).not.toContain('NaN');
});

it('ends before its time when it is told to, with every line counted', async () => {
  const options = readSoakOptions(['--minutes', '60', '--rate', '500', '--clients', '1'])!;
  const end = new AbortController();
  // It tells of its first second, however long its start took.
  const { lines, samples } = await runSoak(options, () => end.abort(), end.signal);
  expect(samples.at(-1)!.seconds).toBeLessThan(60);
  expect(lines.written).toBeGreaterThan(0);
  expect(lines).toMatchObject({ stored: lines.written - lines.removed, rejected: 0 });
});

it('tells how memory grows by the line that fits best', () => {
  expect(slopeOf([0, 1, 2, 3], [5, 7, 9, 11])).toBe(2);
  expect(slopeOf([0, 1, 2], [1, 5, 1])).toBe(0);
  expect(slopeOf([4], [1])).toBe(0);
});

it.each([
  [['--minutes', '0'], '--minutes must be a number above 0, not "0"'],
  [['--clients', '2.5'], '--clients must be a whole number, not "2.5"'],
  [['--rate', 'fast'], '--rate must be a number above 0, not "fast"'],
])('refuses %j', (args, message) => {
  expect(() => readSoakOptions(args)).toThrow(new UsageFailure(message));
});
