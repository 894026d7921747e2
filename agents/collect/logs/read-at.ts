import type { LogHandle } from './log-files.js';

/** Reads `length` bytes of a log from `position` on, fewer where it ends. Throws Node's errors of reading. */
export async function readAt(handle: LogHandle, position: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const read = await handle.read(bytes, filled, length - filled, position + filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}
