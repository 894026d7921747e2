import { readFile } from 'node:fs/promises';
import type { ReaderConfig } from '../../../agents/definition/reader-config.js';
import { fileSystemError } from '../../../engine/index.js';
import type { HttpDoor } from '../../reader/http-door.js';

/**
 * Makes the client of the writer that the configuration names. It connects at the first request. Throws `not_found` or `io` where a file
 * can't be read.
 */
export async function openWriterDoor({ writer, tokenFile, caFile }: ReaderConfig): Promise<HttpDoor> {
  const { HttpDoor: Door } = await import('../../reader/http-door.js');
  return new Door({
    address: writer,
    token: tokenFile === null ? null : (await readText(tokenFile)).trim(),
    ca: caFile === null ? null : await readText(caFile),
  });
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
}
