/** A message that is larger gets memory of its own, which the garbage collector frees. */
const keptBytesMax = 16 * 1024 * 1024;

/**
 * Memory that messages are laid out in, one after another. A commit makes a message of some megabytes, and new memory for each would
 * have the garbage collector run all the time.
 */
export class MessageSpace {
  private spare = new Uint8Array(0);

  /** Has `use` fill and use memory for a message, with anything in it at first, which is its own until it has ended. */
  async use<T>(use: (allocate: (sizeBytes: number) => Uint8Array) => Promise<T>): Promise<T> {
    let taken = this.spare;
    // Who comes meanwhile gets other memory.
    this.spare = new Uint8Array(0);
    try {
      return await use((sizeBytes) => {
        if (sizeBytes <= taken.length) return taken.subarray(0, sizeBytes);
        const fresh = new Uint8Array(sizeBytes);
        if (sizeBytes <= keptBytesMax) taken = fresh;
        return fresh;
      });
    } finally {
      if (taken.length > this.spare.length) this.spare = taken;
    }
  }
}
