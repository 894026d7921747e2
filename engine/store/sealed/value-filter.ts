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
import type { FieldIndex } from '../../core/schema.js';

/**
 * A filter of a column chunk's values, as hashes: Parquet's own split-block Bloom filter, and a sketch, which is a Bloom filter of less
 * than half the size. The sketches of a segment's row groups are stored together, so that one read rules out most of them. Format:
 * `docs/format.md`, "Value filter".
 */
export interface ValueFilter {
  /** Number of blocks of the Bloom filter; 0 if there is only a sketch. */
  readonly blocks: number;
  /** The stored bytes: the header, the blocks, and the checksums of both. */
  readonly bytes: Uint8Array;
  /** The sketch, in blocks of 32 bytes. */
  readonly sketch: Uint8Array;
}

/** The filter of a column chunk with only nulls: no Bloom filter, and a sketch of one empty block. */
export const noValues: ValueFilter = {
  blocks: 0,
  bytes: new Uint8Array(0),
  sketch: new Uint8Array(filterBlockBytes),
};

/** Strings of up to this average length are queried by their whole value: ids, addresses, names. Longer ones are searched instead. */
const stringBytesMax = 64;
/** If a smaller share of the integers is distinct, they are counts and sizes, which nobody queries by their exact value. */
const distinctIntegersMin = 7 / 8;
/** Minimum number of bits of a sketch for each value. */
const sketchBitsOfValue = 4;
/**
 * The number of blocks of a sketch is rounded up to one of this many steps between two powers of two. Row groups with the same number of
 * rows then mostly have the same number of blocks, although their distinct values are estimated, and are joined block by block.
 */
const sketchSteps = 8;

/** Bytes of a Bloom filter that one checksum covers. A probe has to read them all to verify one block. */
const pieceBytes = 4096;
const checksumBytes = 4;

/**
 * Builds the filter of a column chunk without a dictionary and without nulls, or returns null if it should have none.
 *
 * @param wanted the field's `index`: true builds a filter for any values; `full` and undefined only where it pays off (with `full`, gram
 * filters cover long strings as well); false builds none
 * @param bitsOfValue bits of the Bloom filter for each distinct value; with 0 there is only a sketch
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
  const sketch = new Uint8Array(sketchBlocks(distinct) * filterBlockBytes);
  addToSketch(hashes, sketch);
  if (bitsOfValue === 0) return { ...noValues, sketch };
  const blocks = new Uint8Array(bloomBlocks(distinct, bitsOfValue) * filterBlockBytes);
  addToBlocks(hashes, blocks);
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

/** Bytes of the header and the blocks, which are the Bloom filter as Parquet defines it. */
export function bloomFilterBytes(blocks: number): number {
  return bloomHeaderBytes(blocks) + blocks * filterBlockBytes;
}

/** Bytes on disk of a filter, including its checksums. */
export function valueFilterBytes(blocks: number): number {
  const pieces = Math.ceil((blocks * filterBlockBytes) / pieceBytes);
  return bloomFilterBytes(blocks) + (1 + pieces) * checksumBytes;
}

/** A range that one checksum covers, and the offset of the checksum. */
export interface CheckedRange {
  readonly offset: number;
  readonly bytes: number;
  readonly checksumOffset: number;
}

/** A range that its checksum follows. */
export function checkedAfter(offset: number, bytes: number): CheckedRange {
  return { offset, bytes, checksumOffset: offset + bytes };
}

/** The piece of the header, then those of the blocks. Offsets count from the start of the filter. */
export function valuePieces(blocks: number): CheckedRange[] {
  const headerBytes = bloomHeaderBytes(blocks);
  const end = headerBytes + blocks * filterBlockBytes;
  const pieces = [{ offset: 0, bytes: headerBytes, checksumOffset: end }];
  for (let i = 0; i * pieceBytes < blocks * filterBlockBytes; i++)
    pieces.push(pieceNumber(i, headerBytes, end));
  return pieces;
}

function pieceNumber(index: number, headerBytes: number, end: number): CheckedRange {
  const offset = headerBytes + index * pieceBytes;
  return {
    offset,
    bytes: Math.min(pieceBytes, end - offset),
    checksumOffset: end + (1 + index) * checksumBytes,
  };
}

/** The piece with a value's block, and the offset of the block in the piece. */
export function probeOf(
  blocks: number,
  hash: ValueHash,
): { readonly piece: CheckedRange; readonly at: number } {
  const headerBytes = bloomHeaderBytes(blocks);
  const at = blockOfHash(hash, blocks) * filterBlockBytes;
  const end = headerBytes + blocks * filterBlockBytes;
  return { piece: pieceNumber(Math.floor(at / pieceBytes), headerBytes, end), at: at % pieceBytes };
}

/** Bytes of a stripe: one block of each row group's sketch, and the checksum. */
export function stripeBytes(rowGroups: number): number {
  return rowGroups * filterBlockBytes + checksumBytes;
}

/**
 * Joins the sketches of a segment's row groups: stripe i has block i of each, followed by its crc32. There are as many stripes as the
 * largest sketch has blocks. A smaller sketch is spread: the values of stripe i belong to one of its blocks or to two neighbours, and the
 * stripe gets the bits of both. Null is a row group without a sketch; all its bits are set, because any value may be there.
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

/** Whether the block of a sketch at offset `at` has the value. The blocks of a stripe are in the order of the row groups. */
export function isInSketch(bytes: Uint8Array, at: number, { low }: ValueHash): boolean {
  const mixed = Math.imul(low ^ (low >>> 15), 0x2c1b3c6d);
  for (let shift = 24; shift > 0; shift -= 8) {
    const bit = (mixed >>> shift) & 255;
    if ((bytes[at + (bit >>> 3)]! & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}
