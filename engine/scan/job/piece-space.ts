import { bufferBytes } from '../../memory/allocator.js';
import { sharedMemory, type SharedMemory } from '../../memory/shared-memory.js';
import { answerBytesMax, cellsOfBlock } from '../../terms/limits.js';

/** Distance between the cells of a block: the bytes of a piece, plus the padding after it that kernels may touch. */
const strideBytes = bufferBytes(answerBytesMax);

/** Consecutive cells in one allocation. */
interface Block {
  readonly address: number;
  /** Addresses of free cells. */
  readonly free: number[];
}

/**
 * Memory for the pieces of answers: cells of one size in the memory that kernels and threads share. Each cell is given back individually.
 * Cells are cut from larger blocks, so that a piece that waits for a slow client does not fragment the memory that columns need.
 */
export class AnswerCells {
  readonly #memory: SharedMemory;
  /** Blocks that have free cells, in the order in which they came to have some. */
  readonly #blocks: Block[] = [];
  readonly #blockOf = new Map<number, Block>();

  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /** Number of cells in use. */
  get taken(): number {
    return this.#blockOf.size;
  }

  /** The address of a cell of `answerBytesMax` bytes plus padding, with undefined contents; null when there is no memory. */
  take(): number | null {
    const block = this.#blocks[0] ?? this.#addBlock();
    if (block === null) return null;
    const address = block.free.pop()!;
    if (block.free.length === 0) this.#blocks.splice(this.#blocks.indexOf(block), 1);
    this.#blockOf.set(address, block);
    return address;
  }

  /** Gives back a cell that `take` returned. */
  giveBack(address: number): void {
    const block = this.#blockOf.get(address)!;
    this.#blockOf.delete(address);
    block.free.push(address);
    if (block.free.length === 1) this.#blocks.push(block);
    if (block.free.length === cellsOfBlock) this.#drop(block);
  }

  #addBlock(): Block | null {
    const address = this.#memory.allocate(cellsOfBlock * strideBytes);
    if (address === null) return null;
    const free = Array.from({ length: cellsOfBlock }, (_, i) => address + i * strideBytes);
    const block = { address, free: free.reverse() };
    this.#blocks.push(block);
    return block;
  }

  /** Frees the memory of a block whose cells are all free. One such block is kept, because short answers come one after another. */
  #drop(block: Block): void {
    if (this.#blocks.every((other) => other === block || other.free.length < cellsOfBlock)) return;
    this.#blocks.splice(this.#blocks.indexOf(block), 1);
    this.#memory.free(block.address);
  }
}

let own: AnswerCells | undefined;

/** The cells in the shared memory of this thread. */
export function answerCells(): AnswerCells {
  own ??= new AnswerCells(sharedMemory());
  return own;
}

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
