import { closeSync, openSync, readSync } from 'node:fs';

/**
 * Reads a file that should be small: its first `bytesMax + 1` bytes at most. If the result has more than `bytesMax` bytes, the file is too
 * long. Unlike `readFileSync`, it ends for an endless device such as /dev/zero. Throws the system's error.
 */
export function readBounded(path: string, bytesMax: number): Buffer {
  const file = openSync(path, 'r');
  try {
    let bytes = Buffer.allocUnsafe(4096);
    let length = 0;
    for (;;) {
      const room = Math.min(bytes.length, bytesMax + 1) - length;
      const read = room === 0 ? 0 : readSync(file, bytes, length, room, null);
      length += read;
      if (read === 0 || length > bytesMax) return bytes.subarray(0, length);
      if (length === bytes.length) bytes = Buffer.concat([bytes], bytes.length * 2);
    }
  } finally {
    closeSync(file);
  }
}
