import { brotliDecompressSync, unzipSync } from 'node:zlib';
import { FormatError, codecNumber } from '../parquet/format.js';
import { lz4Decompress } from '../kernels/lz4.js';
import { snappyDecompress } from '../kernels/snappy.js';
import {
  openDecompressor,
  openFramesDecompressor,
  zstdContentBytes,
  type Decompress,
} from '../parquet/compression.js';
import { LogstrataError } from '../core/errors.js';

/**
 * Reads the LZ4 frame format (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md). Its blocks may refer back to
 * earlier blocks.
 */

const frameMagic = 0x184d2204;

/** Whether `bytes` begin with the magic number of a frame. */
function isLz4Frame(bytes: Uint8Array): boolean {
  return bytes.length >= 7 && viewOf(bytes).getUint32(0, true) === frameMagic;
}

/** Decompresses a frame whose content must have `length` bytes. Checksums are not verified. Throws `FormatError`. */
export function lz4FrameContent(bytes: Uint8Array, length: number): Uint8Array {
  if (!isLz4Frame(bytes)) throw new FormatError('the page is not an LZ4 frame', 0);
  const view = viewOf(bytes);
  const flags = bytes[4]!;
  const hasBlockChecksums = (flags & 0x10) !== 0;
  const hasContentSize = (flags & 0x08) !== 0;
  if (flags >>> 6 !== 1 || (flags & 0x01) !== 0)
    throw new FormatError('the LZ4 frame has an unknown version or flag', 4);
  const target = new Uint8Array(length);
  let at = 7 + (hasContentSize ? 8 : 0);
  let done = 0;
  for (;;) {
    if (at + 4 > bytes.length) throw new FormatError('the LZ4 frame has no end mark', at);
    const word = view.getUint32(at, true);
    at += 4;
    if (word === 0) break;
    const size = word & 0x7fff_ffff;
    if (size > bytes.length - at) throw new FormatError('an LZ4 block ends after the page', at);
    const block = bytes.subarray(at, at + size);
    if (word > 0x7fff_ffff) {
      if (size > length - done) throw new FormatError('the LZ4 frame is longer than the page says', at);
      target.set(block, done);
      done += size;
    } else {
      done = decompressBlock(block, target, done);
    }
    at += size + (hasBlockChecksums ? 4 : 0);
  }
  if (done !== length) throw new FormatError(`the LZ4 frame has ${done} bytes, expected ${length}`, at);
  return target;
}

/** As `lz4FrameContent`. */
export function decompressLz4Frame(bytes: Uint8Array, target: Uint8Array): boolean {
  target.set(lz4FrameContent(bytes, target.length));
  return true;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A match refers to at most this many bytes before it. */
const historyBytesMax = 64 * 1024;

/** Decompresses a block into `target` from offset `done`. Matches may refer to bytes before that. Returns the end offset of the output. */
function decompressBlock(block: Uint8Array, target: Uint8Array, done: number): number {
  const from = Math.max(0, done - historyBytesMax);
  // The kernel knows no bytes before the block, so they are put in front of the block's first literals.
  const token = block[0] ?? 0;
  let at = 1;
  let literals = token >>> 4;
  for (let more = literals === 15; more; at++) {
    literals += block[at] ?? 0;
    more = block[at] === 255;
  }
  literals += done - from;
  const head = [(Math.min(literals, 15) << 4) | (token & 15)];
  for (let rest = literals - 15; rest >= 0; rest -= 255) head.push(Math.min(rest, 255));
  const whole = Buffer.concat([Uint8Array.from(head), target.subarray(from, done), block.subarray(at)]);
  const content = target.subarray(from);
  const written = lz4Decompress(whole, content, content.length);
  if (written < done - from)
    throw new FormatError('an LZ4 block is malformed, or longer than the page says', at);
  return from + written;
}

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
  if (isLz4Frame(bytes)) return decompressLz4Frame(bytes, target);
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
