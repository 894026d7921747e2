import { assert } from '../../terms/assert.js';

/**
 * The parts of a path of the file port (`directory.ts`): relative, with `/`, without `..`; '' and '.' are the
 * archive's folder itself. Names come from us or were checked before (`isAgentName`), so anything else is our bug.
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

/** The folder that `path` lies in; '' for the archive's folder. */
export function parentPath(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** The last part of `path`. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** `name` in the folder `path`, which may be ''. */
export function joinPath(path: string, name: string): string {
  return path === '' || path === '.' ? name : `${path}/${name}`;
}
