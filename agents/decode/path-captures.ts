import type { AgentDefinition } from '../definition/definition.js';
import { fileCaptures } from '../patterns/file-captures.js';
import { folderKeys, folderOfGlob } from '../patterns/folder-keys.js';

/**
 * The parsed fields that a file's path gives: the keys of an archive's `key=value` folders, and the captures of the file's
 * name, which take precedence. Null values are left out.
 */
export function pathCaptures({ file, archive }: AgentDefinition, path: string): Map<string, string> {
  const captures = file === undefined ? new Map<string, string>() : fileCaptures(file.namePattern, path);
  if (archive === undefined) return captures;
  const folders = archive.globs.map(({ glob }) => folderOfGlob(archive.folder, glob));
  for (const [key, value] of folderKeys(path, folders))
    if (value !== null && !captures.has(key)) captures.set(key, value);
  return captures;
}
