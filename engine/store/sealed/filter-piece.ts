import { crc32 } from 'node:zlib';

/** A part of a segment's file that belongs to a filter and has a checksum. */
export interface FilterPiece {
  readonly kind: 'sketches' | 'values' | 'grams';
  /** Offset in the file. */
  readonly offset: number;
  /** Bytes without the checksum. */
  readonly bytes: number;
  /** Offset of the checksum in the file. */
  readonly checksumOffset: number;
}

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
export function countPiece({ kind }: FilterPiece, bytesRead: number, counters: FilterCounters): void {
  counters.bytesRead += bytesRead;
  if (kind === 'grams') counters.gramPiecesRead++;
  else counters.valuePiecesRead++;
}

/**
 * Checks a piece that was read together with its checksum, which follows it. A damaged one gets all bits set, so that it rules nothing out;
 * `verify` reports it. Returns whether it is whole.
 */
export function checkPiece(stored: Uint8Array, bytesRead: number): boolean {
  const end = stored.length - pieceChecksumBytes;
  const view = new DataView(stored.buffer, stored.byteOffset, stored.length);
  const isWhole = bytesRead === stored.length && view.getUint32(end, true) === crc32(stored.subarray(0, end));
  if (!isWhole) stored.fill(0xff);
  return isWhole;
}
