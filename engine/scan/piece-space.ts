import { bufferBytes, slackBytes } from '../memory/allocator.js';
import { sharedMemory, type SharedMemory } from '../memory/shared-memory.js';

/** Where the pieces of an answer are written. */
export interface PieceSpace {
  /** Room for a piece of `sizeBytes`, of any content. Kernels that write to it where it lies have slack behind it. */
  open(sizeBytes: number): Uint8Array;
  /** Ends the piece in the room that was opened last: what its reader is given. */
  end(piece: Uint8Array): Uint8Array;
}

/**
 * One room in the kernels' memory for all pieces, one after another: no piece needs memory of its own, and none is copied. What was
 * given may be read until the next piece is begun. Whoever makes one calls `close`.
 */
export class LentSpace implements PieceSpace {
  readonly #memory = sharedMemory();
  #room: Uint8Array | undefined;
  #address: number | null = null;

  open(sizeBytes: number): Uint8Array {
    // Larger than needed it stays only if that is not much: a room for one long line is not kept.
    const known = this.#room;
    if (known !== undefined && known.length >= sizeBytes && known.length <= 2 * sizeBytes)
      return known.subarray(0, sizeBytes);
    this.close();
    this.#address = this.#memory.allocate(bufferBytes(sizeBytes));
    this.#room =
      this.#address === null
        ? Buffer.allocUnsafeSlow(sizeBytes)
        : new Uint8Array(this.#memory.bufferUpTo(this.#address + sizeBytes), this.#address, sizeBytes);
    return this.#room;
  }

  end(piece: Uint8Array): Uint8Array {
    return piece;
  }

  /** Gives back the room. */
  close(): void {
    if (this.#address !== null) this.#memory.free(this.#address);
    this.#address = null;
    this.#room = undefined;
  }
}

/** As `LentSpace`, for readers that keep what they are given: each piece is a copy. */
export class OwnSpace extends LentSpace {
  override end(piece: Uint8Array): Uint8Array {
    return copyOf(piece);
  }
}

/** The bytes in memory of their own. */
export function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

/** A range of another thread's memory, filled with pieces one behind the other; those that it has no room for go on the heap. */
export class PieceRange implements PieceSpace {
  readonly #buffer: ArrayBufferLike;
  readonly #end: number;
  #at: number;

  constructor(memory: SharedMemory, address: number, sizeBytes: number) {
    this.#buffer = memory.bufferUpTo(address + sizeBytes);
    this.#at = address;
    this.#end = address + sizeBytes - slackBytes;
  }

  open(sizeBytes: number): Uint8Array {
    if (this.#at + sizeBytes > this.#end) return new Uint8Array(sizeBytes);
    return new Uint8Array(this.#buffer, this.#at, sizeBytes);
  }

  /** Whether a piece lies in the range. */
  holds(piece: Uint8Array): boolean {
    return piece.buffer === this.#buffer;
  }

  end(piece: Uint8Array): Uint8Array {
    if (this.holds(piece)) {
      this.#at = piece.byteOffset + piece.length;
      return piece;
    }
    // What moves between threads takes its whole buffer along: a small part of one goes alone.
    return piece.length * 2 < piece.buffer.byteLength ? copyOf(piece) : piece;
  }
}
