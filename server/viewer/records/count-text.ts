const grouped = new Intl.NumberFormat('en-US');

/** A count with separators: `12,345,678`. */
export function countText(count: number): string {
  return grouped.format(count);
}

const steps: readonly (readonly [number, string])[] = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** A count of at most three digits with a unit: `1.2 M`. */
export function shortCountText(count: number): string {
  for (const [size, unit] of steps) {
    if (count < size) continue;
    const scaled = count / size;
    return `${scaled < 10 ? scaled.toFixed(1).replace('.0', '') : Math.round(scaled)} ${unit}`;
  }
  return String(count);
}

/** A count of records: `1 record`, `2 records`. */
export function recordsText(count: number): string {
  return `${countText(count)} ${count === 1 ? 'record' : 'records'}`;
}
