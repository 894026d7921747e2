import { fileSystemError, LogstrataError, readBounded } from '../../../engine/index.js';

/** Far more than a password, a token or the certificates of an authority have. */
const textBytesMax = 1024 * 1024;

/** The text of a file that the configuration names, read while the program starts. Throws `not_found`, `io`, and `invalid` where it is too long. */
export function readSmallText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readBounded(path, textBytesMax, true);
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
  if (bytes.length > textBytesMax)
    throw new LogstrataError('invalid', `${path} has more than ${textBytesMax} bytes`, { path });
  return bytes.toString('utf8');
}
