// Adds the strings of a dictionary to a bitmap of their hashes: see ../entry-filter.ts.

/** The bytes of a string of fewer than eight bytes, padded with zeros. Eight bytes are read. */
function shortWord(at: usize, length: u32): u64 {
  return length == 0 ? 0 : load<u64>(at) & ((<u64>-1) >>> ((8 - length) << 3));
}

function hashOf(at: usize, length: u32): u32 {
  const end = at + length;
  let first: u64;
  let last: u64 = 0;
  if (length >= 8) {
    first = load<u64>(length >= 16 ? end - 16 : at);
    last = load<u64>(end - 8);
  } else {
    first = shortWord(at, length);
  }
  const product =
    (<u32>first * 0x9e3779b1) ^
    (<u32>(first >>> 32) * 0x85ebca77) ^
    (<u32>last * 0xc2b2ae3d) ^
    (<u32>(last >>> 32) * 0x27d4eb2f) ^
    (length * 0x165667b1);
  return (product ^ (product >>> 15)) * 0x85ebca6b;
}

function setBit(bitmap: usize, bit: u32): void {
  const at = bitmap + (bit >>> 3);
  store<u8>(at, load<u8>(at) | (<u8>((<u32>1) << (bit & 7))));
}

/** Sets the bits of `entries` strings. Offsets are relative to `bytes`, which padding must follow. */
export function addEntries(bytes: usize, offsets: usize, entries: u32, shift: u32, bitmap: usize): void {
  let start = load<u32>(offsets);
  for (let entry: u32 = 0; entry < entries; entry++) {
    const end = load<u32>(offsets + ((<usize>entry) << 2), 4);
    const hash = hashOf(bytes + start, end - start);
    setBit(bitmap, hash >>> shift);
    setBit(bitmap, ((hash ^ (hash >>> 13)) * 0x9e3779b1) >>> shift);
    start = end;
  }
}
