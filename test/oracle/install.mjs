/**
 * Installs DuckDB into this folder's node_modules, unless the pinned version is there already. The folder is a package of its own, without
 * a lockfile, because a lockfile made on one platform cannot hold the builds of the others, and `npm ci` of the root package would then
 * fail on those.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const attemptsMax = 3;

function pinnedVersions() {
  return JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')).dependencies;
}

/** Whether every pinned package is installed in its pinned version, and its native build for this platform can be loaded. */
function isFilled() {
  const require = createRequire(join(here, 'package.json'));
  try {
    for (const [name, version] of Object.entries(pinnedVersions())) {
      const manifest = JSON.parse(readFileSync(join(here, 'node_modules', name, 'package.json'), 'utf8'));
      if (manifest.version !== version) return false;
      require(name);
    }
    return true;
  } catch {
    return false;
  }
}

function install() {
  // npm passes its settings to scripts as npm_config_*; those of the outer `npm test` must not affect this install.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([key]) => !/^npm_config_(prefix|global|local_prefix|workspace)/i.test(key),
    ),
  );
  const args = ['install', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  return spawnSync(process.platform === 'win32' ? 'npm.cmd' : 'npm', args, {
    cwd: here,
    env,
    stdio: 'inherit',
  });
}

for (let attempt = 1; !isFilled(); attempt++) {
  if (attempt === 1) console.log('test/oracle: installing DuckDB (once)…');
  const result = install();
  if (isFilled()) break;
  if (attempt === attemptsMax) {
    const wanted = Object.entries(pinnedVersions()).map(([name, version]) => `${name}@${version}`);
    console.error(
      `test/oracle: could not install ${wanted.join(', ')} (npm ended with ${result.error?.message ?? `code ${result.status}`}).\n` +
        'The tests compare sealed files with it. Check that npm reaches its registry and that there is a build for\n' +
        `${process.platform}-${process.arch}, then run: node test/oracle/install.mjs`,
    );
    process.exit(1);
  }
}
