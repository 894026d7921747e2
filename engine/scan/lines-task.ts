import { tableOfBlock, type KernelBlock } from '../kernels/simd/json-rows.js';
import { foreignMemory, workingOn, type MemoryRange } from '../memory/shared-memory.js';
import { lineArgumentBytes } from '../limits.js';
import { buffersOf, builtModule, type Finished, type Task } from '../workers/task.js';
import { unpackParts, writeParts, type PackedParts } from './line-parts.js';
import { PieceRange } from './piece-space.js';

/** Rows to be written as lines, out of columns that lie in a memory of the thread that asks. */
export interface LinesJob {
  /**
   * The tables, one behind the other and as numbers alone: a thread reads those in a fraction of the time that it takes to make
   * objects of a message, which for a few hundred rows is longer than writing them.
   */
  readonly blocks: KernelBlock;
  readonly tables: number;
  readonly columnCount: number;
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
  /** How far the memory reaches that has the columns. */
  readonly memoryBytes: number;
  /** Lent for as long as the job takes: `lineArgumentBytes` for the kernels, and behind them room for the pieces. */
  readonly range: MemoryRange;
  readonly parts: PackedParts;
  /** A longer piece has one line alone. */
  readonly pieceBytes: number;
}

/** A piece: its address in the range and its length, or itself where the range had no room for it. */
export type WrittenPiece = readonly [address: number, bytes: number] | Uint8Array;

/** Writes rows as JSON Lines, in pieces: the work of `linesTask`. */
export function work(job: LinesJob): Finished<readonly WrittenPiece[]> {
  const { blocks, columnCount, fixedBytes, memoryBytes, range, parts, pieceBytes } = job;
  const memory = foreignMemory(range);
  const { address, sizeBytes } = range;
  const space = new PieceRange(memory, address + lineArgumentBytes, sizeBytes - lineArgumentBytes);
  const buffer = memory.bufferUpTo(memoryBytes);
  const blockWords = blocks.length / job.tables;
  const pieces = workingOn(memory, { address, bytes: lineArgumentBytes }, () => {
    const tables = Array.from({ length: job.tables }, (_, i) => {
      const block = blocks.subarray(i * blockWords, (i + 1) * blockWords);
      const table = tableOfBlock(block, columnCount, fixedBytes, buffer);
      return { table, reachable: table };
    });
    return writeParts(unpackParts(parts, tables), pieceBytes, space);
  });
  const result = pieces.map((piece) =>
    space.holds(piece) ? ([piece.byteOffset, piece.length] as const) : piece,
  );
  return { result, transfer: buffersOf(result.filter((piece) => piece instanceof Uint8Array)) };
}

/** Has rows written as JSON Lines. */
export const linesTask: Task<LinesJob, readonly WrittenPiece[]> = {
  module: builtModule(import.meta.url),
  work,
};
