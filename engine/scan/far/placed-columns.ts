import { arraysOf, type Column } from '../../columns/column.js';
import { copyColumn } from '../../columns/copy-column.js';
import { alignedBytes } from '../../memory/allocator.js';
import { RangeArena } from '../../memory/arena.js';
import { leaseMemory, type MemoryLease } from '../../memory/memory-lease.js';
import type { ColumnLease } from '../../store/reading/column-lease.js';

interface Placed {
  readonly column: Column;
  readonly memory: MemoryLease;
  holders: number;
}

/** Copies of heap columns in the kernels' memory, where threads that write lines can read them. A copy is kept while a lease holds it. */
export class PlacedColumns {
  readonly #placed = new Map<Column, Placed>();

  /** The copy of a column, held by the lease; the column itself where there is no memory. */
  hold(column: Column, lease: ColumnLease): Column {
    const placed = this.#placed.get(column) ?? this.#place(column);
    if (placed === null) return column;
    placed.holders++;
    lease.add(() => {
      placed.holders--;
      if (placed.holders > 0) return;
      this.#placed.delete(column);
      placed.memory.free();
    });
    return placed.column;
  }

  #place(column: Column): Placed | null {
    const sizeBytes = arraysOf(column).reduce((sum, { byteLength }) => sum + alignedBytes(byteLength), 0);
    const memory = leaseMemory(sizeBytes);
    if (memory === null) return null;
    const placed = { column: copyColumn(column, new RangeArena(memory.bytes).take), memory, holders: 0 };
    this.#placed.set(column, placed);
    return placed;
  }
}
