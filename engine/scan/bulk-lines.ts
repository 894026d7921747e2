import { arraysOf, type Column } from '../column.js';
import { columnLayout } from '../column-layout.js';
import { sharedMemory, type SharedMemory } from '../kernels/shared-memory.js';
import { lineJobBytes, lineJobsMax, lineScratchBytes } from '../limits.js';
import type { Schema } from '../schema.js';
import { withLease } from './column-lease.js';
import { jsonColumn, jsonKey } from './json-columns.js';
import { makeJsonColumns } from './json-lines.js';
import { cutParts, partsOf, rowsOfParts, writeParts, type LinePart } from './line-parts.js';
import type { Matches } from './materialise.js';
import type { QueryThreads } from './query-threads.js';
import type { ScanWork } from './row-group-filter.js';

/** Digits of a number, roughly, and what stands in every line besides keys and values. */
const numberBytes = 12;
const frameBytes = 32;

/**
 * Writes the matches of row groups that have many, on several threads at once. A batch is a few pieces, so that a client who
 * takes them slowly holds no more memory than that.
 */
export class BulkLines {
  readonly #fields: readonly number[];
  readonly #keys: readonly Uint8Array[];
  readonly #keyBytes: number;
  readonly #pieceBytes: number;
  readonly #work: ScanWork;
  readonly #threads: QueryThreads;

  constructor(schema: Schema, pieceBytes: number, work: ScanWork, threads: QueryThreads) {
    this.#fields = schema.fields.map((_, field) => field);
    this.#keys = schema.fields.map((field) => jsonKey(field.name));
    this.#keyBytes = this.#keys.reduce((sum, key) => sum + key.length, 0);
    this.#pieceBytes = pieceBytes;
    this.#work = work;
    this.#threads = threads;
  }

  /** The lines of the matches, in batches of pieces. The columns are let go before a batch is handed out. */
  async *write(matches: Matches): AsyncGenerator<readonly Uint8Array[]> {
    const { stats, pace, onWait } = this.#work;
    const open = await matches.unit.rowGroup.open(this.#threads);
    let rest: readonly LinePart[] = partsOf(matches);
    while (rest.length > 0) {
      await pace.pause();
      const startMs = performance.now();
      const before = rowsOfParts(rest);
      const pieces = await withLease({ signal: pace.signal, onWait }, async (lease) => {
        const columns = await open.columns(this.#fields, stats, lease, 'once');
        const rows = Math.max(1, Math.floor(lineJobBytes / this.#lineBytes(columns)));
        const jobs: (readonly LinePart[])[] = [];
        while (jobs.length < Math.min(2 * this.#threads.count, lineJobsMax) && rest.length > 0) {
          const cut = cutParts(rest, rows);
          jobs.push(cut.first);
          rest = cut.rest;
        }
        return this.#writeJobs(columns, jobs);
      });
      stats.writeMs += performance.now() - startMs;
      stats.rowsReturned += before - rowsOfParts(rest);
      yield pieces;
    }
  }

  async #writeJobs(
    columns: readonly Column[],
    jobs: readonly (readonly LinePart[])[],
  ): Promise<Uint8Array[]> {
    const memory = sharedMemory();
    const isShared = columns.flatMap(arraysOf).every((array) => memory?.holds(array) === true);
    // Elsewhere, each job would have to take a copy of the columns along.
    if (memory === null || !isShared) {
      const pieces: Uint8Array[] = [];
      for (const parts of jobs) {
        await this.#work.pace.pause();
        pieces.push(...this.#writeHere(columns, parts));
      }
      return pieces;
    }
    // All are waited for, so that none still reads the columns when they are let go.
    const written = await Promise.allSettled(jobs.map((parts) => this.#writeThere(columns, parts, memory)));
    return written.flatMap((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  }

  #writeHere(columns: readonly Column[], parts: readonly LinePart[]): Uint8Array[] {
    const rows = rowsOfParts(parts);
    const written = columns.map((column, i) => jsonColumn(this.#keys[i]!, column, rows));
    return writeParts(makeJsonColumns(written), parts, this.#pieceBytes);
  }

  async #writeThere(
    columns: readonly Column[],
    parts: readonly LinePart[],
    memory: SharedMemory,
  ): Promise<readonly Uint8Array[]> {
    const address = memory.allocate(lineScratchBytes);
    if (address === null) return this.#writeHere(columns, parts);
    try {
      return await this.#threads.writeLines({
        keys: this.#keys,
        layouts: columns.map(columnLayout),
        scratch: memory.rangeAt(address, lineScratchBytes),
        parts,
        pieceBytes: this.#pieceBytes,
      });
    } finally {
      memory.free(address);
    }
  }

  /** About how long a line is. */
  #lineBytes(columns: readonly Column[]): number {
    return columns.reduce((sum, column) => sum + valueBytes(column), frameBytes + this.#keyBytes);
  }
}

/** About how long a value is. */
function valueBytes(column: Column): number {
  if (column.kind === 'dictionary') return valueBytes(column.values);
  if (column.kind !== 'bytes') return numberBytes;
  const { offsets, length } = column;
  return 2 + (offsets[length]! - offsets[0]!) / Math.max(1, length);
}
