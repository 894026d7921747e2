// Hashes the stripes of XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): see ../xxh64.ts.

const prime1: u64 = 0x9e3779b185ebca87;
const prime2: u64 = 0xc2b2ae3d27d4eb4f;

function round(lane: u64, input: u64): u64 {
  return rotl<u64>(lane + input * prime2, 31) * prime1;
}

/** Adds `stripes` stripes of 32 bytes from `at` on to the four lanes at `lanes`. */
export function xxh64Stripes(lanes: usize, at: usize, stripes: u32): void {
  let first = load<u64>(lanes);
  let second = load<u64>(lanes, 8);
  let third = load<u64>(lanes, 16);
  let fourth = load<u64>(lanes, 24);
  for (const end = at + ((<usize>stripes) << 5); at < end; at += 32) {
    first = round(first, load<u64>(at));
    second = round(second, load<u64>(at, 8));
    third = round(third, load<u64>(at, 16));
    fourth = round(fourth, load<u64>(at, 24));
  }
  store<u64>(lanes, first);
  store<u64>(lanes, second, 8);
  store<u64>(lanes, third, 16);
  store<u64>(lanes, fourth, 24);
}
