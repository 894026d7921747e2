import type { KernelBlock } from '../../kernels/json-rows.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import type { LineFormat } from '../../terms/line-format.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { unpackParts, writeParts, type PackedParts } from './line-parts.js';
import { CellSpace } from './piece-space.js';

/** Rows to be written as lines, out of columns that lie in a memory of the thread that asks. */
export interface LinesJob {
  /**
   * The tables, one behind the other and as numbers alone: a thread reads those in a fraction of the time that it takes to make
   * objects of a message, which for a few hundred rows is longer than writing them.
   */
  readonly blocks: KernelBlock;
  readonly tables: number;
  readonly format: LineFormat;
  readonly columnCount: number;
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
  /** Lent to the kernels for as long as the job takes. */
  readonly scratch: MemoryRange;
  /** Addresses of the cells of that memory that the pieces are written to, one to each. */
  readonly cells: readonly number[];
  readonly parts: PackedParts;
  /** A longer piece has one line alone. */
  readonly pieceBytes: number;
}

/** A piece and its rows: how long it is where it lies in the next of the cells, or itself. */
export interface WrittenPiece {
  readonly piece: number | Uint8Array;
  readonly rows: number;
}

/** Writes rows as lines, in pieces: the work of `linesTask`. */
export function work(job: LinesJob): Finished<readonly WrittenPiece[]> {
  const { format, blocks, columnCount, fixedBytes, scratch, cells, parts, pieceBytes } = job;
  const memory = foreignMemory(scratch);
  const space = new CellSpace(memory, cells);
  const blockWords = blocks.length / job.tables;
  const written = workingOn(memory, { address: scratch.address, bytes: scratch.sizeBytes }, () => {
    const tables = Array.from({ length: job.tables }, (_, i) => {
      const block = blocks.subarray(i * blockWords, (i + 1) * blockWords);
      return { format, block, columnCount, fixedBytes, columns: null };
    });
    return writeParts(unpackParts(parts, tables), pieceBytes, space);
  });
  const result = written.map(({ bytes, rows }) => ({
    piece: memory.holds(bytes) ? bytes.length : bytes,
    rows,
  }));
  return {
    result,
    transfer: buffersOf(result.map(({ piece }) => piece).filter((piece) => typeof piece !== 'number')),
  };
}

/** Has rows written as lines. */
export const linesTask: Task<LinesJob, readonly WrittenPiece[]> = {
  module: builtModule(import.meta.url),
  work,
};
