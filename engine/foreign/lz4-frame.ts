import { FormatError } from '../parquet/format.js';

/**
 * Reads the LZ4 frame format (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md). Its blocks may refer back to
 * earlier blocks.
 */

const frameMagic = 0x184d2204;
const matchBytesMin = 4;

/** Whether `bytes` begin with the magic number of a frame. */
export function isLz4Frame(bytes: Uint8Array): boolean {
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

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Decompresses a block into `target` from offset `done`. Matches may refer to bytes before that. Returns the end offset of the output. */
function decompressBlock(block: Uint8Array, target: Uint8Array, done: number): number {
  let at = 0;
  const longer = (length: number): number => {
    if (length < 15) return length;
    for (;;) {
      const byte = block[at++];
      if (byte === undefined) throw new FormatError('an LZ4 block ends in the middle of a length', at);
      length += byte;
      if (byte < 255) return length;
    }
  };
  while (at < block.length) {
    const token = block[at++]!;
    const literals = longer(token >>> 4);
    if (literals > block.length - at || literals > target.length - done)
      throw new FormatError('an LZ4 block is longer than the page says', at);
    target.set(block.subarray(at, at + literals), done);
    at += literals;
    done += literals;
    if (at === block.length) return done;
    const distance = block[at]! + (block[at + 1] ?? 0) * 256;
    at += 2;
    const length = longer(token & 15) + matchBytesMin;
    if (distance === 0 || distance > done || length > target.length - done)
      throw new FormatError('an LZ4 block refers to bytes before the beginning of its content', at);
    // Copy byte by byte: a match may overlap the bytes that it produces.
    for (const end = done + length; done < end; done++) target[done] = target[done - distance]!;
  }
  return done;
}
