import { RE2JS } from 're2js';
import { basename } from 'node:path';

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
