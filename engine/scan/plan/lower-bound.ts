/** Index of the first of the ascending `values` that is not less than `value`; their length where there is none. */
export function lowerBound(values: readonly number[] | Uint16Array | Uint32Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
