import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { LocalCopy } from '../../foreign/foreign-file.js';
import { LogstrataError } from '../../terms/errors.js';
import { objectBlockBytes, objectBlocksKept } from '../../terms/object-limits.js';
import { fileSystemError, hasSystemCode } from '../disk/file-system-error.js';

/** A block is a file: this, its crc32, then its bytes. */
const magic = 'LSB1';
const headBytes = 8;

/** How many blocks an object has. */
export function blocksOf(objectBytes: number): number {
  return Math.ceil(objectBytes / objectBlockBytes);
}

/** Bytes of a block: the last one of an object has fewer. */
export function blockBytes(objectBytes: number, block: number): number {
  return Math.min(objectBlockBytes, objectBytes - block * objectBlockBytes);
}

/**
 * A block as the bytes of its file. The checksum covers where it belongs as well.
 *
 * @param name of the folder of its object's version
 */
export function encodeBlock(name: string, block: number, bytes: Uint8Array): Uint8Array {
  const file = new Uint8Array(headBytes + bytes.length);
  file.set(Buffer.from(magic));
  file.set(bytes, headBytes);
  new DataView(file.buffer).setUint32(magic.length, checksumOf(name, block, bytes), true);
  return file;
}

function checksumOf(name: string, block: number, bytes: Uint8Array): number {
  return crc32(bytes, crc32(`${name}/${block} `));
}

/** The blocks that this thread has read last: headers and footers are read in small pieces. */
const kept = new Map<string, Uint8Array>();

/**
 * Reads the bytes of an object from `at` on that are on this machine. Waits for the disk: it is for a thread, or for little. Returns the
 * bytes read: fewer than `target` has only where the object ends. Throws `absent` with the offset of the first block that is not there, or
 * is not what was written, and `io`.
 */
export function readCopy(path: string, copy: LocalCopy, at: number, target: Uint8Array): number {
  const length = Math.max(0, Math.min(target.length, copy.bytes - at));
  for (let done = 0; done < length;) {
    const block = Math.floor((at + done) / objectBlockBytes);
    const from = at + done - block * objectBlockBytes;
    const bytes = readBlock(path, copy, block);
    const piece = bytes.subarray(from, from + length - done);
    target.set(piece, done);
    done += piece.length;
  }
  return length;
}

function readBlock(path: string, copy: LocalCopy, block: number): Uint8Array {
  const file = join(copy.folder, `${block}`);
  const known = kept.get(file);
  if (known !== undefined) return known;
  const content = readSmallFile(file, headBytes + blockBytes(copy.bytes, block));
  if (content === null || !isBlock(content, copy.name, block))
    throw new LogstrataError('absent', `${path}: a part of it is not on this machine`, {
      path,
      offset: block * objectBlockBytes,
    });
  const bytes = content.subarray(headBytes);
  kept.set(file, bytes);
  for (const oldest of kept.keys()) if (kept.size > objectBlocksKept) kept.delete(oldest);
  return bytes;
}

function isBlock(content: Uint8Array, name: string, block: number): boolean {
  const head = new DataView(content.buffer, content.byteOffset, headBytes);
  return (
    Buffer.from(content.subarray(0, magic.length)).toString('latin1') === magic &&
    head.getUint32(magic.length, true) === checksumOf(name, block, content.subarray(headBytes))
  );
}

/** The content of a file that has so many bytes; null for any other, and for one that is not there. */
function readSmallFile(path: string, bytes: number): Uint8Array | null {
  let descriptor;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    if (hasSystemCode(error, 'ENOENT')) return null;
    throw fileSystemError(error, 'open', path);
  }
  try {
    // One byte more, which must not be there.
    const content = new Uint8Array(bytes + 1);
    let done = 0;
    for (let read = 1; read > 0 && done < content.length; done += read)
      read = readSync(descriptor, content, done, content.length - done, done);
    return done === bytes ? content.subarray(0, bytes) : null;
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  } finally {
    closeSync(descriptor);
  }
}
