import type { RowSpan } from '../../foreign/foreign-file.js';
import { rowGroupRowsMax } from '../../terms/limits.js';

/** Divides a row group of a foreign file into spans: as few as the scan's limit on row groups allows, and of about equal size. */
export function spansOf(rows: number): RowSpan[] {
  const count = Math.ceil(rows / rowGroupRowsMax);
  return Array.from({ length: count }, (_, i) => ({
    from: Math.floor((rows * i) / count),
    to: Math.floor((rows * (i + 1)) / count),
  }));
}

/** A span, with its place in the file. */
export interface FileSpan extends RowSpan {
  readonly rowGroup: number;
  /** Index among the spans of its row group. */
  readonly index: number;
}

/** The spans of all row groups, in file order. */
export function spansOfFile(rowGroupRows: readonly number[]): FileSpan[] {
  return rowGroupRows.flatMap((rows, rowGroup) =>
    spansOf(rows).map((span, index) => ({ ...span, rowGroup, index })),
  );
}
