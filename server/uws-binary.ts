import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as UwsModule from 'uWebSockets.js';

export type Uws = typeof UwsModule;

const require = createRequire(import.meta.url);

/**
 * The native uWebSockets.js for this Node, platform and processor, or undefined when there is none. The package itself would
 * fall back to an implementation in JavaScript, with a warning on the console; then node:http is the better one.
 */
export function loadUws(): Uws | undefined {
  // The gate speaks to it over a Unix socket, which it does not listen on there.
  if (process.platform === 'win32') return undefined;
  const file = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  let entry: string;
  try {
    entry = require.resolve('uWebSockets.js');
  } catch {
    return undefined;
  }
  // The republication keeps its binaries in a folder beside that of its entry, upstream keeps them beside the entry.
  const candidates = [join(dirname(entry), '..', 'binaries', file), join(dirname(entry), file)];
  const path = candidates.find((candidate) => existsSync(candidate));
  if (path === undefined) return undefined;
  try {
    return require(path) as Uws;
  } catch {
    // Built against another C library: as good as none.
    return undefined;
  }
}
