import { FormatError } from '../parquet/format.js';
import { readThrift, type ThriftBounds } from '../parquet/thrift-reader.js';
import { foreignPagesMax } from '../core/limits.js';
import type { LeafChunk, PageTable, RowSpan } from './foreign-file.js';

/** Upper bound of the size of an index: the most pages that are read, about twenty bytes each. */
export const offsetIndexBytesMax = 24 * foreignPagesMax;

/**
 * Reads an `OffsetIndex` (parquet.thrift), which the file's writer stored outside the chunk. Null where it is malformed or
 * contradicts the chunk; the page headers are read instead then.
 */
export function readOffsetIndex(
  bytes: Uint8Array,
  { offset, bytes: chunkBytes }: LeafChunk,
  rowGroupRows: number,
): PageTable | null {
  const offsets: number[] = [];
  const firstRows: number[] = [];
  let end = -1;
  const bounds: ThriftBounds = {
    // Besides the pages, the index only has one number per page.
    valuesMax: foreignPagesMax + 8,
    handedOver: new Map([
      [
        1,
        {
          valuesMax: () => 4,
          receive: (page, index, length) => {
            if (length > foreignPagesMax)
              page.fail(`the column chunk has more than ${foreignPagesMax} pages`);
            const at = page.size(1);
            const firstRow = page.size(3);
            const isNext = index === 0 ? firstRow === 0 : at === end && firstRow > firstRows.at(-1)!;
            if (!isNext || at < offset || firstRow >= rowGroupRows)
              page.fail('a page of the offset index lies outside the column chunk');
            offsets.push(at);
            firstRows.push(firstRow);
            end = at + page.size(2);
          },
        },
      ],
    ]),
  };
  try {
    readThrift(bytes, 0, bounds);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
  if (offsets.length === 0 || end > offset + chunkBytes) return null;
  return { offsets: [...offsets, end], firstRows: [...firstRows, rowGroupRows] };
}

/** The pages [first, last) that hold a span; null where the table has none. */
export function pageRange(
  { firstRows }: PageTable,
  { from, to }: RowSpan,
): { readonly first: number; readonly last: number } | null {
  const first = firstRows.findLastIndex((row) => row <= from);
  const last = firstRows.findIndex((row) => row >= to);
  return first < 0 || last <= first ? null : { first, last };
}
