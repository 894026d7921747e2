import { entryHash } from '../../../engine/kernels/entry-filter.js';

function secondHash(hash: number): number {
  return Math.imul(hash ^ (hash >>> 13), 0x9e3779b1) >>> 0;
}

/** Sets the bits of the first `entries` strings in a bitmap whose size `shift` defines. */
export function addEntries(
  offsets: Uint32Array,
  bytes: Uint8Array,
  entries: number,
  shift: number,
  bitmap: Uint8Array,
): void {
  for (let entry = 0; entry < entries; entry++) {
    const hash = entryHash(bytes, offsets[entry]!, offsets[entry + 1]!);
    const first = hash >>> shift;
    const second = secondHash(hash) >>> shift;
    bitmap[first >>> 3]! |= 1 << (first & 7);
    bitmap[second >>> 3]! |= 1 << (second & 7);
  }
}
