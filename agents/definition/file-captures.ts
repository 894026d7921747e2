import { basename, resolve } from 'node:path';
import { RE2JS } from 're2js';
import { isObjectPath } from '../../engine/index.js';

/** Suffixes that rotation and compression append to a log's name, in any number: `.1`, `-20261120`, `.2026-11-20`, `.gz`, `.zst`. */
export const nameSuffix = /(?:\.\d{1,9}|[-.]\d{4}-?\d{2}-?\d{2}(?:[-T_.]?\d{2,10})?|\.gz|\.zst|\.zstd)$/i;

/** The expressions of a path: for each folder below the fixed one, and for the name of the file. */
export interface PathExpressions {
  readonly folderPatterns?: readonly string[];
  readonly namePattern: string;
}

/** The expressions of a path, compiled. */
export class PathPattern {
  readonly folders: readonly RE2JS[];
  readonly name: RE2JS;

  constructor({ folderPatterns = [], namePattern }: PathExpressions) {
    this.folders = folderPatterns.map((each) => RE2JS.compile(each));
    this.name = RE2JS.compile(namePattern);
  }

  /** The last names of a path: as many as there are expressions. */
  lastNames(path: string): string {
    return path
      .split('/')
      .slice(-this.folders.length - 1)
      .join('/');
  }

  /** The captures of the folders that contain the file at a path, counted from the end; null where one does not match. */
  folderCaptures(path: string): Map<string, string> | null {
    const captures = new Map<string, string>();
    const names = this.lastNames(path).split('/');
    if (names.length <= this.folders.length) return null;
    return this.folders.every((folder, i) => addCaptures(folder, names[i]!, captures)) ? captures : null;
  }

  /**
   * The field values that a file's name gives: the captures of its expression, which must match the whole name, either as
   * it is or without suffixes of rotation and compression. Empty where it matches neither; a capture that did not take
   * part is left out.
   */
  nameCaptures(path: string): Map<string, string> {
    const captures = new Map<string, string>();
    if (Object.keys(this.name.namedGroups()).length === 0) return captures;
    for (let name = basename(path); !addCaptures(this.name, name, captures);) {
      if (!nameSuffix.test(name)) break;
      name = name.replace(nameSuffix, '');
    }
    return captures;
  }
}

/** Adds the captures of an expression that matches the whole text. Returns whether it does. */
function addCaptures(pattern: RE2JS, text: string, captures: Map<string, string>): boolean {
  const matcher = pattern.matcher(text);
  if (!matcher.matches()) return false;
  for (const group of Object.keys(pattern.namedGroups())) {
    const value = matcher.group(group);
    if (value !== null) captures.set(group, value);
  }
  return true;
}

/** Splits a path into its components. A slash within `[…]` belongs to an expression. */
export function pathComponents(path: string): string[] {
  const components: string[] = [];
  let start = 0;
  for (let at = 0; at < path.length; at++) {
    if (path[at] === '\\') at++;
    else if (path[at] === '[') {
      const first = path[at + 1] === '^' ? at + 2 : at + 1;
      const end = path.indexOf(']', first + 1);
      if (end >= 0) at = end;
    } else if (path[at] === '/') {
      components.push(path.slice(start, at));
      start = at + 1;
    }
  }
  return [...components, path.slice(start)];
}

/** What the name of a folder in a path is: its own name, a pattern as in a shell, or a regular expression. */
export function kindOfFolder(component: string): 'literal' | 'shell' | 'expression' {
  if (/\(\?|\\|\.[*+]|\[[^[\]]+\]/.test(component)) return 'expression';
  return /[*?]/.test(component) ? 'shell' : 'literal';
}

/** The regular expression for the name of a folder in a path. */
export function expressionOfFolder(component: string): string {
  const kind = kindOfFolder(component);
  if (kind === 'expression') return component;
  const quoted = RE2JS.quote(component);
  return kind === 'literal' ? quoted : quoted.replaceAll('\\*', '[^/]*').replaceAll('\\?', '[^/]');
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
