/** The run of the RLE/bit-packing hybrid for `count` codes that are already packed with `width` bits each. */
export function packedRun(packed: Uint8Array, count: number, width: number): Uint8Array {
  const header: number[] = [];
  let rest = Math.ceil(count / 8) * 2 + 1;
  for (; rest >= 128; rest >>= 7) header.push((rest & 127) | 128);
  return Uint8Array.from([...header, rest, ...packed.subarray(0, Math.ceil(count / 8) * width)]);
}
