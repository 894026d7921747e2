import { openFiles, type OpenFiles } from '../../store/disk/open-files.js';
import { readCopy } from '../../store/objects/object-blocks.js';
import type { ForeignPlace } from '../foreign-file.js';

/**
 * Reads bytes of a file from offset `at` until `target` is full or the file ends; returns the number of bytes read.
 * Synchronous: for worker threads. Throws `not_found` and `io` with the path, and `absent` for bytes of an object that are
 * not on this machine.
 *
 * @param files the file handles that are kept open
 */
export function readForeignBytes(
  { path, copy }: ForeignPlace,
  at: number,
  target: Uint8Array,
  files: OpenFiles = openFiles,
): number {
  return copy === undefined ? files.read(path, at, target) : readCopy(path, copy, at, target);
}
