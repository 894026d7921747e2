import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../server/cli/options.js';

/** The folders that may contain a peer's packages. The DuckDB that the tests install is used as well. */
function foldersOf(peer: string): string[] {
  const own = join(packageRoot(), 'bench/peers', peer);
  return peer === 'duckdb' ? [own, join(packageRoot(), 'test/oracle')] : [own];
}

/** The folder of a package of a peer; undefined where it is not installed. */
export function peerPackageFolder(peer: string, name: string): string | undefined {
  return foldersOf(peer)
    .map((folder) => join(folder, 'node_modules', name))
    .find((folder) => existsSync(join(folder, 'package.json')));
}

/** The path of the module `name` of a peer's package. Throws where it is not installed. */
export function resolvePeer(peer: string, name: string): string {
  const packageName = name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');
  const folder = foldersOf(peer).find((each) => existsSync(join(each, 'node_modules', packageName)));
  if (folder === undefined) {
    throw new Error(`${packageName} is not installed; run: node bench/peers/install.mjs ${peer}`);
  }
  return createRequire(join(folder, 'package.json')).resolve(name);
}

/** Imports a package of a peer. There are no types for it where it is not installed, so the caller declares the part that it uses. */
export async function importPeer<T>(peer: string, name: string): Promise<T> {
  return (await import(pathToFileURL(resolvePeer(peer, name)).href)) as T;
}
