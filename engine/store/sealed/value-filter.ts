import { crc32 } from 'node:zlib';
import type { PlainColumn } from '../../columns/column.js';
import {
  addToBlocks,
  addToSketch,
  distinctHashes,
  filterBlockBytes,
  hashIntegers,
  hashStrings,
} from '../../kernels/value-filter.js';
import {
  bloomBitsOfValue,
  bloomBlocks,
  bloomHeader,
  bloomHeaderBytes,
  blockOfHash,
  type ValueHash,
} from '../../parquet/bloom-filter.js';
import type { FieldIndex } from '../../terms/schema.js';

/**
 * Which values a column chunk has, as hashes: Parquet's own split-block Bloom filter, and a sketch, a Bloom filter of less than half the
 * size. The sketches of a segment's row groups lie together, so that one read rules out most of them.
 */
export interface ValueFilter {
  /** Blocks of the Bloom filter. */
  readonly blocks: number;
  /** As in the file: the header, the blocks, and the checksums of both. */
  readonly bytes: Uint8Array;
  /** The sketch: blocks of 32 bytes. */
  readonly sketch: Uint8Array;
}

/** Of a column chunk of nulls alone, which holds no value: no Bloom filter, and a sketch of one empty block. */
export const noValues: ValueFilter = {
  blocks: 0,
  bytes: new Uint8Array(0),
  sketch: new Uint8Array(filterBlockBytes),
};

/** Strings of up to this many bytes on average are asked for as wholes: ids, addresses, names. Longer ones are searched instead. */
const stringBytesMax = 64;
/** Integers of which fewer are distinct are counts and sizes, for which nobody asks by their exact value. */
const distinctIntegersMin = 7 / 8;
/** Bits of a sketch for each value, at least. */
const sketchBitsOfValue = 4;
/**
 * The number of a sketch's blocks is rounded up to so many steps between two powers of two. Row groups of as many rows then have as many blocks,
 * though their distinct values are estimated, and are joined block by block.
 */
const sketchSteps = 8;

/** Bytes of a Bloom filter that one checksum covers: what a probe reads, to be sure of one block. */
const pieceBytes = 4096;
const checksumBytes = 4;

/**
 * Builds the filter of a column chunk without a dictionary and without nulls. `wanted` is the field's `index`: true keeps a filter of
 * whatever values; `full` does not, because its gram filters tell of long texts as well. `bitsOfValue` are those of the Bloom filter for each
 * distinct value. Null when there is to be none.
 */
export function buildValueFilter(
  column: PlainColumn,
  wanted: FieldIndex,
  bitsOfValue = bloomBitsOfValue,
): ValueFilter | null {
  if (wanted === false || column.length === 0) return null;
  const hashes = hashesOf(column, wanted);
  if (hashes === null) return null;
  const distinct = Math.min(column.length, distinctHashes(hashes));
  if (wanted !== true && column.kind === 'int64' && distinct < distinctIntegersMin * column.length)
    return null;
  const blocks = new Uint8Array(bloomBlocks(distinct, bitsOfValue) * filterBlockBytes);
  addToBlocks(hashes, blocks);
  const sketch = new Uint8Array(sketchBlocks(distinct) * filterBlockBytes);
  addToSketch(hashes, sketch);
  return { blocks: blocks.length / filterBlockBytes, bytes: withChecksums(blocks), sketch };
}

function hashesOf(column: PlainColumn, wanted: FieldIndex): Uint32Array | null {
  if (column.kind === 'int64') return hashIntegers(column.values, column.length);
  if (column.kind !== 'bytes') return null;
  const { bytes, offsets, length } = column;
  if (wanted !== true && offsets[length]! - offsets[0]! > stringBytesMax * length) return null;
  return hashStrings(bytes, offsets, length);
}

function sketchBlocks(values: number): number {
  const blocks = Math.max(1, (values * sketchBitsOfValue) / (filterBlockBytes * 8));
  const step = Math.max(1, 2 ** Math.floor(Math.log2(blocks)) / sketchSteps);
  return Math.ceil(blocks / step) * step;
}

function withChecksums(blocks: Uint8Array): Uint8Array {
  const header = bloomHeader(blocks.length / filterBlockBytes);
  const bytes = new Uint8Array(valueFilterBytes(blocks.length / filterBlockBytes));
  const view = new DataView(bytes.buffer);
  bytes.set(header);
  bytes.set(blocks, header.length);
  let at = header.length + blocks.length;
  view.setUint32(at, crc32(header), true);
  for (let from = 0; from < blocks.length; from += pieceBytes) {
    at += checksumBytes;
    view.setUint32(at, crc32(blocks.subarray(from, from + pieceBytes)), true);
  }
  return bytes;
}

/** Bytes of the header and the blocks: the Bloom filter as Parquet knows it. */
export function bloomFilterBytes(blocks: number): number {
  return bloomHeaderBytes(blocks) + blocks * filterBlockBytes;
}

/** Bytes on disk of a filter of so many blocks, its checksums included. */
export function valueFilterBytes(blocks: number): number {
  const pieces = Math.ceil((blocks * filterBlockBytes) / pieceBytes);
  return bloomFilterBytes(blocks) + (1 + pieces) * checksumBytes;
}

