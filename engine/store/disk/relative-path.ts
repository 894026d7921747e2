import { assert } from '../../terms/assert.js';

/**
 * Splits a path of the file port (`directory.ts`), which is relative, with `/` and without `..`. '' and '.' are the archive's folder.
 * Asserts that the path is valid: all names are our own or were checked before (`isAgentName`).
 */
export function pathParts(path: string): string[] {
  if (path === '' || path === '.') return [];
  const parts = path.split('/');
  for (const part of parts) {
    assert(
      part !== '' && part !== '.' && part !== '..' && !part.includes('\0') && !part.includes('\\'),
      `"${path}" is not a plain relative path`,
    );
  }
  return parts;
}

/** The parent folder of `path`; '' for the archive's folder. */
export function parentPath(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** The path of `name` in the folder `path`, which may be ''. */
export function joinPath(path: string, name: string): string {
  return path === '' || path === '.' ? name : `${path}/${name}`;
}
