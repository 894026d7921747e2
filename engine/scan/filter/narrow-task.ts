import { columnAt, wordsPerLayout } from '../../columns/column-layout.js';
import { onLentMemory } from '../../memory/shared-memory.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { narrow, type Narrowed, type NarrowMode } from './narrowing.js';
import type { PreparedPredicate } from './predicate.js';
import { RemainingRows } from './remaining-rows.js';

/** A row group to filter. Its columns are in the memory that the asking thread has lent. */
export interface NarrowJob {
  /** In the order in which they are evaluated. */
  readonly predicates: readonly PreparedPredicate[];
  readonly mode: NarrowMode;
  /** The layouts of the columns of the predicates, one after another. */
  readonly layouts: Uint32Array;
  /** End of the columns in the memory. */
  readonly memoryBytes: number;
  /** Number of rows of the row group, and the span of those that are looked at. */
  readonly rows: number;
  readonly firstRow: number;
  readonly endRow: number;
  /** The rows that are left; null for all of the span. */
  readonly bits: Uint8Array | null;
}

/** What is left of a row group: one bit for each of its rows, or null where no row is left. */
export interface NarrowedRows extends Narrowed {
  readonly bits: Uint8Array<ArrayBuffer> | null;
}

/** Finds the rows that are left. Runs on a thread. */
export function work(job: NarrowJob): Finished<NarrowedRows> {
  const { predicates, mode, layouts, memoryBytes, rows, firstRow, endRow } = job;
  const result = onLentMemory((memory) => {
    const buffer = memory.bufferUpTo(memoryBytes);
    const remaining = new RemainingRows(rows, { firstRow, endRow, units: 1 });
    if (job.bits !== null) remaining.keep(job.bits);
    const asked = predicates.map((predicate, i) => ({
      predicate,
      column: columnAt(buffer, layouts, i * wordsPerLayout),
    }));
    const narrowed = narrow(asked, mode, remaining);
    const selection = remaining.selection();
    return {
      ...narrowed,
      bits: selection.kind === 'bits' ? (selection.bits as Uint8Array<ArrayBuffer>) : null,
    };
  });
  return { result, transfer: result.bits === null ? [] : [result.bits.buffer] };
}

/** Filters a row group on a thread. */
export const narrowTask: Task<NarrowJob, NarrowedRows> = { module: builtModule(import.meta.url), work };
