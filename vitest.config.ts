import { defineConfig } from 'vitest/config';

const long = process.env.LOGSTRATA_LONG === '1';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Crash and property runs are bounded by their own case counts, not by a stopwatch; this only ends a hang.
    testTimeout: long ? 3_600_000 : 120_000,
    hookTimeout: 120_000,
    // So does this, for what must come to be: a busy machine may give a test nothing for seconds.
    expect: { poll: { timeout: 60_000 } },
    // The test machine has few cores and the process tests start servers of their own.
    maxWorkers: 2,
  },
});
