import type { ForeignPlace } from '../../objects/object-blocks.js';
import { finishXxh64, hashText, newLanes } from '../../kernels/xxh64.js';
import type { FileToAttach } from './attached-list.js';
import type { ForeignWork } from './foreign-work.js';
import { fileStamp } from './plan-file.js';
import { hashTask } from './import-tasks.js';

/** Number of bytes that a thread hashes in one task, so that other tasks can run in between. A multiple of the hash's stripe. */
const portionBytes = 16 * 1024 * 1024;

export interface HashOptions {
  /** Hash only this many bytes from the beginning of the file; the whole file if absent. */
  readonly bytes?: number | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** `xxh64:` and the XXH64 (hex) of a file, read on threads. Throws as `hashTask` does. */
export async function hashFile(
  { path, object }: Pick<FileToAttach, 'path' | 'object'>,
  work: ForeignWork,
  { bytes, onProgress }: HashOptions,
): Promise<string> {
  const stamp = object ?? (await fileStamp(path));
  const end = Math.min(stamp.bytes, bytes ?? stamp.bytes);
  let lanes = newLanes();
  let rest: Uint8Array = new Uint8Array(0);
  for (let from = 0; from < end; from += portionBytes) {
    const to = Math.min(end, from + portionBytes);
    const jobOf = (place: ForeignPlace) => ({ ...place, from, to, lanes });
    const hashed = await work.readBytes(hashTask, jobOf, { path, ...stamp }, [{ from, to }]);
    lanes = hashed.lanes;
    rest = hashed.rest;
    onProgress?.(to / end);
  }
  return hashText(finishXxh64(lanes, end, rest));
}
