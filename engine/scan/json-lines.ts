import { mergedLineBytesMax, positionOfEntry, writeMergedRows } from '../kernels/merged-rows.js';
import { lineBytesMax, writeJsonRows, type LineOutput, type LineTable } from '../kernels/json-rows.js';
import { bufferBytes } from '../core/allocator.js';
import { addRun, type Run } from '../store/manifest/manifest.js';
import { sharedMemory, type SharedMemory } from '../core/shared-memory.js';
import type { Position } from '../core/cursor.js';
import { answerBytesMax, cellsOfBlock } from '../core/limits.js';
import { lowerBound } from './plan.js';
import { countInRange, listSelected, type Matches } from './selection.js';

/** Distance between the cells of a block: the bytes of a piece, plus the padding after it that kernels may touch. */
const strideBytes = bufferBytes(answerBytesMax);

/** Consecutive cells in one allocation. */
interface Block {
  readonly address: number;
  /** Addresses of free cells. */
  readonly free: number[];
}

// Memory for the pieces of answers: cells of one size in the memory that kernels and threads share. Each cell is given back individually. Cells
// are cut from larger blocks, so that a piece that waits for a slow client does not fragment the memory that columns need.

/** Blocks that have free cells, in the order in which they came to have some. */
const blocks: Block[] = [];
/** The blocks of the cells in use. */
const blockOf = new Map<number, Block>();

/** Number of cells in use. */
export function cellsTaken(): number {
  return blockOf.size;
}

/**
 * The addresses of up to `count` cells of `answerBytesMax` bytes plus padding, with undefined contents; fewer where there is not enough
 * memory, and none where a piece of `pieceBytes` does not fit.
 */
export function takeCells(count: number, pieceBytes: number): number[] {
  const cells: number[] = [];
  while (pieceBytes <= answerBytesMax && cells.length < count) {
    const block = blocks[0] ?? addBlock();
    if (block === null) break;
    const address = block.free.pop()!;
    if (block.free.length === 0) blocks.shift();
    blockOf.set(address, block);
    cells.push(address);
  }
  return cells;
}

/** Gives back cells that `takeCells` returned. */
export function giveCellsBack(cells: readonly number[]): void {
  for (const address of cells) {
    const block = blockOf.get(address)!;
    blockOf.delete(address);
    block.free.push(address);
    if (block.free.length === 1) blocks.push(block);
    if (block.free.length < cellsOfBlock) continue;
    // One block whose cells are all free is kept, because short answers come one after another.
    if (blocks.every((other) => other === block || other.free.length < cellsOfBlock)) continue;
    blocks.splice(blocks.indexOf(block), 1);
    sharedMemory().free(block.address);
  }
}

function addBlock(): Block | null {
  const address = sharedMemory().allocate(cellsOfBlock * strideBytes);
  if (address === null) return null;
  const free = Array.from({ length: cellsOfBlock }, (_, i) => address + i * strideBytes);
  const block = { address, free: free.reverse() };
  blocks.push(block);
  return block;
}

/** Copies the bytes to a buffer of their own. */
export function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

/**
 * Rows of one row group whose ordinals all have the same distance to the row number: rows[first] up to rows[end] (exclusive) of an ascending
 * list, or the rows `first` to `end` where there is no list. The ordinal of row `r` is `ordinalOfRow0 + r`.
 */
export interface LinePart {
  readonly rows: Uint32Array | null;
  readonly first: number;
  readonly end: number;
  readonly partition: number;
  readonly ordinalOfRow0: number;
  /** Set where `rows` is a list of entries of `writeMergedRows`: the number of agents. Their positions are in the list. */
  readonly agents?: number;
}

/** The position of the row with index `index` in a part. */
export function positionIn(part: LinePart, index: number): Position {
  const { rows, partition, ordinalOfRow0, agents } = part;
  if (agents !== undefined) return positionOfEntry(rows!, agents, index);
  return { partition, ordinal: ordinalOfRow0 + (rows === null ? index : rows[index]!) };
}

/** The rows that an answer takes from one unit, in the order of the answer. */
export function* partsOf({ unit, selection, skip, take }: Matches): Generator<LinePart> {
  // One list for all ranges, because most ranges have few rows.
  const listed = selection.kind === 'rows' ? new Uint32Array(selection.rows) : null;
  let toSkip = skip;
  let left = take;
  for (const range of unit.ranges) {
    if (left === 0) break;
    const count = countInRange(selection, range);
    const skipped = Math.min(toSkip, count);
    const taken = Math.min(count - skipped, left);
    toSkip -= skipped;
    left -= taken;
    if (taken === 0) continue;
    let first = skipped;
    let rows = listed;
    if (selection.kind === 'all') first += range.firstRow;
    else if (listed !== null) first += lowerBound(listed, range.firstRow);
    else listSelected(selection, range, (rows = new Uint32Array(count)));
    const { partition } = range;
    yield { rows, first, end: first + taken, partition, ordinalOfRow0: range.firstOrdinal - range.firstRow };
  }
}

