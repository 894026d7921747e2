import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
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

const root = import.meta.dirname;
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
    include: ['test/**/*.test.ts'],
    server: { deps: { external: [/[\\/]dist[\\/](engine|agents|server|bench)[\\/]/] } },
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
