import { columnAt, type ColumnLayout } from '../../columns/column-layout.js';
import { onLentMemory } from '../../memory/shared-memory.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { countRows, type RowCounts, type RowsToCount } from './row-counts.js';

/** A row group whose rows are to be counted. Its columns are in the memory that the asking thread has lent. */
export interface CountJob extends Omit<RowsToCount, 'time' | 'value'> {
  readonly time: ColumnLayout | null;
  readonly value: ColumnLayout | null;
  /** End of the columns in the memory. */
  readonly memoryBytes: number;
}

/** Counts the rows of a row group. Runs on a thread. */
export function work({ time, value, memoryBytes, ...rest }: CountJob): Finished<RowCounts> {
  const result = onLentMemory((memory) => {
    const buffer = memory.bufferUpTo(memoryBytes);
    const columnOf = (layout: ColumnLayout | null) => (layout === null ? null : columnAt(buffer, layout));
    return countRows({ ...rest, time: columnOf(time), value: columnOf(value) });
  });
  const { ranges, valueCounts, firstRows, pairs } = result;
  return {
    result,
    transfer: buffersOf([ranges, valueCounts, firstRows, pairs].filter((list) => list !== null)),
  };
}

/** Counts the rows of a row group on a thread. */
export const countTask: Task<CountJob, RowCounts> = { module: builtModule(import.meta.url), work };
