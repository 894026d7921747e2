import { crc32 } from 'node:zlib';
import { gramPieces } from './gram-filter.js';
import type { GramFilterPlace, SketchPlace, ValueFilterPlace } from './segment-filters.js';
import { stripeBytes, valuePieces, type CheckedRange } from './value-filter.js';

/** A filter of a segment's file. */
export type StoredFilter =
  | { readonly kind: 'sketches'; readonly place: SketchPlace }
  | { readonly kind: 'values'; readonly place: ValueFilterPlace }
  | { readonly kind: 'grams'; readonly place: GramFilterPlace };

/** A part of a filter that has a checksum. Offsets are those in the file. */
export type FilterPiece = StoredFilter & CheckedRange;

/** Where a checked piece lies in memory. */
export interface LoadedPiece {
  readonly bytes: Uint8Array;
  /** Offset of the piece in `bytes`. */
  readonly at: number;
}

export const pieceChecksumBytes = 4;

/** What was read of filters. */
export interface FilterCounters {
  gramPiecesRead: number;
  valuePiecesRead: number;
  bytesRead: number;
}

/** Counts a piece that was read. */
export function countPiece({ kind }: StoredFilter, bytesRead: number, counters: FilterCounters): void {
  counters.bytesRead += bytesRead;
  counters[kind === 'grams' ? 'gramPiecesRead' : 'valuePiecesRead']++;
}

/** All pieces of a filter. Offsets count from its start. */
export function piecesOf({ kind, place }: StoredFilter, rowGroups: number): readonly CheckedRange[] {
  if (kind === 'values') return valuePieces(place.blocks);
  if (kind === 'grams')
    return gramPieces(place).map(({ offset, bitmapBytes }) => checkedAfter(offset, bitmapBytes));
  const each = stripeBytes(rowGroups);
  return Array.from({ length: place.stripes }, (_, i) => checkedAfter(i * each, each - pieceChecksumBytes));
}

/** A range that its checksum follows. */
function checkedAfter(offset: number, bytes: number): CheckedRange {
  return { offset, bytes, checksumOffset: offset + bytes };
}

/** Whether a range of `stored` matches its checksum there. */
export function isWhole(stored: Uint8Array, { offset, bytes, checksumOffset }: CheckedRange): boolean {
  const view = new DataView(stored.buffer, stored.byteOffset, stored.length);
  return view.getUint32(checksumOffset, true) === crc32(stored.subarray(offset, offset + bytes));
}

/**
 * Checks a piece that was read, followed by its checksum. A damaged one gets all bits set, so that it rules nothing out; `verify` reports
 * it.
 */
export function checkPiece(stored: Uint8Array, bytesRead: number): void {
  const isRead = bytesRead === stored.length;
  if (!isRead || !isWhole(stored, checkedAfter(0, stored.length - pieceChecksumBytes))) stored.fill(0xff);
}
