import { type FoundObject, isLogstrataError, type ObjectStorage } from '../../engine/index.js';
import { fixedBeginning } from '../patterns/folder-keys.js';
import { withoutLineEnds } from '../patterns/shielded-names.js';
import type { TableLogs } from './table-logs.js';

/** Characters that make a string a glob pattern. */
const patternCharacters = /[*?[\]{}()!@+\\]/;

/** The objects that match a glob, and why not all of them could be listed. */
export interface ListedObjects {
  readonly objects: readonly FoundObject[];
  readonly problem: string | undefined;
}

/**
 * Lists the objects whose paths match a glob, by the rules for files: path components that begin with a dot are skipped
 * unless the glob's do, and so are keys that end with a slash, which stand for folders. All objects whose keys begin with
 * the fixed part of the glob are listed and matched.
 *
 * @param objectsMax limit on listed objects; `undefined` is returned for more
 * @param tables is told of all of them
 */
export async function listObjects(
  glob: string,
  objects: ObjectStorage,
  objectsMax: number,
  tables?: TableLogs,
): Promise<ListedObjects | undefined> {
  // Loaded on demand, because loading it takes longer than most commands.
  const { default: picomatch } = await import('picomatch');
  const beginning = fixedBeginning(glob);
  const isMatch = picomatch(withoutLineEnds(glob.slice(beginning.length + 1)), {
    noextglob: true,
    posix: true,
  });
  const isNamed = (key: string): boolean => isMatch(withoutLineEnds(key));
  const listed = glob.slice(0, patternCharacters.exec(glob)?.index);
  const found: FoundObject[] = [];
  let seen = 0;
  try {
    for await (const page of objects.list(listed)) {
      seen += page.length;
      if (seen > objectsMax) return undefined;
      for (const object of page) {
        tables?.note(object.path);
        if (object.path.startsWith(`${beginning}/`) && isNamed(object.path.slice(beginning.length + 1)))
          found.push(object);
      }
    }
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    return { objects: found, problem: error.message };
  }
  return { objects: found, problem: undefined };
}
