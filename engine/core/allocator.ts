import { assert } from './errors.js';

/** Buffers begin at multiples of this, because vectors and words are read fastest there. */
export const alignmentBytes = 64;
/** Padding after each buffer. Kernels read and write whole vectors, and so touch up to this many bytes after the end of a buffer. */
export const paddingBytes = 64;

/** Rounds a size up to a multiple of `alignmentBytes`. */
export function alignedBytes(sizeBytes: number): number {
  return Math.ceil(sizeBytes / alignmentBytes) * alignmentBytes;
}

/** Bytes that a buffer of `sizeBytes` takes, including alignment and padding. */
export function bufferBytes(sizeBytes: number): number {
  return alignedBytes(sizeBytes) + paddingBytes;
}

/**
 * Allocates ranges of an address space that can grow at its end. Takes the smallest free range that is large enough, and merges free
 * neighbours, so that fragmentation stays small. It only handles addresses, not memory.
 */
export class Allocator {
  /** Free ranges in ascending order. No two of them are adjacent. */
  readonly #starts: number[] = [];
  readonly #sizes: number[] = [];
  readonly #taken = new Map<number, number>();
  readonly #base: number;
  #end: number;
  #takenBytes = 0;

  /** @param base the first address; it is rounded up. The space is empty until `extend` is called. */
  constructor(base: number) {
    this.#base = alignedBytes(base);
    this.#end = this.#base;
  }

  /** The first address after the space. */
  get end(): number {
    return this.#end;
  }

  /** Bytes in allocated ranges. */
  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Bytes in free ranges. */
  get freeBytes(): number {
    return this.#end - this.#base - this.#takenBytes;
  }

  /** Bytes of the free range at the end of the space. */
  get freeAtEndBytes(): number {
    const last = this.#starts.length - 1;
    return last >= 0 && this.#starts[last]! + this.#sizes[last]! === this.#end ? this.#sizes[last]! : 0;
  }

  /** Moves the end of the space up to `end`, rounded down. */
  extend(end: number): void {
    const to = Math.floor(end / alignmentBytes) * alignmentBytes;
    if (to <= this.#end) return;
    const start = this.#end;
    this.#end = to;
    this.#insert(start, to - start);
  }

  /** The address of a range of at least `sizeBytes`, which the caller has to free; null where no free range is large enough. */
  allocate(sizeBytes: number): number | null {
    const wanted = alignedBytes(Math.max(1, sizeBytes));
    let best = -1;
    for (let i = 0; i < this.#sizes.length; i++) {
      const size = this.#sizes[i]!;
      if (size >= wanted && (best < 0 || size < this.#sizes[best]!)) best = i;
    }
    if (best < 0) return null;
    const address = this.#starts[best]!;
    if (this.#sizes[best] === wanted) {
      this.#starts.splice(best, 1);
      this.#sizes.splice(best, 1);
    } else {
      this.#starts[best]! += wanted;
      this.#sizes[best]! -= wanted;
    }
    this.#taken.set(address, wanted);
    this.#takenBytes += wanted;
    return address;
  }

  /** Bytes of the allocated range at `address`. */
  sizeOf(address: number): number {
    const size = this.#taken.get(address);
    assert(size !== undefined, `no range was given out at ${address}`);
    return size;
  }

  /** Frees all but the first `sizeBytes` of the range at `address`. */
  shrink(address: number, sizeBytes: number): void {
    const size = this.sizeOf(address);
    const kept = alignedBytes(Math.max(1, sizeBytes));
    assert(kept <= size, 'a range only shrinks');
    if (kept === size) return;
    this.#taken.set(address, kept);
    this.#takenBytes -= size - kept;
    this.#insert(address + kept, size - kept);
  }

  /** Frees the range at `address`. */
  free(address: number): void {
    const size = this.sizeOf(address);
    this.#taken.delete(address);
    this.#takenBytes -= size;
    this.#insert(address, size);
  }

  #insert(start: number, size: number): void {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#starts[middle]! < start) low = middle + 1;
      else high = middle;
    }
    const joinsNext = low < this.#starts.length && start + size === this.#starts[low];
    const joinsBefore = low > 0 && this.#starts[low - 1]! + this.#sizes[low - 1]! === start;
    if (joinsBefore) {
      this.#sizes[low - 1]! += size + (joinsNext ? this.#sizes[low]! : 0);
      if (joinsNext) {
        this.#starts.splice(low, 1);
        this.#sizes.splice(low, 1);
      }
    } else if (joinsNext) {
      this.#starts[low] = start;
      this.#sizes[low]! += size;
    } else {
      this.#starts.splice(low, 0, start);
      this.#sizes.splice(low, 0, size);
    }
  }
}
