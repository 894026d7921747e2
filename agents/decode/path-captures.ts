import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { fileCaptures, folderKeys, folderOfGlob, keysIn } from '../definition/file-captures.js';

/**
 * The parsed fields that a file's path gives: the keys of an archive's `key=value` folders, and the captures of the file's
 * name, which take precedence. Null values are left out.
 */
export function pathCaptures({ file, archive }: AgentDefinition, path: string): Map<string, string> {
  const captures = file === undefined ? new Map<string, string>() : fileCaptures(file.namePattern, path);
  for (const [key, value] of archiveKeys(archive, path))
    if (value !== null && !captures.has(key)) captures.set(key, value);
  return captures;
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
export function isOtherFolder({ fields, archive }: AgentDefinition, path: string): (path: string) => boolean {
  const keys = [...archiveKeys(archive, path)].filter(([key]) =>
    fields.some(({ source, template }) => source === key || template?.includes(key)),
  );
  return (other) => {
    const theirs = keys.length === 0 ? null : keysIn(other);
    return keys.some(([key, value]) => theirs!.has(key) && theirs!.get(key) !== value);
  };
}
