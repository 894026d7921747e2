/** The number that `readVarint` has read last. */
export let varint: u64 = 0;

/**
 * Reads an unsigned varint of at most 64 bits into `varint`. Returns the address after it, or 0 when it is malformed or does not end before
 * `end`.
 */
export function readVarint(at: usize, end: usize): usize {
  let bits: u64 = 0;
  for (let shift: u64 = 0; shift < 70; shift += 7) {
    if (at >= end) return 0;
    const byte = <u64>load<u8>(at++);
    // The tenth byte has room for one bit.
    if (shift == 63 && (byte & 127) > 1) return 0;
    bits |= (byte & 127) << shift;
    if (byte < 128) {
      varint = bits;
      return at;
    }
  }
  return 0;
}
