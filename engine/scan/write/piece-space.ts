import { sharedMemory, type SharedMemory } from '../../memory/shared-memory.js';
import { answerBytesMax } from '../../terms/limits.js';
import { answerCells } from './answer-cells.js';

/** Where the pieces of an answer are written. */
export interface PieceSpace {
  /** Room for a piece of `sizeBytes`, of any content. Kernels that write to it where it lies have slack behind it. */
  open(sizeBytes: number): Uint8Array;
  /** Ends the piece in the room that was opened last: what its reader is given. */
  end(piece: Uint8Array): Uint8Array;
}

const nothingToFree = (): void => undefined;

/**
 * Lends the reader of an answer its pieces where they were written, one at a time: in one room of the kernels' memory, or in the cells that
 * threads have written. A piece may be read until the next one is begun or lent. The owner calls `close`.
 */
export class LentSpace implements PieceSpace {
  #room: Uint8Array | undefined;
  #cell: number | null = null;
  #freeLent: () => void = nothingToFree;

  open(sizeBytes: number): Uint8Array {
    // A room more than twice as large, made for one long line, is not used again.
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

  /** Gives the reader a piece that lies elsewhere, until `free` is called. */
  lend(piece: Uint8Array, free: () => void): Uint8Array {
    this.close();
    this.#freeLent = free;
    return piece;
  }

  /** Gives back the memory of the piece that was given last. */
  close(): void {
    if (this.#cell !== null) answerCells().give(this.#cell);
    this.#cell = null;
    this.#room = undefined;
    const free = this.#freeLent;
    this.#freeLent = nothingToFree;
    free();
  }
}

/** As `LentSpace`, for readers that keep what they are given: each piece is a copy. */
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

/** The bytes in memory of their own. */
export function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

/** Cells of another thread's memory, one for each piece; those that there is no cell for, or that don't fit one, go on the heap. */
export class CellSpace implements PieceSpace {
  readonly #memory: SharedMemory;
  readonly #cells: readonly number[];
  /** Cells that have a piece. */
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
    // A message moves the whole buffer: of a buffer that is mostly unused, the piece alone is copied.
    return piece.length * 2 < piece.buffer.byteLength ? copyOf(piece) : piece;
  }
}
