import { RE2JS } from 're2js';
import { basename } from 'node:path';

/** What rotation and compression append to a log's name: `.1`, `-20261120`, `.2026-11-20`, `.gz`, `.zst`, in any number. */
export const nameSuffix = /(?:\.\d{1,9}|[-.]\d{4}-?\d{2}-?\d{2}(?:[-T_.]?\d{2,10})?|\.gz|\.zst|\.zstd)$/i;

/**
 * The fields that a file's name gives: the captures of the agent's name pattern, which must match the whole name, as it
 * stands or without what rotation and compression appended. Empty when it matches neither; a capture that took no part
 * is left out.
 */
export function fileCaptures(namePattern: string, path: string): Map<string, string> {
  return capturesOf(RE2JS.compile(namePattern), path);
}

/** As `fileCaptures`, with a compiled pattern: for callers that read many names. */
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
