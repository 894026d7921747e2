import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { lz4Decompress } from '../../kernels/lz4.js';
import { openDecompressor, type Decompress } from '../../parquet/compression.js';
import { FormatError, codecNumber } from '../../parquet/format.js';
import { LogstrataError } from '../../terms/errors.js';
import { pageBytesMax } from '../../terms/limits.js';
import { isLz4Frame, lz4FrameContent } from '../lz4-frame.js';

/** Decompresses bytes that become `length` bytes. Throws `FormatError` where they become others. */
export type DecompressPage = (bytes: Uint8Array, length: number) => Uint8Array;

/** The decompressor of pages of Parquet's `codec`. Throws `unsupported` for one that nobody writes. */
export async function openPageDecompressor(codec: number): Promise<DecompressPage> {
  const decompress = await decompressorOf(codec);
  return (bytes, length) => {
    // What a header claims is allocated only up to here.
    if (length > pageBytesMax) throw new FormatError(`a page of ${length} bytes, which is too large`, 0);
    try {
      const content = decompress(bytes, length);
      if (content?.length === length) return content;
    } catch (error) {
      if (error instanceof FormatError) throw error;
      throw new FormatError(`a page that can't be decompressed: ${(error as Error).message}`, 0);
    }
    throw new FormatError(`a page that does not decompress to ${length} bytes`, 0);
  };
}

/** Null, or bytes of another length, where they don't become `length` bytes. */
type DecompressBounded = (bytes: Uint8Array, length: number) => Uint8Array | null;

async function decompressorOf(codec: number): Promise<DecompressBounded> {
  switch (codec) {
    case codecNumber.none:
      return (bytes) => bytes;
    case codecNumber.snappy:
      return snappyContent;
    case codecNumber.gzip:
      return (bytes, length) => plainArray(gunzipSync(bytes, { maxOutputLength: Math.max(1, length) }));
    case codecNumber.brotli:
      return (bytes, length) =>
        plainArray(brotliDecompressSync(bytes, { maxOutputLength: Math.max(1, length) }));
    case codecNumber.lz4Framed:
      return olderLz4;
    case codecNumber.zstd:
      return intoNew(await openDecompressor('zstd'));
    case codecNumber.lz4:
      return intoNew(await openDecompressor('lz4'));
    default:
      throw new LogstrataError('unsupported', `pages in the codec ${codec}, which can't be read`);
  }
}

/** A `Buffer` as a plain array, whose `slice` makes a copy. */
function plainArray({ buffer, byteOffset, length }: Buffer): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}

function intoNew(decompress: Decompress): DecompressBounded {
  return (bytes, length) => {
    const target = new Uint8Array(length);
    return decompress(bytes, target) ? target : null;
  };
}

function snappyContent(bytes: Uint8Array, length: number): Uint8Array {
  const target = new Uint8Array(length);
  snappyUncompress(bytes, target);
  return target;
}

/**
 * What writers have called LZ4 before there was LZ4_RAW: blocks of Hadoop, each behind its two lengths (big-endian, of its content and of
 * itself); a frame; or one block as such.
 */
function olderLz4(bytes: Uint8Array, length: number): Uint8Array | null {
  if (isLz4Frame(bytes)) return lz4FrameContent(bytes, length);
  const target = new Uint8Array(length);
  if (hadoopBlocks(bytes, target)) return target;
  return lz4Decompress(bytes, target, length) === length ? target : null;
}

/** Whether `bytes` are blocks of Hadoop that fill `target`. */
function hadoopBlocks(bytes: Uint8Array, target: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let done = 0;
  while (at < bytes.length) {
    if (bytes.length - at < 8) return false;
    const contentBytes = view.getUint32(at);
    const blockBytes = view.getUint32(at + 4);
    at += 8;
    if (blockBytes > bytes.length - at || contentBytes > target.length - done) return false;
    const part = target.subarray(done, done + contentBytes);
    if (lz4Decompress(bytes.subarray(at, at + blockBytes), part, contentBytes) !== contentBytes) return false;
    at += blockBytes;
    done += contentBytes;
  }
  return done === target.length;
}
