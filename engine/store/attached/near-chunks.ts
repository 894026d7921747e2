import type { ForeignFile } from '../../foreign/foreign-file.js';
import { objectGapBytesMax, objectRequestBytesMax } from '../../terms/object-limits.js';
import type { ByteRange } from '../objects/object-storage.js';

/**
 * Where the same column of the row groups beside one lies, as far as one request brings it along: small row groups of an object would be a
 * request each, and a query that needs one mostly needs those beside it.
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
  // The newest rows are asked for most, and mostly stand at the end: what comes before is brought along first.
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
