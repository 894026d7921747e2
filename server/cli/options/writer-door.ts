import type { ReaderConfig } from '../../../agents/definition/reader-config.js';
import type { HttpDoor } from '../../reader/http-door.js';
import { readSmallText } from './small-text.js';

/**
 * Makes the client of the writer that the configuration names. It connects at the first request. Throws `not_found` or `io` where a file
 * can't be read.
 */
export async function openWriterDoor({ writer, tokenFile, caFile }: ReaderConfig): Promise<HttpDoor> {
  const { HttpDoor: Door } = await import('../../reader/http-door.js');
  return new Door({
    address: writer,
    token: tokenFile === null ? null : readSmallText(tokenFile).trim(),
    ca: caFile === null ? null : readSmallText(caFile),
  });
}
