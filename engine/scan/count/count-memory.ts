import { LogstrataError } from '../../terms/errors.js';
import { countMemoryBytesMax } from '../../terms/limits.js';

let takenBytes = 0;

/** What one count has of the memory that all of them share. It is given back in the `finally` of the function that made it. */
export class CountMemory {
  #bytes = 0;

  /** Takes so many bytes more, or with a negative number gives some back. Throws `limit` where other counts have too much. */
  take(bytes: number): void {
    if (bytes > 0 && takenBytes + bytes > countMemoryBytesMax)
      throw new LogstrataError(
        'limit',
        'other counts take all the memory that there is for their values: ask again',
      );
    this.#bytes += bytes;
    takenBytes += bytes;
  }

  release(): void {
    takenBytes -= this.#bytes;
    this.#bytes = 0;
  }
}
