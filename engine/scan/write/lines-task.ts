import type { KernelBlock } from '../../kernels/json-rows.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import type { LineFormat } from '../../terms/line-format.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { unpackParts, writeParts, type PackedParts } from './line-parts.js';
import { CellSpace } from './piece-space.js';

/** Rows to write as lines. Their columns are in the shared memory of the thread that asks. */
export interface LinesJob {
  /**
   * The concatenated descriptions of the tables, as numbers. Deserialising as many objects would take a thread several times as long:
   * for a few hundred rows, longer than writing them.
   */
  readonly blocks: KernelBlock;
  readonly tables: number;
  readonly format: LineFormat;
  readonly columnCount: number;
  /** The maximum length of a line without its strings, in bytes. */
  readonly fixedBytes: number;
  /** Memory that the kernels may use during the job. */
  readonly scratch: MemoryRange;
  /** Addresses of the cells in that memory for the pieces, one cell for each. */
  readonly cells: readonly number[];
  readonly parts: PackedParts;
  /** Maximum bytes of a piece, unless it consists of one line. */
  readonly pieceBytes: number;
}

/** A piece and its number of rows. `piece` is its length where it is in the next cell, else the bytes themselves. */
export interface WrittenPiece {
  readonly piece: number | Uint8Array;
  readonly rows: number;
}

/** Writes rows as lines, in pieces. Runs on a thread. */
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

/** Writes rows as lines on a thread. */
export const linesTask: Task<LinesJob, readonly WrittenPiece[]> = {
  module: builtModule(import.meta.url),
  work,
};
