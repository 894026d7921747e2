/** What `readVarint` has read. */
export let varint: u64 = 0;

/** Reads an unsigned varint of at most 64 bits to `varint`. Returns the address behind it, or 0 when there is none before `end`. */
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
