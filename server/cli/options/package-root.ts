import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert } from '../../../engine/index.js';

/** The folder that the package was installed or cloned to. It contains package.json, `agents/` and `data/samples/`. */
export function packageRoot(): string {
  // Built code is nested deeper than its source, so the folder is searched for upwards.
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    assert(dirname(folder) !== folder, 'no package.json above the code');
    folder = dirname(folder);
  }
  return folder;
}

/** The version in package.json. */
export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}
