import { assert } from '../core/errors.js';
import { bufferBytes } from '../core/allocator.js';
import { sharedMemory } from '../core/shared-memory.js';
import { kernelsOver, type Kernels } from './kernels.js';
import { layOutNeedles, needlesBytes, type KernelNeedle } from './needle.js';

/** The result of a search. `may`: a needle was found, or ruling all of them out would take too long. `none`: no needle occurs. */
export type BlockVerdict = 'may' | 'none' | 'malformed';

/** Size of the window that decompressed bytes pass through. The last 64 KiB of it are kept, because LZ4 matches can refer to them. */
const windowBytes = 256 * 1024;
/** Longer needles would not fit in the window beside that. */
export const searchedNeedleBytesMax = 4096;

/** Memory in bytes that a search for these needles needs, besides the page. */
export function searchRoomBytes(needles: readonly KernelNeedle[]): number {
  return bufferBytes(windowBytes) + needlesBytes(needles);
}

/**
 * Searches a page for needles while it is read piece by piece. Each piece is searched while it is in the CPU's nearest caches. The bytes
 * that an LZ4 block decompresses to are not kept. The kernels keep the state of a search in globals, so a thread has one search at a time.
 */
export class BlockSearch {
  readonly #block: Uint8Array;
  readonly #length: number | null;
  readonly #needles: readonly KernelNeedle[];
  readonly #kernels: Kernels;
  readonly #needlesAt: number;

  /**
   * @param block the page; its bytes may be read into it later
   * @param length length in bytes after decompression, for an LZ4 block; null where the page is uncompressed
   * @param room `searchRoomBytes` bytes followed by padding; like the block it must be in the kernels' memory
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
   * Continues the search. The first `upTo` bytes of the page have been read. Before the end of the page, `none` only means that nothing has
   * been found yet. After any other result, `search` must not be called again.
   */
  search(upTo: number): BlockVerdict {
    const isLast = upTo === this.#block.length;
    const kernels = this.#kernels;
    const at = this.#block.byteOffset;
    if (this.#length !== null) return verdictOf(kernels.searchPiece(at + upTo, isLast ? 1 : 0));
    return isLast ? verdictOf(kernels.searchText(at, upTo, this.#needlesAt, this.#needles.length)) : 'none';
  }
}

/** The verdict for the result of a search kernel. */
export function verdictOf(result: number): BlockVerdict {
  return result === 0 ? 'none' : result > 0 ? 'may' : 'malformed';
}
