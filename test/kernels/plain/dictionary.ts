/**
 * Dictionaries of the distinct values of a column, in the order of their first row, by a hash table with open addressing that is never
 * more than half full.
 */

/**
 * A column without a repeated value in its first rows holds ids or messages, and is given up before the limit, which saves a third of
 * the pass. Values drawn at random from as many distinct ones as the limit allows repeat long before.
 */
const rowsWithoutRepeatMax = 16384;

/** The number of slots of a table as a power of two: at least twice as many slots as entries. */
function tableBits(entriesMax: number): number {
  return Math.max(4, 33 - Math.clz32(entriesMax));
}

/**
 * Numbers the distinct values of bytes[offsets[i], offsets[i + 1]) for i in [0, count): writes their codes to `codes`, and the first row
 * of each to `firstRows` (room for `entriesMax`, at most 65536). Returns the number of distinct values, or -1 if there are more than
 * `entriesMax`, or obviously will be.
 */
export function numberBytes(
  bytes: Uint8Array,
  offsets: Uint32Array,
  count: number,
  entriesMax: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const bits = tableBits(entriesMax);
  const mask = (1 << bits) - 1;
  const table = new Int32Array(1 << bits);
  const hashes = new Int32Array(1 << bits);
  let distinct = 0;
  for (let row = 0; row < count; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const hash = hashBytes(view, bytes, start, end);
    let slot = (hash ^ (hash >>> 15)) & mask;
    let code = -1;
    while (code < 0) {
      const entry = table[slot]!;
      if (entry === 0) {
        if (distinct === entriesMax || (distinct === row && row === rowsWithoutRepeatMax)) return -1;
        firstRows[distinct] = row;
        code = distinct++;
        table[slot] = distinct;
        hashes[slot] = hash;
      } else if (hashes[slot] === hash) {
        const first = firstRows[entry - 1]!;
        const from = offsets[first]!;
        if (offsets[first + 1]! - from === end - start && sameBytes(view, bytes, from, start, end - start))
          code = entry - 1;
      }
      slot = (slot + 1) & mask;
    }
    codes[row] = code;
  }
  return distinct;
}

function hashBytes(view: DataView, bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  if (hash >= 4) {
    for (; start + 4 < end; start += 4) hash = mix(hash, view.getInt32(start, true));
    return finish(mix(hash, view.getInt32(end - 4, true)));
  }
  for (; start < end; start++) hash = mix(hash, bytes[start]!);
  return finish(hash);
}

function mix(hash: number, word: number): number {
  const mixed = Math.imul(hash ^ word, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function finish(hash: number): number {
  const mixed = Math.imul(hash, 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}

function sameBytes(view: DataView, bytes: Uint8Array, a: number, b: number, length: number): boolean {
  let k = 0;
  for (; k + 4 <= length; k += 4) if (view.getInt32(a + k, true) !== view.getInt32(b + k, true)) return false;
  for (; k < length; k++) if (bytes[a + k] !== bytes[b + k]) return false;
  return true;
}

/** Like `numberBytes`, for 64-bit values as pairs of halves (low, high): integers, or doubles by their bits. */
export function numberWords(
  halves: Int32Array,
  count: number,
  entriesMax: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): number {
  const bits = tableBits(entriesMax);
  const mask = (1 << bits) - 1;
  const table = new Int32Array(1 << bits);
  let distinct = 0;
  for (let row = 0; row < count; row++) {
    const low = halves[2 * row]!;
    const high = halves[2 * row + 1]!;
    const hash = finish(mix(low, high));
    let slot = (hash ^ (hash >>> 15)) & mask;
    let code = -1;
    while (code < 0) {
      const entry = table[slot]!;
      if (entry === 0) {
        if (distinct === entriesMax || (distinct === row && row === rowsWithoutRepeatMax)) return -1;
        firstRows[distinct] = row;
        code = distinct++;
        table[slot] = distinct;
      } else {
        const first = firstRows[entry - 1]!;
        if (halves[2 * first] === low && halves[2 * first + 1] === high) code = entry - 1;
      }
      slot = (slot + 1) & mask;
    }
    codes[row] = code;
  }
  return distinct;
}

/** Of an entry, only these bytes are compared. */
const sortedBytesMax = 256;

/**
 * Sorts the entries of a dictionary of `numberBytes` by their first bytes: changes `codes` and the first `entries` of `firstRows` to the
 * new order. Entries that differ only in bytes of 0 at their end, or in later bytes, keep their order.
 */
export function sortBytes(
  bytes: Uint8Array,
  offsets: Uint32Array,
  count: number,
  entries: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): void {
  const prefixes = Array.from(firstRows.subarray(0, entries), (row) => {
    const prefix = new Uint8Array(sortedBytesMax);
    const from = offsets[row]!;
    prefix.set(bytes.subarray(from, Math.min(offsets[row + 1]!, from + sortedBytesMax)));
    return prefix;
  });
  reorder((a, b) => Buffer.compare(prefixes[a]!, prefixes[b]!), count, entries, codes, firstRows);
}

/** Like `sortBytes`, for 64-bit values as pairs of halves (low, high), compared as unsigned numbers. */
export function sortWords(
  halves: Int32Array,
  count: number,
  entries: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): void {
  const half = (entry: number, high: number): number => halves[2 * firstRows[entry]! + high]! >>> 0;
  const order = (a: number, b: number): number => half(a, 1) - half(b, 1) || half(a, 0) - half(b, 0);
  reorder(order, count, entries, codes, firstRows);
}

function reorder(
  order: (a: number, b: number) => number,
  count: number,
  entries: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): void {
  const sorted = Array.from({ length: entries }, (_, entry) => entry).sort(order);
  const rows = firstRows.slice(0, entries);
  const places = new Uint16Array(entries);
  for (const [place, entry] of sorted.entries()) {
    places[entry] = place;
    firstRows[place] = rows[entry]!;
  }
  for (let row = 0; row < count; row++) codes[row] = places[codes[row]!]!;
}
