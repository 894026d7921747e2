import { resolve } from 'node:path';
import { isObjectPath } from '../../engine/index.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { folderKeys, folderOfGlob, keysIn, PathPattern } from '../definition/file-captures.js';

/**
 * The parsed fields that a file's path gives: the keys of an archive's `key=value` folders, and the captures of the file's
 * folders and of its name, which take precedence. Null values are left out.
 */
export function pathCaptures({ file, archive }: AgentDefinition, path: string): Map<string, string> {
  const pattern = file === undefined ? undefined : new PathPattern(file);
  const captures = new Map([...(pattern?.nameCaptures(path) ?? []), ...foldersOf(pattern, path)]);
  for (const [key, value] of archiveKeys(archive, path))
    if (value !== null && !captures.has(key)) captures.set(key, value);
  return captures;
}

/** The captures of a file's folders; empty where these do not match. */
function foldersOf(pattern: PathPattern | undefined, path: string): ReadonlyMap<string, string> {
  return pattern?.folderCaptures(isObjectPath(path) ? path : resolve(path)) ?? new Map();
}

/** The keys and values of the `key=value` folders of an archive that contain a file. */
export function archiveKeys(
  archive: ArchiveInput | undefined,
  path: string,
): ReadonlyMap<string, string | null> {
  if (archive === undefined) return new Map();
  const folders = archive.globs.map(({ glob }) => folderOfGlob(archive.folder, glob));
  return folderKeys(path, folders);
}

/** Tells whether the folders of other paths give fields other values than those of a file, so that equal files there have other records. */
export function isOtherFolder(
  { fields, file, archive }: AgentDefinition,
  path: string,
): (path: string) => boolean {
  const isUsed = ([key]: readonly [string, unknown]): boolean =>
    fields.some(({ source, template }) => source === key || template?.includes(key));
  const keys = [...archiveKeys(archive, path)].filter(isUsed);
  const pattern = file?.folderPatterns === undefined ? undefined : new PathPattern(file);
  const folders = [...foldersOf(pattern, path)].filter(isUsed);
  return (other) => {
    if (folders.length > 0) {
      const others = foldersOf(pattern, other);
      if (folders.some(([name, value]) => others.has(name) && others.get(name) !== value)) return true;
    }
    const theirs = keys.length === 0 ? null : keysIn(other);
    return keys.some(([key, value]) => theirs!.has(key) && theirs!.get(key) !== value);
  };
}
