import { filterBlockBytes } from '../../kernels/value-filter.js';
import { blockOfHash, isInBlock, type ValueHash } from '../../parquet/bloom-filter.js';
import { FormatError } from '../../parquet/format.js';
import { readThrift, type ThriftBounds } from '../../parquet/thrift-reader.js';
import { OpenFiles } from '../../store/disk/open-files.js';
import type { ForeignPlace } from '../foreign-file.js';
import { readForeignBytes } from '../source/foreign-bytes.js';

/** A Bloom filter that the file itself has of a column chunk. `bytes` is 0 where the file does not give the length. */
export interface OwnFilter {
  readonly offset: number;
  readonly bytes: number;
}

/** The answer of a filter. */
export interface OwnFilterAnswer {
  /** Whether one of the values may be in the chunk. True for a filter that is not valid. */
  readonly mayHave: boolean;
  readonly bytesRead: number;
  /** Number of reads: the header, and one per block. */
  readonly piecesRead: number;
}

/** Upper bound of the header's size. It has three structures that each hold an empty one, and takes about twenty bytes. */
const headerBytesMax = 64;
const headerBounds: ThriftBounds = { valuesMax: 16, handedOver: new Map() };

/**
 * Tests values against the split-block Bloom filter that another program wrote into the file. Reads its header, and one
 * block per value. The format has no checksum; a filter whose header contradicts itself or the footer is not used. Throws
 * `not_found` and `io`, and `absent` for bytes of an object that are not on this machine.
 */
export function askOwnFilter(
  place: ForeignPlace,
  filter: OwnFilter,
  hashes: readonly ValueHash[],
): OwnFilterAnswer {
  const files = new OpenFiles(1);
  let bytesRead = 0;
  const read = (at: number, length: number): Uint8Array => {
    const bytes = new Uint8Array(length);
    const done = readForeignBytes(place, at, bytes, files);
    bytesRead += done;
    return bytes.subarray(0, done);
  };
  try {
    const { offset, bytes } = filter;
    const found = readHeader(read(offset, bytes > 0 ? Math.min(bytes, headerBytesMax) : headerBytesMax));
    const { headerBytes, filterBytes } = found ?? { headerBytes: 0, filterBytes: 0 };
    const isWhole = found !== null && (bytes === 0 || bytes === headerBytes + filterBytes);
    if (!isWhole) return { mayHave: true, bytesRead, piecesRead: 1 };
    const blocks = filterBytes / filterBlockBytes;
    let piecesRead = 1;
    const mayHave = hashes.some((hash) => {
      const at = offset + headerBytes + blockOfHash(hash, blocks) * filterBlockBytes;
      const block = read(at, filterBlockBytes);
      piecesRead++;
      return block.length < filterBlockBytes || isInBlock(block, 0, hash);
    });
    return { mayHave, bytesRead, piecesRead };
  } finally {
    files.close();
  }
}

/** Reads the `BloomFilterHeader`: its size, and the size of the blocks after it. Null where it is malformed or of another kind. */
function readHeader(bytes: Uint8Array): { headerBytes: number; filterBytes: number } | null {
  try {
    const { fields, end } = readThrift(bytes, 0, headerBounds);
    const filterBytes = fields.size(1);
    const isKnown = [2, 3, 4].every((id) => fields.has(id) && fields.struct(id).has(1));
    const isPossible = filterBytes > 0 && filterBytes % filterBlockBytes === 0;
    return isKnown && isPossible ? { headerBytes: end, filterBytes } : null;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}
