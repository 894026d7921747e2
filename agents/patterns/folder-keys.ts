import { resolve } from 'node:path';
import { isObjectPath } from '../../engine/index.js';

/** What stands for null in the names of folders that Hive, Spark and DuckDB write. */
const nullFolder = '__HIVE_DEFAULT_PARTITION__';

/** The characters by which a part of a glob is more than a name. */
const globCharacters = /[*?[\]{}()!@+\\]/;

/** The folder of a glob before the first part that is a pattern: `/a/b` of `/a/b/c?/d.parquet`. Empty for none. */
export function fixedBeginning(glob: string): string {
  const parts = glob.split('/');
  const first = parts.findIndex((part, i) => i === parts.length - 1 || globCharacters.test(part));
  return first === 1 && parts[0] === '' ? '/' : parts.slice(0, first).join('/');
}

/** That folder as an absolute path, or as the beginning of paths of objects. */
export function folderOfGlob(folder: string, glob: string): string {
  return isObjectPath(glob) ? fixedBeginning(glob) : resolve(folder, fixedBeginning(glob));
}

/** The keys of the folders `key=value` that a glob names. */
export function keysOfGlob(glob: string): string[] {
  return glob
    .split('/')
    .slice(0, -1)
    .flatMap((part) => /^([^=*?[\]{}()]+)=/.exec(part)?.[1] ?? []);
}

/**
 * The keys and values of the folders `key=value` between one of `folders`, which are absolute, and the file, as Hive names partitions: percent
 * signs and hexadecimal digits stand for bytes, null for the folder of nulls. Of folders that hold the file the outermost counts; of a key that
 * comes twice the last. Empty where none holds it.
 */
export function folderKeys(path: string, folders: readonly string[]): ReadonlyMap<string, string | null> {
  const keys = new Map<string, string | null>();
  const place = isObjectPath(path) ? path : resolve(path);
  const holding = folders.filter((folder) => place.startsWith(folder.endsWith('/') ? folder : `${folder}/`));
  const outermost = holding.toSorted((a, b) => a.length - b.length)[0];
  if (outermost === undefined) return keys;
  for (const part of place.slice(outermost.length).split('/').slice(0, -1)) {
    const equals = part.indexOf('=');
    if (equals <= 0) continue;
    const value = unescaped(part.slice(equals + 1));
    keys.set(unescaped(part.slice(0, equals)), value === nullFolder ? null : value);
  }
  return keys;
}

/** `%3A` as `:`. What is no escape, or does not make UTF-8, stays as it is. */
function unescaped(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-fA-F]{2})/g, '%25'));
  } catch {
    return text;
  }
}
