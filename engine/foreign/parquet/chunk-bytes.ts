import { crc32 } from '../../kernels/crc32.js';
import { FormatError } from '../../parquet/format.js';
import { OpenFiles } from '../../store/disk/open-files.js';
import { foreignChunkReadMax, verifyPieceBytes } from '../../terms/limits.js';
import type { ForeignChunk, ForeignPlace } from '../foreign-file.js';
import { readForeignBytes } from '../source/foreign-bytes.js';

/** Older writers left the dictionary's header out of the bytes of a chunk, which is at most so long (https://issues.apache.org/jira/browse/PARQUET-816). */
export const missingBytesMax = 100;

/** Bytes that were read, and where they begin in the file. */
interface Piece {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** The bytes of a column chunk, by their offset in the file. What is kept is read once. */
export class ChunkBytes {
  /** Where the chunk ends as the file says. */
  readonly end: number;
  /** Where its last page ends at the latest. */
  readonly pagesEnd: number;
  /** Bytes that were read of the file. */
  bytesRead = 0;
  readonly #place: ForeignPlace;
  readonly #chunk: ForeignChunk;
  /** This reading's own: a file that another has taken the place of meanwhile must not be taken for it. */
  readonly #files = new OpenFiles(1);
  readonly #kept: Piece[] = [];

  constructor(place: ForeignPlace, chunk: ForeignChunk) {
    this.#place = place;
    this.#chunk = chunk;
    this.end = chunk.offset + chunk.bytes;
    this.pagesEnd = this.end + missingBytesMax;
  }

  /** Reads all of the chunk, and keeps it where it is not too large. Returns its crc32. Throws `FormatError`, `not_found` and `io`. */
  readWhole(): number {
    const { offset, bytes } = this.#chunk;
    if (bytes <= foreignChunkReadMax) return crc32(this.#keep(offset, bytes));
    let checksum = 0;
    for (let done = 0; done < bytes; done += verifyPieceBytes)
      checksum = crc32(this.#read(offset + done, Math.min(verifyPieceBytes, bytes - done)), checksum);
    return checksum;
  }

  /** Reads the bytes [at, end) at once, and keeps them, where they are not too many. Throws as `bytesAt` does. */
  readAhead(at: number, end: number): void {
    if (end - at > foreignChunkReadMax) return;
    this.#check(at, end - at);
    this.#keep(at, end - at);
  }

  /** The bytes [at, at + length), which lie in the chunk. Throws `FormatError`, `not_found` and `io`. */
  bytesAt(at: number, length: number): Uint8Array {
    this.#check(at, length);
    const kept = this.#kept.find((piece) => at >= piece.at && at + length <= piece.at + piece.bytes.length);
    return kept?.bytes.subarray(at - kept.at, at - kept.at + length) ?? this.#read(at, length);
  }

  /** Bytes of the file that are not of the chunk. Throws as `bytesAt` does. */
  bytesBeside(at: number, length: number): Uint8Array {
    return this.#read(at, length);
  }

  close(): void {
    this.#files.close();
  }

  #check(at: number, length: number): void {
    if (at < this.#chunk.offset || length < 0 || length > this.pagesEnd - at)
      throw new FormatError(`${length} bytes that lie outside the column chunk`, at);
  }

  #keep(at: number, length: number): Uint8Array {
    const bytes = this.#read(at, length);
    this.#kept.push({ at, bytes });
    return bytes;
  }

  #read(at: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    const read = readForeignBytes(this.#place, at, bytes, this.#files);
    this.bytesRead += read;
    if (read < length) throw new FormatError('the file ends here, which was longer', at + read);
    return bytes;
  }
}
