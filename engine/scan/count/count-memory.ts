import { LogstrataError } from '../../terms/errors.js';
import { countMemoryBytesMax } from '../../terms/limits.js';

let takenBytes = 0;

/**
 * The memory that one count uses, as part of a limit on all counts together. Call `release` in the `finally` of the function that made it.
 */
export class CountMemory {
  #bytes = 0;

  /**
   * Takes that many bytes; a negative number gives bytes back. Throws `limit` where all counts together would exceed `countMemoryBytesMax`.
   */
  take(bytes: number): void {
    if (bytes > 0 && takenBytes + bytes > countMemoryBytesMax)
      throw new LogstrataError('limit', 'other counts use all the memory for their values: try again');
    this.#bytes += bytes;
    takenBytes += bytes;
  }

  /** Gives back everything that was taken. */
  release(): void {
    takenBytes -= this.#bytes;
    this.#bytes = 0;
  }
}
