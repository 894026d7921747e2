import { padEndToWidth, padStartToWidth, printable, textWidth, wrapToWidth } from './text-width.js';

/** Minimum width of the last column, even on a narrower terminal. */
const lastWidthMin = 16;

/**
 * A table as lines of text: columns are padded to their widest cell and separated by two blanks; the header is underlined. The columns in
 * `numeric` (indexes) are aligned to the right. Where `width` is given, long cells of the last column are wrapped.
 */
export function formatTable(
  header: readonly string[],
  given: readonly (readonly string[])[],
  numeric: readonly number[] = [],
  width: number | null = null,
): string[] {
  const rows = given.map((row) => row.map(printable));
  const widths = header.map((cell, i) => Math.max(textWidth(cell), ...rows.map((row) => textWidth(row[i]!))));
  const last = header.length - 1;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + 2, 0);
  if (width !== null) widths[last] = Math.min(widths[last]!, Math.max(lastWidthMin, width - before));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) =>
        numeric.includes(i) ? padStartToWidth(cell, widths[i]!) : padEndToWidth(cell, widths[i]!),
      )
      .join('  ')
      .trimEnd();
  const lines = (row: readonly string[]): string[] => {
    if (width === null) return [line(row)];
    const [first = '', ...rest] = wrapToWidth(row[last]!, widths[last]!);
    return [line([...row.slice(0, last), first]), ...rest.map((part) => `${' '.repeat(before)}${part}`)];
  };
  return [line(header), widths.map((each) => '-'.repeat(each)).join('  '), ...rows.flatMap(lines)];
}

/** Lines of names and values, with the values aligned. */
export function formatPairs(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...pairs.map(([name]) => textWidth(name)));
  return pairs.map(([name, value]) => `${padEndToWidth(name, width)}  ${value}`.trimEnd());
}
