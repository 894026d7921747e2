import type { FilterPiece, LoadedPiece } from '../sealed/filter-piece.js';
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

/** Pieces of filters, and whole filters, that were read together and lie in one range of the buffer pool's memory, which evicts them together. */
export class PieceRange {
  /** A list, because the pool looks up lists of keys. */
  readonly keys: readonly [string];
  readonly #pool: PiecePool;
  /** Number of pieces that are in use. */
  #used = 0;
  #touchedBy = 0;
  /** Whether the pool has dropped the range. */
  isGone = false;

  constructor(pool: PiecePool) {
    this.keys = [`filters/${++ranges}/`];
    this.#pool = pool;
  }

  /** Adds what was read of a segment. */
  add(segment: SegmentPieces, stretch: Stretch): void {
    if (segment.add({ ...stretch, range: this })) this.#used++;
  }

  /** Notes that a segment has no use for a piece any more. */
  remove(): void {
    this.#used--;
    this.dropIfUnused();
  }

  dropIfUnused(): void {
    if (!this.isGone && this.#used === 0) this.#pool.evict(this.keys[0]);
  }

  /** Keeps the pool from evicting this range before others. Once for a query is enough: it takes longer than to find a piece. */
  touch(query: number): void {
    if (this.#touchedBy === query) return;
    this.#touchedBy = query;
    this.#pool.touch(this.keys);
  }
}

let ranges = 0;

/** A piece or a whole filter in memory. */
interface Stretch extends LoadedPiece {
  /** Offset in the file. */
  readonly offset: number;
  /** Offset of its end in the file. */
  readonly end: number;
}

interface KeptPiece extends Stretch {
  readonly range: PieceRange;
}

/** The pieces of one segment's filters, and its whole filters, that are in the buffer pool. */
export class SegmentPieces {
  /** By their offsets in the file. */
  readonly #pieces = new Map<number, KeptPiece>();

  /**
   * What begins at an offset in the file, for a query by its number; null if it is not in memory. It may only be read until the caller
   * yields to the event loop.
   */
  at(offset: number, query: number): LoadedPiece | null {
    const piece = this.#kept(offset);
    piece?.range.touch(query);
    return piece ?? null;
  }

  /** A piece, or its whole filter, as `at` returns it. */
  find({ place, offset, bytes }: FilterPiece, query: number): LoadedPiece | null {
    const whole = this.#kept(place.offset);
    if (whole === undefined || whole.end < offset + bytes) return this.at(offset, query);
    whole.range.touch(query);
    return { bytes: whole.bytes, at: whole.at + offset - place.offset };
  }

  #kept(offset: number): KeptPiece | undefined {
    const piece = this.#pieces.get(offset);
    return piece?.range.isGone === false ? piece : undefined;
  }

  /** Adds a piece. Returns false where its range, or a whole filter, has it already. */
  add(piece: KeptPiece): boolean {
    const before = this.#kept(piece.offset);
    if (before !== undefined && (before.end > piece.end || before.range === piece.range)) return false;
    this.#pieces.set(piece.offset, piece);
    before?.range.remove();
    return true;
  }

  /** Drops all pieces: the segment is closed. */
  clear(): void {
    for (const { range } of this.#pieces.values()) range.remove();
    this.#pieces.clear();
  }
}
