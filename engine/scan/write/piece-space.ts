import { sharedMemory, type SharedMemory } from '../../memory/shared-memory.js';
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

const nothingToFree = (): void => undefined;

/**
 * Lends a reader the pieces of an answer where they were written, one at a time: in a cell of this space, or in the cells that threads have
 * filled. A piece may be read until the next one is begun or lent. The owner calls `close`.
 */
export class LentSpace implements PieceSpace {
  #room: Uint8Array | undefined;
  #cell: number | null = null;
  #freeLent: () => void = nothingToFree;

  open(sizeBytes: number): Uint8Array {
    // A buffer of more than twice the size was made for one long line, and is not used again.
    const known = this.#room;
    if (known !== undefined && known.length >= sizeBytes && known.length <= 2 * sizeBytes)
      return known.subarray(0, sizeBytes);
    this.close();
    this.#room = this.#openCell(sizeBytes) ?? Buffer.allocUnsafeSlow(sizeBytes);
    return this.#room;
  }

  #openCell(sizeBytes: number): Uint8Array | null {
    if (sizeBytes > answerBytesMax) return null;
    this.#cell = answerCells().take();
    if (this.#cell === null) return null;
    return sharedMemory().bytesAt({ address: this.#cell, sizeBytes });
  }

  end(piece: Uint8Array): Uint8Array {
    return piece;
  }

  /** Lends a piece in memory elsewhere. `free` is called when the reader is done with it. */
  lend(piece: Uint8Array, free: () => void): Uint8Array {
    this.close();
    this.#freeLent = free;
    return piece;
  }

  /** Gives back the memory of the last piece. */
  close(): void {
    if (this.#cell !== null) answerCells().giveBack(this.#cell);
    this.#cell = null;
    this.#room = undefined;
    const free = this.#freeLent;
    this.#freeLent = nothingToFree;
    free();
  }
}

/** Like `LentSpace`, for readers that keep the pieces: each piece is a copy. */
export class OwnSpace extends LentSpace {
  override end(piece: Uint8Array): Uint8Array {
    return copyOf(piece);
  }

  override lend(piece: Uint8Array, free: () => void): Uint8Array {
    const own = copyOf(piece);
    free();
    return own;
  }
}

/** Copies the bytes to a buffer of their own. */
export function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

/** Cells of another thread's memory, one for each piece. Pieces that don't fit in a cell, or for which none is left, go to the heap. */
export class CellSpace implements PieceSpace {
  readonly #memory: SharedMemory;
  readonly #cells: readonly number[];
  /** Number of cells that have a piece. */
  filled = 0;

  constructor(memory: SharedMemory, cells: readonly number[]) {
    this.#memory = memory;
    this.#cells = cells;
  }

  open(sizeBytes: number): Uint8Array {
    const address = this.#cells[this.filled];
    if (address === undefined || sizeBytes > answerBytesMax) return new Uint8Array(sizeBytes);
    return this.#memory.bytesAt({ address, sizeBytes });
  }

  end(piece: Uint8Array): Uint8Array {
    if (this.#memory.holds(piece)) {
      this.filled++;
      return piece;
    }
    // A message transfers the whole buffer. Where less than half of it is used, only the piece is copied.
    return piece.length * 2 < piece.buffer.byteLength ? copyOf(piece) : piece;
  }
}
