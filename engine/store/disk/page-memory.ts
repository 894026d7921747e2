import type { MemoryLease } from '../../memory/memory-lease.js';
import type { MemoryRange } from '../../memory/shared-memory.js';

/** The lent memory that a page's rows lie in, which is free once each of them has been copied or written elsewhere. */
export class PageMemory {
  #rowsLeft: number;

  constructor(
    private readonly lease: MemoryLease,
    rows: number,
    private readonly onFree: (memory: PageMemory) => void,
  ) {
    this.#rowsLeft = rows;
  }

  /** Where another thread finds the page, as `packBatch` has written it. */
  get range(): MemoryRange {
    return this.lease.range;
  }

  /** Says that so many rows more are no longer needed here. */
  done(rows: number): void {
    this.#rowsLeft -= rows;
    if (this.#rowsLeft <= 0) this.free();
  }

  /** Says that none of them is. */
  free(): void {
    this.lease.free();
    this.onFree(this);
  }
}
