/** Counts of rows by their values. Counts are added to those in `counts`; rows whose bit is 0 are skipped. */

const isSet = (bits: Uint8Array, row: number): boolean => ((bits[row >> 3]! >> (row & 7)) & 1) === 1;

function rangeOf(starts: BigInt64Array, value: bigint): number {
  let range = 0;
  while (range + 1 < starts.length && starts[range + 1]! <= value) range++;
  return range;
}

/** By the range that the integer lies in: from its start up to the start of the next one. */
export function countRanges(
  values: BigInt64Array,
  bits: Uint8Array,
  from: number,
  to: number,
  starts: BigInt64Array,
  counts: Uint32Array,
): void {
  for (let row = from; row < to; row++) if (isSet(bits, row)) counts[rangeOf(starts, values[row]!)]! += 1;
}

/** By code. */
export function countCodes(
  codes: Uint8Array | Uint16Array,
  bits: Uint8Array,
  from: number,
  to: number,
  counts: Uint32Array,
): void {
  for (let row = from; row < to; row++) if (isSet(bits, row)) counts[codes[row]!]! += 1;
}

/** By range and code: the counts of the codes of a range are adjacent. */
export function countPairs(
  values: BigInt64Array,
  codes: Uint8Array | Uint16Array,
  codesOfRange: number,
  bits: Uint8Array,
  from: number,
  to: number,
  starts: BigInt64Array,
  counts: Uint32Array,
): void {
  for (let row = from; row < to; row++)
    if (isSet(bits, row)) counts[rangeOf(starts, values[row]!) * codesOfRange + codes[row]!]! += 1;
}
