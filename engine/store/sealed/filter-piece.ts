import { crc32 } from 'node:zlib';
import type { ReadableFile } from '../disk/directory.js';
import { gramPieces } from './gram-filter.js';
import type { GramFilterPlace, SketchPlace, ValueFilterPlace } from './segment-filters.js';
import { checkedAfter, stripeBytes, valuePieces, type CheckedRange } from './value-filter.js';

/** A filter of a segment's file. */
export type StoredFilter =
  | { readonly kind: 'sketches'; readonly place: SketchPlace }
  | { readonly kind: 'values'; readonly place: ValueFilterPlace }
  | { readonly kind: 'grams'; readonly place: GramFilterPlace };

/** A part of a filter that has a checksum. Offsets are those in the file. */
export type FilterPiece = StoredFilter & CheckedRange;

export const pieceChecksumBytes = 4;

/** What was read of filters. */
export interface FilterCounters {
  gramPiecesRead: number;
  valuePiecesRead: number;
  bytesRead: number;
}

/** All pieces of a filter. Offsets count from its start. */
export function piecesOf({ kind, place }: StoredFilter, rowGroups: number): readonly CheckedRange[] {
  if (kind === 'values') return valuePieces(place.blocks);
  if (kind === 'grams') return gramPieces(place);
  const each = stripeBytes(rowGroups);
  return Array.from({ length: place.stripes }, (_, i) => checkedAfter(i * each, each - pieceChecksumBytes));
}

/** Reads a piece and its checksum: fewer bytes at the end of the file. */
export async function readPiece(
  file: ReadableFile,
  { offset, bytes, checksumOffset }: CheckedRange,
): Promise<Uint8Array> {
  if (checksumOffset === offset + bytes) return file.read(offset, bytes + pieceChecksumBytes);
  return Buffer.concat([await file.read(offset, bytes), await file.read(checksumOffset, pieceChecksumBytes)]);
}

/** Whether a piece, which its checksum follows, is `bytes` long and matches it. */
export function isWhole(stored: Uint8Array, bytes: number): boolean {
  if (stored.length !== bytes + pieceChecksumBytes) return false;
  const view = new DataView(stored.buffer, stored.byteOffset, stored.length);
  return view.getUint32(bytes, true) === crc32(stored.subarray(0, bytes));
}

/**
 * Counts a piece that was read with its checksum. Returns its bytes, all of which are set where it is damaged, so that it rules nothing out;
 * `verify` reports it.
 */
export function checkedPiece(
  { kind, bytes }: FilterPiece,
  stored: Uint8Array,
  counters: FilterCounters,
): Uint8Array {
  counters.bytesRead += stored.length;
  counters[kind === 'grams' ? 'gramPiecesRead' : 'valuePiecesRead']++;
  return isWhole(stored, bytes) ? stored : new Uint8Array(bytes).fill(0xff);
}
