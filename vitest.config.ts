import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Which tests run: `short` is `npm test`, `rest` is `npm run test:rest`, `long` is `npm run test:long`, which has all of them with many more
 * random cases. Without it, as when vitest is called by hand, all run.
 */
const tests = process.env['LOGSTRATA_TESTS'];

/** What the short run leaves out, by the beginnings of paths: processes, real servers, browsers, other programs. */
const later = [
  'bench/',
  'cli/',
  'collectors/interleavings',
  'deploy/',
  'far/',
  'faults/',
  'foreign/attached-arrow',
  'foreign/complete',
  'foreign/other-writers',
  'foreign/parquet-decode',
  'fugo/',
  'objects/',
  'oracle/',
  'parquet/duckdb',
  'processes/',
  'readers/cli',
  'scan/turns',
  'systems/',
  'viewer/',
];
/** What the short run has of that: what needs only its own process, and one walk through each door. */
const sooner = [
  'cli/agent',
  'cli/formats',
  'cli/help',
  'cli/usage',
  'far/condition',
  'far/expected-rows',
  'far/native',
  'far/placed-columns',
  'far/ship-policy',
  'viewer/first-page',
  'viewer/query',
  'viewer/records',
  'viewer/window',
];

const root = import.meta.dirname;

/** The files of this run. The short run tries a tenth of the random cases (`test/cases.ts`), so the rest has files with such cases again. */
function testFiles(): string[] {
  const begins = (name: string, places: readonly string[]): boolean =>
    places.some((place) => name.startsWith(place));
  const isShort = (name: string): boolean => !begins(name, later) || begins(name, sooner);
  const hasRandomCases = (name: string): boolean =>
    /import \{[^}]*\b(caseCount|fc|isWhole|seed)\b[^}]*\} from '[./]+\/cases\.js'/.test(
      readFileSync(join(root, 'test', name), 'utf8'),
    );
  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
    .filter((name) => {
      if (tests === 'short') return isShort(name);
      return tests !== 'rest' || !isShort(name) || hasRandomCases(name);
    })
    .map((name) => `test/${name}`);
}

// Workers inherit it. The short run always tries the same cases, so that it does not fail by chance; the others print what repeats theirs.
if (process.env['LOGSTRATA_SEED'] === undefined) {
  process.env['LOGSTRATA_SEED'] = tests === 'short' ? '1' : String(Date.now() % 1_000_000);
  if (tests !== 'short')
    process.stdout.write(`random cases: LOGSTRATA_SEED=${process.env['LOGSTRATA_SEED']}\n`);
}

/** What takes longest, most of it in processes of its own: begun last, it would be waited for by itself. */
const longest = /test\/(viewer|bench|cli|conformance|deploy|far|faults|frozen|fugo|processes)\//;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLongest = ({ moduleId }: TestSpecification): boolean => longest.test(moduleId);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

const product = ['engine', 'agents', 'server', 'bench'];

/**
 * Has tests import the product from dist/, where Node reads the modules itself: transforming and linking them for each test file anew
 * took a sixth of the suite's processor time. It is an error if a file of the product was changed after the last build.
 */
const productFromBuild: Plugin = {
  name: 'product-from-build',
  enforce: 'pre',
  buildStart() {
    const lastBuild = statSync(join(root, 'dist/build-ended'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    for (const folder of product)
      for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
        if (!/\.(ts|tsx|mjs)$/.test(name) || name.includes('node_modules')) continue;
        if (statSync(join(root, folder, name)).mtimeMs > lastBuild)
          throw new Error(
            `${join(folder, name)} is newer than dist/: run "npm run build", or "npm test", which does`,
          );
      }
  },
  resolveId(name, importer) {
    if (importer === undefined || !name.startsWith('.') || !name.endsWith('.js')) return null;
    const path = relative(root, resolve(dirname(importer), name));
    const built = join(root, 'dist', path);
    // The build makes no module of most files of the viewer's page.
    return product.includes(path.split(sep)[0]!) && existsSync(built) ? built : null;
  },
};

export default defineConfig({
  plugins: [productFromBuild],
  test: {
    include: testFiles(),
    server: { deps: { external: [/[\\/]dist[\\/](engine|agents|server|bench)[\\/]/] } },
    sequence: { sequencer: LongestFirst },
    // Crash and property runs are bounded by their own case counts, not by a stopwatch; this only ends a hang.
    testTimeout: tests === 'long' ? 3_600_000 : 300_000,
    hookTimeout: 300_000,
    // So does this, for what must come to be: a busy machine may give a test nothing for seconds.
    expect: { poll: { timeout: 60_000 } },
    // The test machine has few cores, and the process tests start servers of their own, which they also wait for.
    maxWorkers: 3,
  },
});
