import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert } from '../../../engine/index.js';

/** The folder that the package was installed or cloned to: it holds package.json, `agents/` and `data/samples/`. */
export function packageRoot(): string {
  // Built code lies in deeper folders than its source, so look upwards instead of counting.
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    assert(dirname(folder) !== folder, 'no package.json above the code');
    folder = dirname(folder);
  }
  return folder;
}

/** The version that package.json names. */
export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}
