import { crc32 } from '../kernels/crc32.js';
import { codecNumber, FormatError } from '../parquet/format.js';
import { OpenFiles } from '../store/disk/open-files.js';
import { foreignAtOnceBytesMax, filePieceBytes } from '../core/limits.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import type { LeafChunk } from './foreign-file.js';
import { readForeignBytes } from './foreign-source.js';

/**
 * Older writers did not count the dictionary page's header in the size of a chunk; such a header has at most this many bytes
 * (https://issues.apache.org/jira/browse/PARQUET-816).
 */
export const missingBytesMax = 100;

/** Bytes that were read, and their offset in the file. */
interface Piece {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** Reads the bytes of a column chunk, by their offset in the file. Bytes that were read ahead are not read again. */
export class ChunkBytes {
  /** End offset of the chunk as the file gives it. */
  readonly end: number;
  /** Upper bound of the end offset of the last page. */
  readonly pagesEnd: number;
  /** Total of bytes read from the file. */
  bytesRead = 0;
  readonly #place: ForeignPlace;
  readonly #chunk: LeafChunk;
  /** Opened for this reading only: the shared `openFiles` may still hold a file that was replaced under the same path. */
  readonly #files: OpenFiles;
  readonly #kept: Piece[];

  /** @param whole the bytes of the nested column's chunk that this chunk lies in */
  constructor(place: ForeignPlace, chunk: LeafChunk, whole?: ChunkBytes) {
    this.#place = place;
    this.#chunk = chunk;
    this.#files = whole === undefined ? new OpenFiles(1) : whole.#files;
    this.#kept = whole === undefined ? [] : whole.#kept;
    this.end = chunk.offset + chunk.bytes;
    this.pagesEnd = this.end + missingBytesMax;
  }

  /** Whether pages are compressed. */
  get isCompressed(): boolean {
    return this.#chunk.codec !== codecNumber.none;
  }

  /** Offset of the first page. */
  get begin(): number {
    return this.#chunk.offset;
  }

  /**
   * Reads the whole chunk, and keeps it in memory where it is not too large. Returns its crc32. Throws `FormatError`,
   * `not_found` and `io`.
   */
  readWhole(): number {
    const { offset, bytes } = this.#chunk;
    if (bytes <= foreignAtOnceBytesMax) return crc32(this.#keep(offset, bytes));
    let checksum = 0;
    for (let done = 0; done < bytes; done += filePieceBytes)
      checksum = crc32(this.#read(offset + done, Math.min(filePieceBytes, bytes - done)), checksum);
    return checksum;
  }

  /** Reads the bytes [at, end) at once and keeps them in memory; does nothing where they are too many. Throws as `bytesAt` does. */
  readAhead(at: number, end: number): void {
    if (end - at > foreignAtOnceBytesMax) return;
    this.#check(at, end - at);
    this.#keep(at, end - at);
  }

  /** Returns the bytes [at, at + length), which must lie in the chunk. Throws `FormatError`, `not_found` and `io`. */
  bytesAt(at: number, length: number): Uint8Array {
    this.#check(at, length);
    const kept = this.#kept.find((piece) => at >= piece.at && at + length <= piece.at + piece.bytes.length);
    return kept?.bytes.subarray(at - kept.at, at - kept.at + length) ?? this.#read(at, length);
  }

  /** Returns bytes of the file outside the chunk. Throws as `bytesAt` does. */
  bytesBeside(at: number, length: number): Uint8Array {
    return this.#read(at, length);
  }

  /** Closes the file. */
  close(): void {
    this.#files.close();
  }

  #check(at: number, length: number): void {
    if (at < this.#chunk.offset || length < 0 || length > this.pagesEnd - at)
      throw new FormatError(`the next ${length} bytes lie outside the column chunk`, at);
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
    if (read < length) throw new FormatError('the file ends here: it is shorter than before', at + read);
    return bytes;
  }
}
