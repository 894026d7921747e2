import type { KernelBlock } from '../../kernels/json-rows.js';
import { onLentMemory } from '../../memory/shared-memory.js';
import type { LineFormat } from '../../terms/line-format.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { unpackParts, writeParts, type PackedParts } from './line-parts.js';
import { CellSpace } from './piece-space.js';

/** Rows to write as lines. Their columns are in the shared memory of the thread that asks. */
export interface LinesJob {
  /** The description of the table. */
  readonly block: KernelBlock;
  readonly format: LineFormat;
  readonly columnCount: number;
  /** The maximum length of a line without its strings, in bytes. */
  readonly fixedBytes: number;
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
  const { format, block, columnCount, fixedBytes, cells, parts, pieceBytes } = job;
  const result = onLentMemory((memory) => {
    const space = new CellSpace(memory, cells);
    const table = { format, block, columnCount, fixedBytes, columns: null };
    const written = writeParts(table, unpackParts(parts), pieceBytes, space);
    return written.map(({ bytes, rows }) => ({ piece: memory.holds(bytes) ? bytes.length : bytes, rows }));
  });
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
