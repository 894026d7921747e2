// Finds the least and the greatest of some strings, compared as unsigned bytes: see ../string-bounds.ts.

/** Whether the bytes at `a` are less than those at `b`. Up to eight bytes after both are read. */
function comesBefore(a: usize, lengthA: u32, b: usize, lengthB: u32): bool {
  const shared = min<u32>(lengthA, lengthB);
  for (let k: u32 = 0; k < shared; k += 8) {
    // As big-endian numbers, the first byte counts most. Bytes beyond the shorter string are shifted out.
    const unshared = shared - k < 8 ? (<u64>(8 - (shared - k))) << 3 : 0;
    const wordA = bswap<u64>(load<u64>(a + k)) >>> unshared;
    const wordB = bswap<u64>(load<u64>(b + k)) >>> unshared;
    if (wordA != wordB) return wordA < wordB;
  }
  return lengthA < lengthB;
}

/** The first eight bytes of a string as a big-endian number, with zeros after its end. Strings compare like these numbers where they differ. */
function prefixOf(at: usize, length: u32): u64 {
  const word = bswap<u64>(load<u64>(at));
  return length >= 8 ? word : length == 0 ? 0 : word & ((<u64>-1) << ((8 - length) << 3));
}

/**
 * Finds the first row with the least and the first row with the greatest string, of at least one row. Offsets are relative to `bytes`,
 * which padding must follow. Writes the two row numbers to `found` (two u32).
 */
export function boundRows(bytes: usize, offsets: usize, rows: u32, found: usize): void {
  let start = load<u32>(offsets);
  let end = load<u32>(offsets, 4);
  let minRow: u32 = 0;
  let maxRow: u32 = 0;
  let minAt = bytes + start;
  let maxAt = minAt;
  let minLength = end - start;
  let maxLength = minLength;
  let minPrefix = prefixOf(minAt, minLength);
  let maxPrefix = minPrefix;
  for (let row: u32 = 1; row < rows; row++) {
    start = end;
    end = load<u32>(offsets + ((<usize>row) << 2), 4);
    const at = bytes + start;
    const length = end - start;
    const prefix = prefixOf(at, length);
    if (prefix > minPrefix && prefix < maxPrefix) continue;
    if (comesBefore(at, length, minAt, minLength)) {
      minRow = row;
      minAt = at;
      minLength = length;
      minPrefix = prefix;
    } else if (comesBefore(maxAt, maxLength, at, length)) {
      maxRow = row;
      maxAt = at;
      maxLength = length;
      maxPrefix = prefix;
    }
  }
  store<u32>(found, minRow);
  store<u32>(found, maxRow, 4);
}
