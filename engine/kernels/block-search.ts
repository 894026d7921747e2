import { assert } from '../terms/assert.js';
import { bufferBytes } from '../memory/allocator.js';
import { sharedMemory } from '../memory/shared-memory.js';
import { kernelsOver, type Kernels } from './kernels.js';
import { layOutNeedles, needlesBytes, type KernelNeedle } from './needle.js';

/** `may`: one of the needles stands there, or it would take long to say that none does. */
export type BlockVerdict = 'may' | 'none' | 'malformed';

/** What is decompressed passes through so many bytes: of these, what matches reach back to stays, which is 64 KiB. */
const windowBytes = 256 * 1024;
/** Longer needles would not fit beside that. */
export const searchedNeedleBytesMax = 4096;

/** The room that a search for these needles takes beside what it goes through. */
export function searchRoomBytes(needles: readonly KernelNeedle[]): number {
  return bufferBytes(windowBytes) + needlesBytes(needles);
}

/**
 * Looks for needles in a page that is read piece by piece. Each piece is searched while it is in the nearest caches; what an LZ4 block
 * decompresses to is not kept. A thread has one search at a time.
 */
export class BlockSearch {
  readonly #block: Uint8Array;
  readonly #length: number | null;
  readonly #needles: readonly KernelNeedle[];
  readonly #kernels: Kernels;
  readonly #needlesAt: number;

  /**
   * @param block the page, whose bytes may be read later
   * @param length what it makes when it is an LZ4 block; null when it is a text by itself
   * @param room `searchRoomBytes`, followed by slack; lies in the kernels' memory, as the block does
   */
  constructor(block: Uint8Array, length: number | null, needles: readonly KernelNeedle[], room: Uint8Array) {
    assert(
      needles.every((needle) => needle.length > 0 && needle.length <= searchedNeedleBytesMax),
      'needles that fit the window',
    );
    this.#block = block;
    this.#length = length;
    this.#needles = needles;
    const memory = sharedMemory();
    assert(memory.holds(block) && memory.holds(room), "a page in the kernels' memory");
    this.#kernels = kernelsOver(memory);
    const windowAt = room.byteOffset;
    this.#needlesAt = windowAt + bufferBytes(windowBytes);
    layOutNeedles(needles, room.subarray(bufferBytes(windowBytes)));
    if (length === null) return;
    this.#kernels.beginSearch(
      block.byteOffset,
      length,
      windowAt,
      windowBytes,
      this.#needlesAt,
      needles.length,
    );
  }

  /**
   * Goes on: the first `upTo` bytes of the page have been read. `none` before all of them have been only says that there is nothing
   * so far; nothing more may be asked after another answer.
   */
  search(upTo: number): BlockVerdict {
    const isLast = upTo === this.#block.length;
    const kernels = this.#kernels;
    const at = this.#block.byteOffset;
    if (this.#length !== null) return verdictOf(kernels.searchPiece(at + upTo, isLast ? 1 : 0));
    return isLast ? verdictOf(kernels.searchText(at, upTo, this.#needlesAt, this.#needles.length)) : 'none';
  }
}

/** What a kernel has found, as its number says. */
export function verdictOf(result: number): BlockVerdict {
  return result === 0 ? 'none' : result > 0 ? 'may' : 'malformed';
}
