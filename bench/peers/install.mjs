/**
 * Installs the packages of the peers named on the command line, unless the pinned versions are installed already:
 *
 *     node bench/peers/install.mjs duckdb clickhouse sqlite ripgrep
 *
 * Exits with 1 where one of them could not be installed.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const known = ['duckdb', 'clickhouse', 'sqlite', 'ripgrep'];
const attemptsMax = 2;

function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/** Whether every pinned package is installed in its pinned version. Whether it works is not checked. */
function isFilled(folder) {
  try {
    return Object.entries(readManifest(folder).dependencies).every(
      ([name, version]) => readManifest(join(folder, 'node_modules', name)).version === version,
    );
  } catch {
    return false;
  }
}

function install(folder) {
  // npm passes its settings to scripts as npm_config_*; those of an outer `npm run` must not affect this installation.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([key]) => !/^npm_config_(prefix|global|local_prefix|workspace)/i.test(key),
    ),
  );
  const args = ['install', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  // The output of npm goes to standard error, as standard output is for the table of the benchmark.
  const stdio = ['ignore', 2, 2];
  return spawnSync(process.platform === 'win32' ? 'npm.cmd' : 'npm', args, { cwd: folder, env, stdio });
}

function fill(peer) {
  const folder = join(here, peer);
  for (let attempt = 1; !isFilled(folder); attempt++) {
    if (attempt > attemptsMax) return false;
    console.error(`bench/peers: installing ${peer} (once)…`);
    const { error, status } = install(folder);
    if (!isFilled(folder)) {
      console.error(
        `bench/peers: npm could not install ${peer}: ${error?.message ?? `it ended with ${status}`}`,
      );
    }
  }
  return true;
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((peer) => !known.includes(peer));
if (wanted.length === 0 || unknown.length > 0) {
  console.error(`Usage: node bench/peers/install.mjs PEER…, of ${known.join(', ')}`);
  process.exit(2);
}
process.exit(wanted.map(fill).every(Boolean) ? 0 : 1);
