import type { SharedMemory } from '../../memory/shared-memory.js';
import { answerBytesMax } from '../../terms/limits.js';
import { answerCells } from './answer-cells.js';

/** Allocates the memory of the pieces of an answer. */
export interface PieceSpace {
  /**
   * Memory for a piece of `sizeBytes`, with undefined contents. Where it is in the kernels' memory, padding that they may touch follows.
   */
  open(sizeBytes: number): Uint8Array;
  /** Finishes a piece in the memory that was opened last. Returns the bytes for the reader. */
  end(piece: Uint8Array): Uint8Array;
}

/** Copies the bytes to a buffer of their own. */
export function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

/** Up to `count` cells of this thread's memory for pieces of `pieceBytes`; fewer where there is not enough memory, or where they don't fit. */
export function takeCells(count: number, pieceBytes: number): number[] {
  const cells: number[] = [];
  while (pieceBytes <= answerBytesMax && cells.length < count) {
    const cell = answerCells().take();
    if (cell === null) break;
    cells.push(cell);
  }
  return cells;
}

/** Memory for pieces: cells, one for each piece. Pieces that don't fit in a cell, or for which none is left, go to the heap. */
export class CellSpace implements PieceSpace {
  readonly #memory: SharedMemory;
  readonly cells: readonly number[];
  /** Number of cells that have a piece. */
  #filled = 0;

  constructor(memory: SharedMemory, cells: readonly number[]) {
    this.#memory = memory;
    this.cells = cells;
  }

  open(sizeBytes: number): Uint8Array {
    const address = this.cells[this.#filled];
    if (address === undefined || sizeBytes > answerBytesMax) return new Uint8Array(sizeBytes);
    return this.#memory.bytesAt({ address, sizeBytes });
  }

  end(piece: Uint8Array): Uint8Array {
    if (this.#memory.holds(piece)) {
      this.#filled++;
      return piece;
    }
    // A message transfers the whole buffer. Where less than half of it is used, only the piece is copied.
    return piece.length * 2 < piece.buffer.byteLength ? copyOf(piece) : piece;
  }

  /** A piece that another thread has written to the next cell, where it is given as its length, or to the heap. `free` gives back its memory. */
  given(piece: number | Uint8Array): { bytes: Uint8Array; free: () => void } {
    if (typeof piece !== 'number') return { bytes: piece, free: () => undefined };
    const address = this.cells[this.#filled++]!;
    const bytes = this.#memory.bytesAt({ address, sizeBytes: piece });
    return { bytes, free: () => answerCells().giveBack(address) };
  }

  /** Gives back the cells that have no piece. */
  freeUnused(): void {
    for (const address of this.cells.slice(this.#filled)) answerCells().giveBack(address);
  }

  /** Gives back all cells. */
  free(): void {
    for (const address of this.cells) answerCells().giveBack(address);
  }
}
