import { DamageError } from '../../terms/errors.js';
import type { Directory } from '../disk/directory.js';
import { isRemovalName } from '../disk/removal-name.js';
import { listManifests } from './manifest-file.js';
import { isFarOnly, type Manifest, type RejectedEntry } from './manifest.js';

/**
 * Paths, relative to the agent's folder, of all files of a committed state: those that the manifest names, and the files of rejected lines
 * that hot batches have added since.
 */
export function namedFiles(manifest: Manifest, hotRejected: readonly RejectedEntry[]): Set<string> {
  const files = new Set<string>();
  for (const entry of manifest.segments) if (!isFarOnly(entry)) files.add(entry.file);
  for (const { file } of manifest.hot) files.add(file);
  for (const { file, indexes } of manifest.attached) for (const own of [file, ...indexes]) files.add(own);
  for (const { file } of [...manifest.rejected, ...hotRejected]) files.add(file);
  return files;
}

const ownFolders = /^(dt=\d{4,}-\d\d-\d\d|hot|rejected|attached)$/;

const ownNames = /^[0-9a-f]{12}(-\d{5,})?\.(parquet|arrows|jsonl|list|index)$/;

/** The archive's own files in an agent's folder that its newest state does not name. Crashes leave such files behind. */
export async function unnamedFiles(
  directory: Directory,
  agent: string,
  named: ReadonlySet<string>,
): Promise<string[]> {
  return (await ownFiles(directory, agent)).filter((file) => !named.has(file));
}

/**
 * The error where a manifest was lost, for example by an incomplete copy of the folder: the newest is alone, although two are kept, and
 * there are files that it does not name. Files of rejected lines are not counted, since hot files name them too.
 */
export async function lostManifest(directory: Directory, newest: Manifest): Promise<DamageError | undefined> {
  const { agent, number } = newest;
  const isAlone = async (): Promise<boolean> => {
    const { numbers } = await listManifests(directory, agent);
    return number > 1 && numbers.length === 1 && numbers[0] === number;
  };
  if (!(await isAlone())) return undefined;
  const unnamed = await unnamedFiles(directory, agent, namedFiles(newest, []));
  const files = unnamed.filter((file) => !file.startsWith('rejected/')).length;
  // A folder that is listed while its writer publishes may seem to have one manifest. It then has others the next time.
  if (files === 0 || !(await isAlone())) return undefined;
  const path = `${directory.location}/${agent}`;
  return new DamageError(
    `${path} has lost its newest manifest: of the two that are kept, only number ${number} is there, and ${files} ${files === 1 ? 'file of records is' : 'files of records are'} in no manifest. ` +
      `Copy the folder again if it is a copy, or run \`logstrata verify ${agent} --repair\` to adopt ${files === 1 ? 'it' : 'them'}`,
    { path },
  );
}

/** Renamed segment files whose removal was interrupted. They hold no live records. */
export async function renamedFiles(directory: Directory, agent: string): Promise<string[]> {
  const files: string[] = [];
  for (const folder of await directory.list(agent)) {
    if (!folder.startsWith('dt=')) continue;
    for (const name of await directory.list(`${agent}/${folder}`))
      if (isRemovalName(name)) files.push(`${folder}/${name}`);
  }
  return files;
}

/** The archive's own files in an agent's folder, named by a manifest or not. Excludes renamed segments that wait for their removal. */
export async function ownFiles(directory: Directory, agent: string): Promise<string[]> {
  const files: string[] = [];
  for (const folder of await directory.list(agent)) {
    if (!ownFolders.test(folder)) continue;
    for (const name of await directory.list(`${agent}/${folder}`)) {
      const file = `${folder}/${name}`;
      if (ownNames.test(name)) files.push(file);
    }
  }
  return files;
}
