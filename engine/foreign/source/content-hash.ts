import { ContentHash } from '../../kernels/xxh64.js';

/** Returns the XXH64 of `bytes` as `xxh64:` and 16 hex digits. */
export function contentHash(bytes: Uint8Array): string {
  const hash = new ContentHash();
  hash.update(bytes);
  return hash.digest();
}
