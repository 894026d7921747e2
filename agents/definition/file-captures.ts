import { basename, resolve } from 'node:path';
import { RE2JS } from 're2js';
import { isObjectPath } from '../../engine/index.js';

/** Suffixes that rotation and compression append to a log's name, in any number: `.1`, `-20261120`, `.2026-11-20`, `.gz`, `.zst`. */
export const nameSuffix = /(?:\.\d{1,9}|[-.]\d{4}-?\d{2}-?\d{2}(?:[-T_.]?\d{2,10})?|\.gz|\.zst|\.zstd)$/i;

/**
 * The field values that a file's name gives: the captures of the agent's name pattern. The pattern must match the whole
 * name, either as it is or without suffixes of rotation and compression. Empty where it matches neither; a capture that did
 * not take part is left out.
 */
export function fileCaptures(namePattern: string, path: string): Map<string, string> {
  return capturesOf(RE2JS.compile(namePattern), path);
}

/** As `fileCaptures`, with a compiled pattern, for callers that read many names. */
export function capturesOf(pattern: RE2JS, path: string): Map<string, string> {
  const groups = Object.keys(pattern.namedGroups());
  const captures = new Map<string, string>();
  if (groups.length === 0) return captures;
  for (let name = basename(path); ; name = name.replace(nameSuffix, '')) {
    const matcher = pattern.matcher(name);
    if (matcher.matches()) {
      for (const group of groups) {
        const value = matcher.group(group);
        if (value !== null) captures.set(group, value);
      }
      return captures;
    }
    if (!nameSuffix.test(name)) return captures;
  }
}

/** The name of the file at a path without the suffixes of rotation and compression. */
export function unrotatedName(path: string): string {
  let name = basename(path);
  while (nameSuffix.test(name)) name = name.replace(nameSuffix, '');
  return name;
}

/** Folder name for null that Hive, Spark and DuckDB write. */
const nullFolder = '__HIVE_DEFAULT_PARTITION__';

/** Characters that make a path component of a glob a pattern. */
export const globCharacters = /[*?[\]{}()!@+\\]/;

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

/**
 * Converts a shell pattern to a regular expression that matches the same names: `app-*.log` to `app-.*\.log`. Undefined
 * where `pattern` may already be meant as a regular expression, because it repeats a class, a group or any character, or
 * where it has no `*` or `?`.
 */
export function expressionOfShellPattern(pattern: string): string | undefined {
  const repeats = /(^|[^\\])[*?]/.test(pattern);
  const hasExpression = /[\\.\])][*?+]|[[\](){}^$|+]|\\[^.]/.test(pattern);
  if (!repeats || hasExpression) return undefined;
  return pattern.replaceAll(/\\?\./g, '\\.').replaceAll('?', '.').replaceAll('*', '.*');
}

/**
 * Characters that glob libraries do not take as part of a name, and what stands for each while a library sees the name. A lone
 * surrogate is in no name, because names are read as UTF-8.
 */
const shields = new Map([
  ['\n', '\ud80a'],
  ['\r', '\ud80d'],
  ['\u2028', '\ud828'],
  ['\u2029', '\ud829'],
  ['\\', '\ud85c'],
]);

const shielded = new Map([...shields].map(([character, shield]) => [shield, character]));

/** Replaces the line ends in a name or pattern, which `**` would not match. */
export function withoutLineEnds(name: string): string {
  return name.replace(/[\n\r\u2028\u2029]/g, (character) => shields.get(character)!);
}

/** The same for the folder that is searched, in which a backslash would be taken for a slash. */
export function shieldedFolder(path: string): string {
  return withoutLineEnds(path).replaceAll('\\', shields.get('\\')!);
}

/** The name as it was. */
export function unshielded(name: string): string {
  return name.replace(/[\ud80a\ud80d\ud828\ud829\ud85c](?![\udc00-\udfff])/g, (shield) =>
    shielded.get(shield)!,
  );
}
