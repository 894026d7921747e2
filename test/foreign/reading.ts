import { columnValue, type Column } from '../../engine/columns/column.js';
import type { DecodedSpans, ForeignFile, ForeignRead, PageTable } from '../../engine/foreign/foreign-file.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import type { OurValue } from './duckdb-values.js';

const spanRows = 64 * 1024;

/** A read of a column of a row group, in spans of `rows` rows. */
export function readingOf(
  file: ForeignFile,
  path: string,
  columnIndex: number,
  rowGroup: number,
  rows = spanRows,
): ForeignRead {
  const { rows: rowGroupRows, chunks } = file.rowGroups[rowGroup]!;
  const count = Math.ceil(rowGroupRows / rows);
  return {
    path,
    format: file.format,
    columnIndex,
    column: file.columns[columnIndex]!,
    rowGroup,
    rowGroupRows,
    chunk: chunks[columnIndex]!,
    spans: Array.from({ length: count }, (_, i) => ({
      from: i * rows,
      to: Math.min(rowGroupRows, (i + 1) * rows),
    })),
    wanted: 0,
    pages: null,
  };
}

/** The values of a decoded column. */
export function columnValues(column: Column): OurValue[] {
  return Array.from({ length: column.length }, (_, row) => columnValue(column, row));
}

/** All values of a column, read span by span: later reads use the page locations that the first one found. */
export async function valuesOf(
  file: ForeignFile,
  path: string,
  columnIndex: number,
  rows?: number,
  decode: typeof decodeForeign = decodeForeign,
): Promise<OurValue[]> {
  const values: OurValue[] = [];
  for (const [rowGroup] of file.rowGroups.entries()) {
    const read = readingOf(file, path, columnIndex, rowGroup, rows);
    const known = new Map<number, OurValue[]>();
    let pages: PageTable | null = null;
    for (const [wanted, { from, to }] of read.spans.entries()) {
      if (!known.has(wanted)) {
        const decoded: DecodedSpans = await decode({ ...read, wanted, pages });
        pages = decoded.pages;
        for (const { span, column } of decoded.spans) known.set(span, columnValues(column));
      }
      const span = known.get(wanted);
      if (span?.length !== to - from) throw new Error(`the rows ${from} to ${to} did not come`);
      for (const value of span) values.push(value);
    }
  }
  return values;
}
