import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { systemCode } from './source-error.js';

/** Resolves a path, following symbolic links as far as the path exists. */
export function realPlace(path: string): string {
  const place = resolve(path);
  try {
    return realpathSync(place);
  } catch (error) {
    const folder = dirname(place);
    // Other errors are reported when the path is to be read.
    return systemCode(error) === 'ENOENT' && folder !== place
      ? join(realPlace(folder), basename(place))
      : place;
  }
}

/** Whether a resolved path is a folder or lies inside it. */
export function isWithin(place: string, folder: string): boolean {
  return place === folder || place.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Why nothing in the data folder is followed. */
export const ownFilesReason =
  'the files there belong to the archive itself, so an agent that followed them would store its own records again';
