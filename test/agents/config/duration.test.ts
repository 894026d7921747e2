import { describe, expect, test } from 'vitest';
import { parseByteSize, parseDuration } from '../../../agents/definition/quantities.js';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

describe('durations', () => {
  test.each([
    ['90', 90_000],
    ['90s', 90_000],
    ['15m', 15 * minuteMs],
    ['12h', 12 * hourMs],
    ['7d', 7 * dayMs],
    ['1d 14h', dayMs + 14 * hourMs],
    ['2D3H', 2 * dayMs + 3 * hourMs],
    ['1d12h30m15s', dayMs + 12 * hourMs + 30 * minuteMs + 15_000],
    ['1m 30', minuteMs + 30_000],
    ['250ms', 250],
    ['0.5s', 500],
    ['1.5h', 90 * minuteMs],
    [' 10 s ', 10_000],
    ['0', 0],
  ])('%j', (text, expected) => {
    expect(parseDuration(text)).toBe(expected);
  });

  test.each(['', ' ', 's', '1x', '-5s', '5 5', '1h 2 3m', '1e3', 'never', '1d,2h', '99999999999999999999d'])(
    '%j is none',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

describe('sizes', () => {
  test.each([
    ['100', 100],
    ['1kb', 1024],
    ['10MB', 10 * 1024 ** 2],
    ['1.5 gb', 1.5 * 1024 ** 3],
    ['7b', 7],
  ])('%j', (text, expected) => {
    expect(parseByteSize(text)).toBe(expected);
  });

  test.each(['', 'kb', '10tb', '-1kb', '1k', '10 m b', '99999999999999999gb'])('%j is not a size', (text) => {
    expect(parseByteSize(text)).toBeUndefined();
  });
});
