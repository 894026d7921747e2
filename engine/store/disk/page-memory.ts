import type { MemoryLease } from '../../memory/memory-lease.js';
import type { MemoryRange } from '../../memory/shared-memory.js';

/** The lent memory of a page of rows. It is freed once all rows have been copied or written elsewhere. */
export class PageMemory {
  #rowsLeft: number;

  constructor(
    private readonly lease: MemoryLease,
    rows: number,
    private readonly onFree: (memory: PageMemory) => void,
  ) {
    this.#rowsLeft = rows;
  }

  /** The range of memory in which another thread finds the page, as `packBatch` has written it. */
  get range(): MemoryRange {
    return this.lease.range;
  }

  /** Marks `rows` more rows as no longer needed. */
  done(rows: number): void {
    this.#rowsLeft -= rows;
    if (this.#rowsLeft <= 0) this.free();
  }

  /** Frees the memory at once. */
  free(): void {
    this.lease.free();
    this.onFree(this);
  }
}
