import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { LogstrataError } from '../../core/errors.js';

/** A pipe that this process was started with: standard input, or a process substitution of the shell, `<(…)`. */
const ownPipe = /^\/(dev\/(stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/**
 * Reads a file that should be small: its first `bytesMax + 1` bytes at most. If the result has more than `bytesMax` bytes, the file is too
 * long. Unlike `readFileSync`, it ends for an endless device such as /dev/zero, and never waits for the writer of a pipe: a pipe is an
 * error `io`. Throws the system's error.
 *
 * @param waits whether the thread may wait for a pipe that the process was started with. Only a program that is starting may
 */
export function readBounded(path: string, bytesMax: number, waits = false): Buffer {
  const isOwn = waits && ownPipe.test(path);
  // Without O_NONBLOCK, opening a named pipe would block the thread until there is a writer.
  const file = openSync(path, constants.O_RDONLY | (isOwn ? 0 : constants.O_NONBLOCK));
  try {
    const stats = fstatSync(file);
    if (stats.isFIFO() && !isOwn)
      throw new LogstrataError('io', `cannot read ${path}: it is a pipe, a file was expected`, { path });
    let bytes = Buffer.allocUnsafe(Math.min(bytesMax, Math.max(4095, stats.size)) + 1);
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
