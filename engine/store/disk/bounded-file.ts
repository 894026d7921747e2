import { closeSync, openSync, readSync } from 'node:fs';

/**
 * The first bytes of a file that is expected to be small, at most `bytesMax + 1`: where one more than `bytesMax` comes back, the file is too long.
 * Unlike `readFileSync`, it ends for a device without an end such as /dev/zero. Throws the system's error as it is.
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
