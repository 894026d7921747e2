import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { generateLines } from '../../bench/generated-lines.js';
import { arrivalTimes } from '../../bench/arrivals.js';
import { Random, WeightedIndex, zipfWeights } from '../../bench/random.js';

const root = join(import.meta.dirname, '../..');
const startMs = Date.UTC(2026, 10, 17);

function linesOf(format: string, rows: number, seed: number, days = 3): string[] {
  return [...(generateLines(format, { rows, days, startMs, seed }) ?? [])];
}

describe('the generator', () => {
  it('writes the shipped samples, byte for byte', () => {
    const nginx = readFileSync(join(root, 'data/samples/nginx.log'), 'utf8');
    const app = readFileSync(join(root, 'data/samples/app.log'), 'utf8');
    expect(`${linesOf('combined', 10_000, 17).join('\n')}\n` === nginx).toBe(true);
    expect(`${linesOf('app', 2_000, 18).join('\n')}\n` === app).toBe(true);
  });

  it('writes the same requests as JSON and as combined lines', () => {
    const json = linesOf('json', 500, 3).map(
      (line) => JSON.parse(line) as Record<string, string | number | null>,
    );
    const combined = linesOf('combined', 500, 3);
    expect(combined).toHaveLength(500);
    json.forEach((record, i) => {
      expect(combined[i]).toContain(
        `${record.method} ${record.path} HTTP/1.1" ${record.status} ${record.bytes} `,
      );
      expect(record.message).toContain(record.request_id);
    });
    expect(new Set(json.map((record) => record.request_id)).size).toBe(500);
    expect(linesOf('json', 5, 3)).not.toEqual(linesOf('json', 5, 4));
  });

  it('stays close to the sizes that the figures assume', () => {
    const mean = (format: string): number => linesOf(format, 2000, 5).join('\n').length / 2000;
    expect(mean('json')).toBeGreaterThan(450);
    expect(mean('json')).toBeLessThan(550);
    expect(mean('combined')).toBeGreaterThan(200);
    expect(mean('combined')).toBeLessThan(250);
  });

  it('has ascending times within the days, with more lines by day than by night', () => {
    const times = [...arrivalTimes(50_000, startMs, 3, new Random(9))];
    expect(times).toHaveLength(50_000);
    expect(times[0]).toBeGreaterThanOrEqual(startMs);
    expect(times.at(-1)).toBeLessThan(startMs + 3 * 86_400_000);
    expect(times.every((time, i) => i === 0 || time >= times[i - 1]!)).toBe(true);
    const inHour = (hour: number): number =>
      times.filter((time) => new Date(time).getUTCHours() === hour).length;
    expect(inHour(11)).toBeGreaterThan(3 * inHour(4));
  });

  it('draws values as often as their weights say', () => {
    const weights = zipfWeights(5, 1);
    const index = new WeightedIndex(weights);
    const random = new Random(1);
    const counts = [0, 0, 0, 0, 0];
    for (let i = 0; i < 100_000; i++) counts[index.draw(random)]! += 1;
    const sum = weights.reduce((a, b) => a + b, 0);
    counts.forEach((count, i) => expect(Math.abs(count / 100_000 - weights[i]! / sum)).toBeLessThan(0.01));
  });

  it('refuses other formats', () => {
    expect(generateLines('xml', { rows: 1, days: 1, startMs, seed: 1 })).toBeUndefined();
  });
});
