/** Numbers of groups of rows, one row after another. Rows whose bit is 0 are skipped. */

const isSet = (bits: Uint8Array, row: number): boolean => ((bits[row >> 3]! >> (row & 7)) & 1) === 1;

/** The counted rows with their groups. */
export function rowsOf(
  bits: Uint8Array,
  from: number,
  to: number,
  groups: Uint32Array | null,
): { row: number; group: number }[] {
  return Array.from({ length: to - from }, (_, i) => from + i)
    .filter((row) => isSet(bits, row))
    .map((row) => ({ row, group: groups?.[row] ?? 0 }));
}

/** Count, sum, minimum and maximum of each group that has rows. */
export function sumsOf<T extends bigint | number>(
  values: ArrayLike<T>,
  rows: readonly { readonly row: number; readonly group: number }[],
): Map<number, { count: number; sum: T; min: T; max: T }> {
  const sums = new Map<number, { count: number; sum: T; min: T; max: T }>();
  for (const { row, group } of rows) {
    const value = values[row]!;
    const known = sums.get(group);
    if (known === undefined) sums.set(group, { count: 1, sum: value, min: value, max: value });
    else {
      known.count++;
      known.sum = ((known.sum as number) + (value as number)) as T;
      if (value < known.min) known.min = value;
      if (value > known.max) known.max = value;
    }
  }
  return sums;
}

/** The number of different pairs, by their text. */
export function countPairs(pairs: readonly (readonly [number, number])[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const pair of pairs) counts.set(String(pair), (counts.get(String(pair)) ?? 0) + 1);
  return counts;
}
