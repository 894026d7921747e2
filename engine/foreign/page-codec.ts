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

/** Bytes of the two lengths (content, block) before each block of Hadoop's LZ4 format. */
const hadoopHeaderBytes = 8;
/** Largest output buffer (`chunkSize`) that node:zlib allocates at once. */
const zlibPieceBytesMax = 1024 * 1024;

/**
 * Returns the decompressor of Parquet's `codec`. Throws `unsupported` for an unknown codec. The decompressor throws
 * `FormatError` or returns false for malformed input.
 */
export async function openPageDecompressor(codec: number): Promise<Decompress> {
  switch (codec) {
    case codecNumber.none:
      return copyPage;
    case codecNumber.snappy:
      return (bytes, target) => snappyDecompress(bytes, target, target.length) === target.length;
    case codecNumber.gzip:
      // unzip also takes zlib's own format, which some writers store, and several gzip members in sequence.
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
      throw new LogstrataError('unsupported', `the compression codec ${codec} is not supported`);
  }
}

function copyPage(bytes: Uint8Array, target: Uint8Array): boolean {
  if (bytes.length !== target.length) return false;
  target.set(bytes);
  return true;
}

/** Adapts a decompress function of node:zlib. */
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

/**
 * Node's own ZSTD, where it exists, is faster, but takes only one frame that states its content size. Other input goes to
 * the second decoder.
 */
async function openZstd(): Promise<Decompress> {
  const ofOneFrame = await openDecompressor('zstd');
  const ofFrames = await openFramesDecompressor();
  return (bytes, target) =>
    (zstdContentBytes(bytes) === target.length && ofOneFrame(bytes, target)) || ofFrames(bytes, target);
}

/**
 * Decompresses the codec LZ4, which preceded LZ4_RAW. Writers stored three formats under it: LZ4 frames, Hadoop's blocks, or
 * one bare block.
 */
function decompressOlderLz4(bytes: Uint8Array, target: Uint8Array): boolean {
  if (isLz4Frame(bytes)) {
    target.set(lz4FrameContent(bytes, target.length));
    return true;
  }
  return decompressHadoop(bytes, target) || lz4Decompress(bytes, target, target.length) === target.length;
}

/** Decompresses Hadoop's format: blocks that are each preceded by the lengths of content and block, as big-endian 32-bit integers. */
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
