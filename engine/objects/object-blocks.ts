import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { LogstrataError } from '../core/errors.js';
import { objectBlockBytes, objectBlocksKept } from '../core/limits.js';
import { readBounded } from '../store/disk/bounded-file.js';
import { fileSystemError, hasSystemCode } from '../store/disk/directory.js';

/** Location of a file or object. Plain data. */
export interface ForeignPlace {
  /** An absolute path, or an object as `s3://bucket/key`. */
  readonly path: string;
  /** For an object, the parts of it that are on this machine. */
  readonly copy?: LocalCopy | undefined;
}

/** A version of an object and the folder on this machine that holds parts of it. */
export interface LocalCopy {
  /** Absolute path. */
  readonly folder: string;
  /** Name of the folder in messages and checksums; does not depend on where the folder is. */
  readonly name: string;
  /** Size of the object. */
  readonly bytes: number;
}

/** A block's file is this magic, the crc32 (little endian), and the block's bytes. */
const magic = 'LSB1';
const headBytes = 8;

/** Number of blocks of an object. */
export function blocksOf(objectBytes: number): number {
  return Math.ceil(objectBytes / objectBlockBytes);
}

/** Bytes of a block. The last block of an object may be shorter. */
export function blockBytes(objectBytes: number, block: number): number {
  return Math.min(objectBlockBytes, objectBytes - block * objectBlockBytes);
}

/**
 * Encodes a block as the bytes of its file. The checksum also covers the block's name and number, so that a misplaced file is detected.
 *
 * @param name name of the folder of the object's version
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

/** The blocks that this thread read last. They are kept because headers and footers are read in small pieces. */
const kept = new Map<string, Uint8Array>();

/**
 * Reads bytes of an object from `at` on out of its blocks on the local disk. It blocks on the disk, so call it on a worker thread or for
 * little data.
 *
 * @returns the number of bytes read; less than `target` has room for only at the end of the object
 * @throws LogstrataError `absent`, with the offset of the first block that is missing or damaged; `io`
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

/** The content of a file of exactly `bytes` bytes; null for a file of another length, or a missing one. */
function readSmallFile(path: string, bytes: number): Uint8Array | null {
  try {
    const content = readBounded(path, bytes);
    return content.length === bytes ? content : null;
  } catch (error) {
    if (hasSystemCode(error, 'ENOENT')) return null;
    throw fileSystemError(error, 'read', path);
  }
}
