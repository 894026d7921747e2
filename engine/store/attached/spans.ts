import type { RowSpan } from '../../foreign/foreign-file.js';
import { rowGroupRowsMax } from '../../terms/limits.js';

/** The spans that a row group of a foreign file is divided into: as few and as even as the scan's row groups allow. */
export function spansOf(rows: number): RowSpan[] {
  const count = Math.ceil(rows / rowGroupRowsMax);
  return Array.from({ length: count }, (_, i) => ({
    from: Math.floor((rows * i) / count),
    to: Math.floor((rows * (i + 1)) / count),
  }));
}

/** A span among all of a file. */
export interface FileSpan extends RowSpan {
  readonly rowGroup: number;
  /** Index among the spans of the row group. */
  readonly index: number;
}

/** The spans of all row groups, in the order of the file. */
export function spansOfFile(rowGroupRows: readonly number[]): FileSpan[] {
  return rowGroupRows.flatMap((rows, rowGroup) =>
    spansOf(rows).map((span, index) => ({ ...span, rowGroup, index })),
  );
}
