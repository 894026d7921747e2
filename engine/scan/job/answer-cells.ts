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
