import { columnAt, layoutEnd, type ColumnLayout } from '../column-layout.js';
import { foreignMemory, workingOn, type MemoryRange } from '../kernels/shared-memory.js';
import { buffersOf, builtModule, type Finished, type Task } from '../workers/task.js';
import { jsonColumn } from './json-columns.js';
import { makeJsonColumns } from './json-lines.js';
import { rowsOfParts, writeParts, type LinePart } from './line-parts.js';

/** Rows to be written as lines, out of columns that lie in a memory of the thread that asks. */
export interface LinesJob {
  /** `,"name":` of each column. */
  readonly keys: readonly Uint8Array[];
  readonly layouts: readonly ColumnLayout[];
  /** Lent to the kernels for as long as the job takes. */
  readonly scratch: MemoryRange;
  readonly parts: readonly LinePart[];
  /** A longer piece has one line alone. */
  readonly pieceBytes: number;
}

/** Writes rows as JSON Lines, in pieces: the work of `linesTask`. */
export function work(job: LinesJob): Finished<readonly Uint8Array[]> {
  const { keys, layouts, scratch, parts, pieceBytes } = job;
  const memory = foreignMemory(scratch);
  const buffer = memory.bufferUpTo(Math.max(...layouts.map(layoutEnd)));
  const rowsToWrite = rowsOfParts(parts);
  const place = { address: scratch.address, bytes: scratch.sizeBytes };
  const pieces = workingOn(memory, place, () => {
    const columns = layouts.map((layout, i) => jsonColumn(keys[i]!, columnAt(buffer, layout), rowsToWrite));
    return writeParts(makeJsonColumns(columns), parts, pieceBytes);
  });
  return { result: pieces, transfer: buffersOf(pieces) };
}

/** Has rows written as JSON Lines. */
export const linesTask: Task<LinesJob, readonly Uint8Array[]> = {
  module: builtModule(import.meta.url),
  work,
};
