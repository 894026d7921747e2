import { bufferBytes } from '../../memory/allocator.js';
import { sharedMemory, type SharedMemory } from '../../memory/shared-memory.js';
import { answerBytesMax, cellsOfBlock } from '../../terms/limits.js';

/** The distance between two cells: the bytes of a piece, and the slack behind it that kernels need. */
const strideBytes = bufferBytes(answerBytesMax);

/** Cells that lie one behind the other. */
interface Block {
  readonly address: number;
  /** Addresses of free cells. */
  readonly free: number[];
}

/**
 * Memory for the pieces of answers: cells of one size in the memory that kernels and threads share, each of which is given back by
 * itself. They are cut from blocks, so that a piece that waits for a slow client does not divide the memory that columns need.
 */
export class AnswerCells {
  readonly #memory: SharedMemory;
  /** Blocks that have free cells, the one that was made first before the others. */
  readonly #blocks: Block[] = [];
  readonly #blockOf = new Map<number, Block>();

  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /** How many are in use. */
  get taken(): number {
    return this.#blockOf.size;
  }

  /** The address of a cell of `answerBytesMax` bytes, of any content, with slack behind them; null when there is no memory. */
  take(): number | null {
    const block = this.#blocks[0] ?? this.#addBlock();
    if (block === null) return null;
    const address = block.free.pop()!;
    if (block.free.length === 0) this.#blocks.splice(this.#blocks.indexOf(block), 1);
    this.#blockOf.set(address, block);
    return address;
  }

  /** Gives a cell back. */
  give(address: number): void {
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

  /** Gives back the memory of a block that nobody has a cell of, but for one such block: short answers come one after another. */
  #drop(block: Block): void {
    if (this.#blocks.every((other) => other === block || other.free.length < cellsOfBlock)) return;
    this.#blocks.splice(this.#blocks.indexOf(block), 1);
    this.#memory.free(block.address);
  }
}

let own: AnswerCells | undefined;

/** The cells of this thread's shared memory. */
export function answerCells(): AnswerCells {
  own ??= new AnswerCells(sharedMemory());
  return own;
}
