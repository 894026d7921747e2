import { promises as fs } from 'node:fs';
import { readForeignFile } from '../../foreign/reading/read-foreign-file.js';
import { isSameFooter, type ForeignFormat } from '../../foreign/foreign-file.js';
import { DamageError, isLogstrataError, LogstrataError } from '../../terms/errors.js';
import { fileSystemError, problemOfKind } from '../disk/file-system-error.js';
import type { ObjectStorage } from '../objects/object-storage.js';
import type { AttachedFile, FileIdentity } from './attached-file.js';

/** The attributes by which a change of a file is detected. An object also has an ETag. */
export type FileStamp = Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'>;

/** Size and modification time of a file, in whole milliseconds. Throws `not_found` and `io`, and `damaged` for anything but a regular file. */
export async function fileStamp(path: string): Promise<FileStamp> {
  try {
    const stats = await fs.stat(path);
    const problem = problemOfKind(stats);
    if (problem !== undefined) throw new DamageError(`cannot read ${path}: ${problem}`, { path });
    return { bytes: stats.size, mtimeMs: Math.floor(stats.mtimeMs) };
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
}

/**
 * Throws `damaged` unless the file exists and is the one that was attached. A copy with another modification time passes. An object is not
 * checked, because only the attached version of it is ever read.
 */
export async function assertSameFile(
  path: string,
  format: ForeignFormat,
  attached: FileIdentity,
): Promise<void> {
  if (attached.etag !== undefined) return;
  const { bytes, mtimeMs } = await present(path, () => fileStamp(path));
  if (bytes === attached.bytes && mtimeMs === attached.mtimeMs) return;
  const isSame =
    bytes === attached.bytes &&
    isSameFooter((await present(path, () => readForeignFile(path, format))).footerHash, attached.footerHash);
  if (isSame) return;
  throw new DamageError(
    `${path} has changed since it was attached: it had ${attached.bytes} bytes, last changed at ` +
      `${timeText(attached.mtimeMs)}; now it has ${bytes}, last changed at ${timeText(mtimeMs)}. ` +
      'Restore the earlier file, or attach the changed one (archive: changed: replace)',
    { path },
  );
}

/** Throws `damaged` unless an object exists and has the version that was attached; `io` if the storage cannot be asked. */
export async function assertSameObject(
  { path, etag }: AttachedFile,
  objects: ObjectStorage | undefined,
): Promise<void> {
  if (objects === undefined)
    throw new LogstrataError('invalid', `cannot look at ${path}: no object storage is open`, { path });
  const stamp = await present(path, () => objects.stamp(path));
  if (stamp.etag === etag) return;
  throw new DamageError(
    `${path} has changed since it was attached: its ETag was ${etag}, and is ${stamp.etag}. If it has the same rows, the next ` +
      'check of the archive accepts it; otherwise restore the earlier object, or attach the changed one ' +
      '(archive: changed: replace)',
    { path },
  );
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** Converts `not_found` to damage, because rows of the file are needed. */
async function present<T>(path: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    throw new DamageError(
      `${path} is attached but does not exist any more: restore it, or give up its records (archive: missing: retire)`,
      { path, cause: error },
    );
  }
}
