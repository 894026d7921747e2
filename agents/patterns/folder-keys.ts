import { resolve } from 'node:path';
import { isObjectPath } from '../../engine/index.js';

/** Folder name for null that Hive, Spark and DuckDB write. */
const nullFolder = '__HIVE_DEFAULT_PARTITION__';

/** Characters that make a path component of a glob a pattern. */
const globCharacters = /[*?[\]{}()!@+\\]/;

/** The path of a glob before its first component that is a pattern: `/a/b` of `/a/b/c?/d.parquet`. Empty where there is none. */
export function fixedBeginning(glob: string): string {
  const parts = glob.split('/');
  const first = parts.findIndex((part, i) => i === parts.length - 1 || globCharacters.test(part));
  return first === 1 && parts[0] === '' ? '/' : parts.slice(0, first).join('/');
}

/** The fixed beginning of a glob as an absolute path, or as a prefix of object paths. */
export function folderOfGlob(folder: string, glob: string): string {
  return isObjectPath(glob) ? fixedBeginning(glob) : resolve(folder, fixedBeginning(glob));
}

/** The keys of the `key=value` folders that a glob names. */
export function keysOfGlob(glob: string): string[] {
  return glob
    .split('/')
    .slice(0, -1)
    .flatMap((part) => /^([^=*?[\]{}()]+)=/.exec(part)?.[1] ?? []);
}

/**
 * The keys and values of the `key=value` folders (Hive partitions) between one of `folders`, which are absolute, and the
 * file. Percent escapes are decoded; Hive's folder for null gives null. Of several `folders` that contain the file the
 * outermost counts; of a key that occurs twice, the last. Empty where none of `folders` contains the file.
 */
export function folderKeys(path: string, folders: readonly string[]): ReadonlyMap<string, string | null> {
  const place = isObjectPath(path) ? path : resolve(path);
  const holding = folders.filter((folder) => place.startsWith(folder.endsWith('/') ? folder : `${folder}/`));
  const outermost = holding.toSorted((a, b) => a.length - b.length)[0];
  return outermost === undefined ? new Map() : keysIn(place.slice(outermost.length));
}

/** The keys and values of all `key=value` folders of a path. */
export function keysIn(path: string): Map<string, string | null> {
  const keys = new Map<string, string | null>();
  for (const part of path.split('/').slice(0, -1)) {
    const equals = part.indexOf('=');
    if (equals <= 0) continue;
    const value = unescaped(part.slice(equals + 1));
    keys.set(unescaped(part.slice(0, equals)), value === nullFolder ? null : value);
  }
  return keys;
}

/** Decodes percent escapes: `%3A` is `:`. Invalid escapes, and those that do not give UTF-8, are left as they are. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-fA-F]{2})/g, '%25'));
  } catch {
    return text;
  }
}
