import { addStripes, finishXxh64, newLanes, stripeBytes } from '../../kernels/xxh64.js';

/** Returns the XXH64 of `bytes` as `xxh64:` and 16 hex digits. */
export function contentHash(bytes: Uint8Array): string {
  const lanes = newLanes();
  addStripes(lanes, bytes);
  const rest = bytes.subarray(bytes.length - (bytes.length % stripeBytes));
  return 'xxh64:' + finishXxh64(lanes, bytes.length, rest).toString(16).padStart(16, '0');
}
