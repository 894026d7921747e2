import { assert } from '../../terms/assert.js';
import { columnAt, layoutEnd, type ColumnLayout } from '../../columns/column-layout.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { evaluatePlain } from './evaluate.js';
import type { PreparedPredicate } from './predicate.js';
import { bitmapBytes } from '../../kernels/bitmap.js';

/** Rows of a plain column to compare with a predicate. The column is in the shared memory of the asking thread. */
export interface SelectJob {
  readonly predicate: PreparedPredicate;
  readonly layout: ColumnLayout;
  /** Memory that the kernels may use during the job. */
  readonly scratch: MemoryRange;
  /** The rows [from, to). `from` is a multiple of 8. */
  readonly from: number;
  readonly to: number;
}

/** Returns a bitmap of the matching rows, one bit per row from row 0 on. Runs on a thread. */
export function work({ predicate, layout, scratch, from, to }: SelectJob): Finished<Uint8Array> {
  const memory = foreignMemory(scratch);
  const column = columnAt(memory.bufferUpTo(layoutEnd(layout)), layout);
  assert(column.kind !== 'dictionary', 'a dictionary is asked where its codes are');
  const bits = new Uint8Array(bitmapBytes(to));
  workingOn(memory, { address: scratch.address, bytes: scratch.sizeBytes }, () =>
    evaluatePlain(predicate, column, from, to, bits),
  );
  return { result: bits, transfer: [bits.buffer] };
}

/** Compares the rows of a plain column with a predicate on a thread. */
export const selectTask: Task<SelectJob, Uint8Array> = {
  module: builtModule(import.meta.url),
  work,
};
