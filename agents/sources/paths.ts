import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { systemCode } from './byte-source.js';

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

/** Characters that a terminal does not show as they are, and that commands print escaped. */
const controlCharacters = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** A path as one word of a shell command. One with control characters is written as `$'…'`, which bash, zsh and ksh read. */
export function shellPath(path: string): string {
  if (!controlCharacters.test(path)) return `'${path.replaceAll("'", `'\\''`)}'`;
  const characters = Array.from(path, (character) => {
    if (!controlCharacters.test(character)) return character.replace(/['\\]/, '\\$&');
    return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  });
  return `$'${characters.join('')}'`;
}
