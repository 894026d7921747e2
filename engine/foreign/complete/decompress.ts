import { FormatError } from '../../parquet/format.js';
import { pageBytesMax } from '../../terms/limits.js';
import { openPageDecompressor } from '../page-codec.js';

/** Decompresses bytes that become `length` bytes. Throws `FormatError` where they become others. */
export type DecompressPage = (bytes: Uint8Array, length: number) => Uint8Array;

/** The decompressor of pages of Parquet's `codec`, into memory of their own. Throws `unsupported` for one that nobody writes. */
export async function openDecompressedPages(codec: number): Promise<DecompressPage> {
  const decompress = await openPageDecompressor(codec);
  return (bytes, length) => {
    // What a header claims is allocated only up to here.
    if (length > pageBytesMax) throw new FormatError(`a page of ${length} bytes, which is too large`, 0);
    const target = new Uint8Array(length);
    if (decompress(bytes, target)) return target;
    throw new FormatError(`a page that does not decompress to ${length} bytes`, 0);
  };
}
