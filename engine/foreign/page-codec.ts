import { brotliDecompressSync, unzipSync } from 'node:zlib';
import { lz4Decompress } from '../kernels/lz4.js';
import { snappyDecompress } from '../kernels/snappy.js';
import {
  openDecompressor,
  openFramesDecompressor,
  zstdContentBytes,
  type Decompress,
} from '../parquet/compression.js';
import { codecNumber } from '../parquet/format.js';
import { LogstrataError } from '../terms/errors.js';
import { isLz4Frame, lz4FrameContent } from './lz4-frame.js';

/** Bytes of the two lengths before a block of Hadoop's LZ4. */
const hadoopHeaderBytes = 8;
/** Content that node:zlib gives out at once, at most. */
const zlibPieceBytesMax = 1024 * 1024;

/**
 * The decompressor of Parquet's `codec`, ready to be called. Throws `unsupported` for one that nobody writes. A
 * decompressor throws `FormatError` or gives false for what is malformed.
 */
export async function openPageDecompressor(codec: number): Promise<Decompress> {
  switch (codec) {
    case codecNumber.none:
      return copyPage;
    case codecNumber.snappy:
      return (bytes, target) => snappyDecompress(bytes, target, target.length) === target.length;
    case codecNumber.gzip:
      // Some writers mean zlib's own format, and several members may stand one behind another.
      return decompressByZlib(unzipSync);
    case codecNumber.brotli:
      return decompressByZlib(brotliDecompressSync);
    case codecNumber.zstd:
      return await openZstd();
    case codecNumber.lz4:
      return await openDecompressor('lz4');
    case codecNumber.lz4Framed:
      return decompressOlderLz4;
    default:
      throw new LogstrataError('unsupported', `pages in the codec ${codec}, which can't be read`);
  }
}

function copyPage(bytes: Uint8Array, target: Uint8Array): boolean {
  if (bytes.length !== target.length) return false;
  target.set(bytes);
  return true;
}

/** What node:zlib decompresses with `decompress`. */
function decompressByZlib(decompress: typeof unzipSync | typeof brotliDecompressSync): Decompress {
  return (bytes, target) => {
    const { length } = target;
    try {
      const content = decompress(bytes, {
        maxOutputLength: Math.max(1, length),
        chunkSize: Math.max(64, Math.min(length, zlibPieceBytesMax)),
      });
      if (content.length !== length) return false;
      target.set(content);
      return true;
    } catch {
      return false;
    }
  };
}

/** Where Node has ZSTD itself, which is faster, it reads one frame that says how long its content is. */
async function openZstd(): Promise<Decompress> {
  const ofOneFrame = await openDecompressor('zstd');
  const ofFrames = await openFramesDecompressor();
  return (bytes, target) =>
    (zstdContentBytes(bytes) === target.length && ofOneFrame(bytes, target)) || ofFrames(bytes, target);
}

/** What writers called LZ4 before there was LZ4_RAW: a frame, blocks of Hadoop, or one block as such. */
function decompressOlderLz4(bytes: Uint8Array, target: Uint8Array): boolean {
  if (isLz4Frame(bytes)) {
    target.set(lz4FrameContent(bytes, target.length));
    return true;
  }
  return decompressHadoop(bytes, target) || lz4Decompress(bytes, target, target.length) === target.length;
}

/** Blocks, each behind its length and that of its content, which are big-endian. */
function decompressHadoop(bytes: Uint8Array, target: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let done = 0;
  while (bytes.length - at >= hadoopHeaderBytes) {
    const contentBytes = view.getUint32(at);
    const blockBytes = view.getUint32(at + 4);
    at += hadoopHeaderBytes;
    if (contentBytes > target.length - done || blockBytes > bytes.length - at) return false;
    const content = target.subarray(done, done + contentBytes);
    if (lz4Decompress(bytes.subarray(at, at + blockBytes), content, contentBytes) !== contentBytes)
      return false;
    at += blockBytes;
    done += contentBytes;
  }
  return at === bytes.length && done === target.length;
}
