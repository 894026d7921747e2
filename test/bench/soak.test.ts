import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { plotSoak } from '../../bench/report/soak-plot.js';
import { readValues, UsageFailure } from '../../bench/runner.js';
import { benchmark, soakOptionsOf } from '../../bench/soak/run.js';
import type { SoakOptions } from '../../bench/soak/result.js';
import { Walker } from '../../bench/soak/paging-client.js';
import { slopeOf } from '../../bench/slope.js';
import { runSoak } from '../../bench/soak/soak.js';

const readSoakOptions = (args: readonly string[]): SoakOptions => soakOptionsOf(readValues(benchmark, args));

it('counts every record of a small soak, and plots its measurements', async () => {
  const options = readSoakOptions(['--minutes', '0.1', '--rate', '3000', '--clients', '6']);
  const result = await runSoak(options, () => {}, new AbortController().signal);
  const { lines, clients, samples } = result;
  expect(result.settings).toEqual({ minutes: 0.1, rate: 3000, clients: 6, cacheMib: options.cacheMib });
  expect(lines.written).toBeGreaterThan(3000);
  expect(lines).toMatchObject({ stored: lines.written - lines.removed, rejected: 0 });
  // Five clients follow a tenth of the records each, and have received them up to the end; the sixth walks.
  expect(clients).toMatchObject({ count: 6 });
  expect(clients.records).toBeGreaterThan(Math.floor(lines.written / 10) * 5);
  expect(samples.length).toBeGreaterThan(2);
  for (const [i, sample] of samples.entries()) {
    expect(sample.rssBytes).toBeGreaterThan(10_000_000);
    expect(sample.handles).toBeGreaterThan(5);
    // Processor time is counted in hundredths of a second, and late samples of a busy machine follow one another quickly.
    const seconds = sample.seconds - (samples[i - 1]?.seconds ?? 0);
    expect(sample.cpuCores * seconds).toBeLessThan(result.machine.cores * seconds + 0.1);
  }
  const plot = plotSoak(result);
  expect(plot.match(/<polyline /g)).toHaveLength(5);
  expect(plot).not.toContain('NaN');
});

it('ends early when it is told to, with every line counted', async () => {
  const options = readSoakOptions(['--minutes', '60', '--rate', '500', '--clients', '1']);
  const end = new AbortController();
  // It reports its first second, however long its start took.
  const { lines, samples } = await runSoak(options, () => end.abort(), end.signal);
  expect(samples.at(-1)!.seconds).toBeLessThan(60);
  expect(lines.written).toBeGreaterThan(0);
  expect(lines).toMatchObject({ stored: lines.written - lines.removed, rejected: 0 });
});

describe('a client that walks back and forth', () => {
  const cursorOf = (n: number): string => n.toString(16).padStart(16, '0');

  /** Walks over records 1 to 12,000 of a server that, after the forward walk was requested, has only the records for which `isThere` holds. */
  async function walk(isThere: (n: number) => boolean): Promise<void> {
    let numbers = Array.from({ length: 12_000 }, (_, i) => i + 1);
    const server = createServer(({ url }, response) => {
      const asked = new URL(url!, 'http://localhost').searchParams;
      const [after, before] = [asked.get('after'), asked.get('before')];
      if (after !== null) numbers = numbers.filter(isThere);
      const limit = Number(asked.get('limit'));
      const found = numbers.filter(
        (n) => (after === null || cursorOf(n) > after) && (before === null || cursorOf(n) < before),
      );
      const page = after === null ? found.slice(-limit) : found.slice(0, limit);
      response.end(page.map((n) => `{"_cursor":"${cursorOf(n)}","n":${n}}\n`).join(''));
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const walker = new Walker(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, 0);
    const walking = walker.run();
    let isOver = false;
    walking.catch(() => undefined).finally(() => (isOver = true));
    while (!isOver && walker.counts.pages < 6) await new Promise(setImmediate);
    walker.stop();
    await walking;
  }

  it('accepts a server that has all records, or from which retention has removed the oldest', async () => {
    await walk(() => true);
    await walk((n) => n > 7000);
  });

  it('detects a missing record', async () => {
    await expect(walk((n) => n !== 7000)).rejects.toThrow(
      'on the way back 0000000000001b58 was met, and 0000000000001b59 on the way forth',
    );
  });
});

it('computes the growth of memory from the best-fitting line', () => {
  expect(slopeOf([0, 1, 2, 3], [5, 7, 9, 11])).toBe(2);
  expect(slopeOf([0, 1, 2], [1, 5, 1])).toBe(0);
  expect(slopeOf([4], [1])).toBe(0);
});

it.each([
  [['--minutes', '0'], '--minutes must be a number from 0.01 to 10000, not "0"'],
  [['--clients', '2.5'], '--clients must be a whole number from 1 to 1000, not "2.5"'],
  [['--rate', 'fast'], '--rate must be a whole number from 1 to 1000000, not "fast"'],
])('refuses %j', (args, message) => {
  expect(() => readSoakOptions(args)).toThrow(new UsageFailure(message));
});
