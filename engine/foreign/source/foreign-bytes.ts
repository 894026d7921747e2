import { openFiles, type OpenFiles } from '../../store/disk/open-files.js';
import { readCopy } from '../../store/objects/object-blocks.js';
import type { ForeignPlace } from '../foreign-file.js';

/**
 * Reads bytes of a file from `at` on until `target` is full or the file ends; returns the bytes read. Waits for the disk: it is for a
 * thread. Throws `not_found` and `io` with the path, and `absent` for those of an object that are not on this machine.
 *
 * @param files those that stay open
 */
export function readForeignBytes(
  { path, copy }: ForeignPlace,
  at: number,
  target: Uint8Array,
  files: OpenFiles = openFiles,
): number {
  return copy === undefined ? files.read(path, at, target) : readCopy(path, copy, at, target);
}