/** The indices of the rows that an answer takes from one unit, and their positions. */
export function wantedRows(matches: Matches): { indices: Uint32Array; runs: Run[] } {
  const indices = new Uint32Array(matches.take);
  const runs: Run[] = [];
  let count = 0;
  for (const { rows, first, end, partition, ordinalOfRow0 } of partsOf(matches)) {
    let from = first;
    for (let i = first; i < end; i++) {
      const row = rows?.[i] ?? i;
      indices[count++] = row;
      // Consecutive rows are one run.
      if (i + 1 < end && (rows?.[i + 1] ?? i + 1) === row + 1) continue;
      const length = i + 1 - from;
      const firstOrdinal = ordinalOfRow0 + row + 1 - length;
      addRun(runs, { partition, firstOrdinal, firstRow: count - length, rows: length });
      from = i + 1;
    }
  }
  return { indices, runs };
}

/** Takes up to `rows` rows from parts, the next of which is the last in the list. */
export function takeRows(parts: LinePart[], rows: number): LinePart[] {
  const taken: LinePart[] = [];
  for (let left = rows; left > 0 && parts.length > 0;) {
    const part = parts.pop()!;
    const { first } = part;
    const end = Math.min(part.end, first + left);
    left -= end - first;
    // A message copies the whole buffer of a list, except that threads share entries.
    const list = part.agents === undefined ? part.rows?.slice(first, end) : undefined;
    taken.push(list === undefined ? { ...part, end } : { ...part, rows: list, first: 0, end: list.length });
    if (end < part.end) parts.push({ ...part, first: end });
  }
  return taken;
}

/** Whole lines, the number of rows that they are, and the position of the last one. */
export interface Piece {
  readonly bytes: Uint8Array;
  readonly rows: number;
  readonly last: Position;
}

const nothing = new Uint8Array(0);

/**
 * Collects lines in pieces of at most `pieceBytes`. Pieces begin and end with a line. A line that is longer than that makes a piece of its
 * own. Each piece is in the next cell; pieces that don't fit in one, or for which none is left, are on the heap.
 */
export class JsonLines {
  readonly #pieceBytes: number;
  readonly #memory: SharedMemory;
  readonly #cells: readonly number[];
  /** Number of cells that have a piece. */
  #filled = 0;
  readonly #output: LineOutput = { bytes: nothing, at: 0 };
  /** Number of rows in the piece that is being filled, and the position of the last one. */
  #rows = 0;
  #last: Position = { partition: 0, ordinal: 0 };
  /** Index in its part of the last row that was written. */
  lastIndex = 0;

  constructor(pieceBytes: number, memory: SharedMemory, cells: readonly number[]) {
    this.#pieceBytes = pieceBytes;
    this.#memory = memory;
    this.#cells = cells;
  }

  /**
   * Writes the lines of a part. Returns the rest, for which the piece has no room; null where there is none. The caller then calls `take`, and
   * continues with the rest.
   */
  write(table: LineTable, part: LinePart): LinePart | null {
    const { first, end } = part;
    const isBegun = this.#output.bytes.length > 0;
    if (!isBegun) this.#open(this.#pieceBytes);
    let next = this.#writeRows(table, part, end);
    // The maximum length of the first line is computed only after it did not fit: nearly all lines fit, and are written faster than that
    // length is computed.
    if (!isBegun && next === first) {
      const isMerged = table.merged !== undefined;
      this.#open((isMerged ? mergedLineBytesMax : lineBytesMax)(table, part.rows!, first));
      next = this.#writeRows(table, part, first + 1);
      // The room allows for escapes that the line may not have.
      this.#output.bytes = this.#output.bytes.subarray(0, this.#output.at);
    }
    if (next > first) {
      this.#last = positionIn(part, next - 1);
      this.lastIndex = next - 1;
    }
    this.#rows += next - first;
    return next === end ? null : { ...part, first: next };
  }

  #writeRows(table: LineTable, { rows, first, partition, ordinalOfRow0 }: LinePart, end: number): number {
    if (table.merged !== undefined) return writeMergedRows(table, rows!, first, end, this.#output);
    return writeJsonRows(table, rows, first, end, partition, ordinalOfRow0, this.#output);
  }

  /** Memory for a piece, with undefined contents. Where it is in the kernels' memory, padding that they may touch follows. */
  #open(sizeBytes: number): void {
    const address = this.#cells[this.#filled];
    const fits = address !== undefined && sizeBytes <= answerBytesMax;
    this.#output.bytes = fits ? this.#memory.bytesAt({ address, sizeBytes }) : new Uint8Array(sizeBytes);
  }

  /** The lines since the last piece; null when there are none. */
  take(): Piece | null {
    const { bytes, at } = this.#output;
    if (at === 0) return null;
    const piece = { bytes: bytes.subarray(0, at), rows: this.#rows, last: this.#last };
    this.#output.bytes = nothing;
    this.#output.at = 0;
    this.#rows = 0;
    if (this.#memory.holds(bytes)) this.#filled++;
    // A message transfers the whole buffer. Where less than half of it is used, only the piece is copied.
    else if (at * 2 < bytes.buffer.byteLength) return { ...piece, bytes: copyOf(piece.bytes) };
    return piece;
  }
}
