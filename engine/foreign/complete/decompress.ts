import { FormatError } from '../../parquet/format.js';
import { pageBytesMax } from '../../terms/limits.js';
import { openPageDecompressor } from '../page-codec.js';

/** Decompresses bytes to `length` bytes. Throws `FormatError` where the content has another length. */
export type DecompressPage = (bytes: Uint8Array, length: number) => Uint8Array;

/** Returns a decompressor of pages for Parquet's `codec`, which allocates its output. Throws `unsupported` for an unknown codec. */
export async function openDecompressedPages(codec: number): Promise<DecompressPage> {
  const decompress = await openPageDecompressor(codec);
  return (bytes, length) => {
    // Check before allocating what a header claims.
    if (length > pageBytesMax) throw new FormatError(`the page has ${length} bytes, which is too large`, 0);
    const target = new Uint8Array(length);
    if (decompress(bytes, target)) return target;
    throw new FormatError(`the page does not decompress to ${length} bytes`, 0);
  };
}
