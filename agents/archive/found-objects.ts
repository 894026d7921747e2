import { type FoundObject, isLogstrataError, type ObjectStorage } from '../../engine/index.js';
import { fixedBeginning } from '../patterns/folder-keys.js';

/** The characters by which a pattern is more than a name. */
const patternCharacters = /[*?[\]{}()!@+\\]/;

/** Objects that a glob names, and why all of them or the rest could not be listed. */
export interface ListedObjects {
  readonly objects: readonly FoundObject[];
  readonly problem: string | undefined;
}

/**
 * The objects whose paths a glob names, by the rules for files: parts that begin with a point are passed over unless the glob's do, and so are
 * keys that end with a slash, which stand for folders. All objects are looked at whose keys begin as the glob does.
 *
 * @param objectsMax with more of them `undefined` is given
 */
export async function listObjects(
  glob: string,
  objects: ObjectStorage,
  objectsMax: number,
): Promise<ListedObjects | undefined> {
  // It takes longer to load than most commands take.
  const { default: picomatch } = await import('picomatch');
  const beginning = fixedBeginning(glob);
  const isNamed = picomatch(glob.slice(beginning.length + 1), { noextglob: true, posix: true });
  const listed = glob.slice(0, patternCharacters.exec(glob)?.index);
  const found: FoundObject[] = [];
  let seen = 0;
  try {
    for await (const page of objects.list(listed)) {
      seen += page.length;
      if (seen > objectsMax) return undefined;
      for (const object of page) {
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
