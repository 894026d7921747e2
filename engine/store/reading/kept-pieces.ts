import type { LoadedPiece } from '../sealed/filter-piece.js';
import type { Column } from '../../columns/column.js';
import type { ColumnSpace } from '../../parquet/column-space.js';

/** The part of the buffer pool that keeps filters. */
export interface PiecePool {
  readonly bytesMax: number;
  keepFilters(request: {
    readonly key: string;
    readonly sizeBytes: number;
    onGone(): void;
    load(space: ColumnSpace): Promise<Column>;
  }): Promise<void> | null;
  touch(keys: readonly string[]): void;
  evict(prefix: string): void;
}

/** Pieces of filters that were read together and lie in one range of the buffer pool's memory, which evicts them together. */
export class PieceRange {
  /** A list, because the pool looks up lists of keys. */
  readonly keys: readonly [string];
  readonly #pool: PiecePool;
  readonly #pieces = new Set<KeptPiece>();
  #touchedBy = 0;
  #isGone = false;

  constructor(pool: PiecePool) {
    this.keys = [`filters/${++ranges}/`];
    this.#pool = pool;
  }

  /** Adds a piece of a segment. */
  add(segment: SegmentPieces, offset: number, bytes: Uint8Array, at: number): void {
    if (this.#isGone) return;
    const piece = { range: this, segment, offset, bytes, at };
    this.#pieces.add(piece);
    segment.add(piece);
  }

  /** Notes that a segment has no use for a piece any more. The range is dropped with its last piece. */
  remove(piece: KeptPiece): void {
    this.#pieces.delete(piece);
    this.dropIfEmpty();
  }

  dropIfEmpty(): void {
    if (!this.#isGone && this.#pieces.size === 0) this.#pool.evict(this.keys[0]);
  }

  /** Keeps the pool from evicting this range before others. Once for a query is enough: it takes longer than to find a piece. */
  touch(query: number): void {
    if (this.#touchedBy === query) return;
    this.#touchedBy = query;
    this.#pool.touch(this.keys);
  }

  /** Forgets the pieces: the pool has dropped the range. */
  gone(): void {
    this.#isGone = true;
    for (const piece of this.#pieces) piece.segment.lose(piece);
  }
}

let ranges = 0;

interface KeptPiece extends LoadedPiece {
  readonly range: PieceRange;
  readonly segment: SegmentPieces;
  /** Offset in the file. */
  readonly offset: number;
}

/** The pieces of one segment's filters that are in the buffer pool. */
export class SegmentPieces {
  /** By their offsets in the file. */
  readonly #pieces = new Map<number, KeptPiece>();

  /**
   * The piece at an offset in the file, for a query by its number; null if it is not in memory. It may only be read until the caller yields
   * to the event loop.
   */
  at(offset: number, query: number): LoadedPiece | null {
    const piece = this.#pieces.get(offset);
    if (piece === undefined) return null;
    piece.range.touch(query);
    return piece;
  }

  add(piece: KeptPiece): void {
    const before = this.#pieces.get(piece.offset);
    this.#pieces.set(piece.offset, piece);
    before?.range.remove(before);
  }

  lose(piece: KeptPiece): void {
    if (this.#pieces.get(piece.offset) === piece) this.#pieces.delete(piece.offset);
  }

  /** Drops all pieces: the segment is closed. */
  clear(): void {
    const pieces = [...this.#pieces.values()];
    this.#pieces.clear();
    for (const piece of pieces) piece.range.remove(piece);
  }
}
