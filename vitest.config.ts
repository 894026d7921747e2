import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const long = process.env.LOGSTRATA_LONG === '1';

/** What takes longest, most of it in processes of its own: begun last, it would be waited for by itself. */
const longest = /test\/(viewer|bench|cli|conformance|deploy|far|faults|frozen|fugo|processes)\//;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLongest = ({ moduleId }: TestSpecification): boolean => longest.test(moduleId);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    sequence: { sequencer: LongestFirst },
    // Crash and property runs are bounded by their own case counts, not by a stopwatch; this only ends a hang.
    testTimeout: long ? 3_600_000 : 300_000,
    hookTimeout: 120_000,
    // So does this, for what must come to be: a busy machine may give a test nothing for seconds.
    expect: { poll: { timeout: 60_000 } },
    // The test machine has few cores, and the process tests start servers of their own, which they also wait for.
    maxWorkers: 3,
  },
});
