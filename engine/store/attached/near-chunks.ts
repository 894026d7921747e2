import type { ForeignFile } from '../../foreign/foreign-file.js';
import { objectGapBytesMax, objectRequestBytesMax } from '../../core/limits.js';
import type { ByteRange } from '../../objects/object-storage.js';

/**
 * Byte ranges of the same column in neighbouring row groups, as far as they fit into one request. Otherwise each small row group of an
 * object would take a request of its own, and a query that needs one mostly needs its neighbours too.
 */
export function nearChunks({ rowGroups }: ForeignFile, columnIndex: number, rowGroup: number): ByteRange[] {
  const found: ByteRange[] = [];
  const rangeOf = (index: number): ByteRange | null => {
    const chunk = rowGroups[index]?.chunks[columnIndex];
    return chunk === undefined || chunk.bytes === 0
      ? null
      : { from: chunk.offset, to: chunk.offset + chunk.bytes };
  };
  const own = rangeOf(rowGroup);
  if (own === null) return [];
  let { from, to } = own;
  // Preceding row groups first: the newest rows are queried most and are mostly at the end of a file.
  for (const step of [-1, 1]) {
    for (let index = rowGroup + step; ; index += step) {
      const other = rangeOf(index);
      if (other === null) break;
      const gap = step < 0 ? from - other.to : other.from - to;
      const bytes = Math.max(to, other.to) - Math.min(from, other.from);
      if (gap < 0 || gap > objectGapBytesMax || bytes > objectRequestBytesMax) break;
      found.push(other);
      from = Math.min(from, other.from);
      to = Math.max(to, other.to);
    }
  }
  return found;
}