/** What is covered by one checksum, and where that stands; offsets count from the beginning of the filter. */
export interface ValuePiece {
  readonly offset: number;
  readonly bytes: number;
  readonly checksumOffset: number;
}

/** The header's piece, then those of the blocks. */
export function valuePieces(blocks: number): ValuePiece[] {
  const headerBytes = bloomHeaderBytes(blocks);
  const end = headerBytes + blocks * filterBlockBytes;
  const pieces = [{ offset: 0, bytes: headerBytes, checksumOffset: end }];
  for (let i = 0; i * pieceBytes < blocks * filterBlockBytes; i++)
    pieces.push(pieceNumber(i, headerBytes, end));
  return pieces;
}

function pieceNumber(index: number, headerBytes: number, end: number): ValuePiece {
  const offset = headerBytes + index * pieceBytes;
  return {
    offset,
    bytes: Math.min(pieceBytes, end - offset),
    checksumOffset: end + (1 + index) * checksumBytes,
  };
}

/** Where the checksums of a filter's blocks lie, one behind the other; the offset counts from the beginning of the filter. */
export function checksumsOf(blocks: number): { readonly offset: number; readonly bytes: number } {
  const offset = bloomFilterBytes(blocks) + checksumBytes;
  return { offset, bytes: valueFilterBytes(blocks) - offset };
}

/** The piece that a value's block lies in, and the block's place in the piece. */
export function probeOf(
  blocks: number,
  hash: ValueHash,
): { readonly piece: ValuePiece; readonly at: number } {
  const headerBytes = bloomHeaderBytes(blocks);
  const at = blockOfHash(hash, blocks) * filterBlockBytes;
  const end = headerBytes + blocks * filterBlockBytes;
  return { piece: pieceNumber(Math.floor(at / pieceBytes), headerBytes, end), at: at % pieceBytes };
}

/** Whether bytes have the checksum that stands in `stored`, 4 bytes. */
export function hasChecksum(bytes: Uint8Array, stored: Uint8Array): boolean {
  if (stored.length !== checksumBytes) return false;
  return new DataView(stored.buffer, stored.byteOffset).getUint32(0, true) === crc32(bytes);
}

/** Bytes of a stripe, with its checksum: one block of each row group's sketch. */
export function stripeBytes(rowGroups: number): number {
  return rowGroups * filterBlockBytes + checksumBytes;
}

/** A stripe as it was read, or null when it does not match its checksum. */
export function wholeStripe(stored: Uint8Array, rowGroups: number): Uint8Array | null {
  const end = stripeBytes(rowGroups) - checksumBytes;
  if (stored.length !== end + checksumBytes) return null;
  const blocks = stored.subarray(0, end);
  return hasChecksum(blocks, stored.subarray(end)) ? blocks : null;
}

/** The stripe that a value belongs to. */
export function stripeOf(hash: ValueHash, stripes: number): number {
  return blockOfHash(hash, stripes);
}

/**
 * Lays sketches of the row groups of a segment together: stripe i has block i of each, and the crc32 of all that. There are as many stripes as the
 * largest sketch has blocks. In a sketch with fewer, the values of stripe i belong to one of its blocks or to two neighbours: the stripe has all
 * their bits. Null stands for a row group that has none: each value may be there.
 */
export function joinSketches(sketches: readonly (Uint8Array | null)[]): {
  readonly stripes: number;
  readonly bytes: Uint8Array;
} {
  const stripes = Math.max(...sketches.map((sketch) => sketch?.length ?? 0)) / filterBlockBytes;
  const rowBytes = stripeBytes(sketches.length);
  const joined = new Uint8Array(stripes * rowBytes);
  const view = new DataView(joined.buffer);
  for (let stripe = 0; stripe < stripes; stripe++) {
    const start = stripe * rowBytes;
    sketches.forEach((sketch, i) => {
      const at = start + i * filterBlockBytes;
      if (sketch === null) joined.fill(0xff, at, at + filterBlockBytes);
      else {
        const blocks = sketch.length / filterBlockBytes;
        const first = Math.floor((stripe * blocks) / stripes);
        const last = Math.ceil(((stripe + 1) * blocks) / stripes) - 1;
        for (const block of first === last ? [first] : [first, last]) {
          const from = block * filterBlockBytes;
          for (let k = 0; k < filterBlockBytes; k++) joined[at + k]! |= sketch[from + k]!;
        }
      }
    });
    const end = start + rowBytes - checksumBytes;
    view.setUint32(end, crc32(joined.subarray(start, end)), true);
  }
  return { stripes, bytes: joined };
}

/** Whether the block of a sketch at `at` has the value. The blocks of a stripe stand in the order of the row groups. */
export function isInSketch(bytes: Uint8Array, at: number, { low }: ValueHash): boolean {
  const mixed = Math.imul(low ^ (low >>> 15), 0x2c1b3c6d);
  for (let shift = 24; shift > 0; shift -= 8) {
    const bit = (mixed >>> shift) & 255;
    if ((bytes[at + (bit >>> 3)]! & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}
