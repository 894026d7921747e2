import fc from 'fast-check';

const tests = process.env['LOGSTRATA_TESTS'];

/** The seed of all random cases: the same one in each short run, otherwise one that vitest.config.ts draws and prints. */
export const seed = Number(process.env['LOGSTRATA_SEED']);

/** Whether this is `npm run test:long`. */
export const isLong = tests === 'long';

/** Whether the usual number of random cases is tried, so that each kind of case has come up: only then are such kinds counted. */
export const isWhole = tests !== 'short';

/** How many of a test's random cases this run tries: a tenth of the usual number in the short run, `long` ones in the long run. */
export function caseCount(usual: number, long = usual): number {
  if (isLong) return long;
  return isWhole ? usual : Math.ceil(usual / 10);
}

// For properties that set neither.
fc.configureGlobal({ seed, numRuns: caseCount(100) });

/** fast-check, with this run's seed. A test file that has random cases imports it from here, which also repeats the file in `npm run test:rest`. */
export { fc };
