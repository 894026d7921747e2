import { promises as fs } from 'node:fs';
import { readForeignFile } from '../../foreign/reading/read-foreign-file.js';
import type { ForeignFormat } from '../../foreign/foreign-file.js';
import { DamageError, isLogstrataError } from '../../terms/errors.js';
import { fileSystemError, problemOfKind } from '../disk/file-system-error.js';
import type { FileIdentity } from './attached-file.js';

/** Size and time of change of a file, in whole milliseconds. Throws `not_found` and `io`, also for what is no regular file. */
export async function fileStamp(path: string): Promise<Pick<FileIdentity, 'bytes' | 'mtimeMs'>> {
  try {
    const stats = await fs.stat(path);
    const problem = problemOfKind(stats);
    if (problem !== undefined) throw new DamageError(`cannot read ${path}: ${problem}`, { path });
    return { bytes: stats.size, mtimeMs: Math.floor(stats.mtimeMs) };
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
}

/** Throws `damaged` unless the file is there and still the one that was attached. A copy of it with another time of change is. */
export async function assertSameFile(
  path: string,
  format: ForeignFormat,
  attached: FileIdentity,
): Promise<void> {
  const { bytes, mtimeMs } = await present(path, () => fileStamp(path));
  if (bytes === attached.bytes && mtimeMs === attached.mtimeMs) return;
  const isSame =
    bytes === attached.bytes &&
    (await present(path, () => readForeignFile(path, format))).footerHash === attached.footerHash;
  if (isSame) return;
  throw new DamageError(
    `${path} has changed since it was attached: it had ${attached.bytes} bytes, and was changed last at ` +
      `${timeText(attached.mtimeMs)}; now it has ${bytes}, and was changed at ${timeText(mtimeMs)}. ` +
      'Put the file of before in its place, or have it attached anew (archive: changed: replace)',
    { path },
  );
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** A file that is gone is damage to those who need its rows. */
async function present<T>(path: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    throw new DamageError(
      `${path} is attached and not there any more: bring it back, or give up its records (archive: missing: retire)`,
      { path, cause: error },
    );
  }
}
