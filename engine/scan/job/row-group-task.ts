import { columnAt, wordsPerLayout, type ColumnLayout } from '../../columns/column-layout.js';
import type { KernelBlock } from '../../kernels/json-rows.js';
import { onLentMemory, type SharedMemory } from '../../memory/shared-memory.js';
import type { LineFormat } from '../../terms/line-format.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import { unpackParts, writeParts, type PackedParts } from './line-parts.js';
import { narrow, type Narrowed, type NarrowMode } from './narrowing.js';
import { CellSpace } from './piece-space.js';
import type { PreparedPredicate } from './predicate.js';
import { RemainingRows } from './remaining-rows.js';
import { countRows, type RowCounts, type RowsToCount } from './row-counts.js';

/**
 * Work on rows of a row group whose columns are in the memory that the asking thread has lent: to find those that match, to write them as
 * lines, or to count them. A job keeps nothing. The same functions do the same work on the asking thread.
 */
export type RowGroupJob =
  | ({ readonly sink: 'matches' } & MatchesJob)
  | ({ readonly sink: 'lines' } & LinesJob)
  | ({ readonly sink: 'counts' } & CountsJob);

/** Predicates to evaluate on rows. */
export interface MatchesJob {
  /** In the order in which they are evaluated. */
  readonly predicates: readonly PreparedPredicate[];
  readonly mode: NarrowMode;
  /** The layouts of the columns of the predicates, one after another. */
  readonly layouts: ColumnLayout;
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

/** Rows to write as lines. */
export interface LinesJob {
  /** The description of the table. */
  readonly block: KernelBlock;
  readonly format: LineFormat;
  readonly columnCount: number;
  /** The maximum length of a line without its strings, in bytes. */
  readonly fixedBytes: number;
  /** Addresses of the cells in the memory for the pieces, one cell for each. */
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

/** Rows to count, with the layouts of the columns to count by. */
export interface CountsJob extends Omit<RowsToCount, 'time' | 'value'> {
  readonly time: ColumnLayout | null;
  readonly value: ColumnLayout | null;
  /** End of the columns in the memory. */
  readonly memoryBytes: number;
}

/** Does a job. Runs on a thread. */
export function work(job: RowGroupJob): Finished<NarrowedRows | readonly WrittenPiece[] | RowCounts> {
  return onLentMemory((memory): Finished<NarrowedRows | readonly WrittenPiece[] | RowCounts> => {
    switch (job.sink) {
      case 'matches':
        return findMatches(job, memory);
      case 'lines':
        return writeLines(job, memory);
      case 'counts':
        return count(job, memory);
    }
  });
}

function findMatches(job: MatchesJob, memory: SharedMemory): Finished<NarrowedRows> {
  const { predicates, mode, layouts, memoryBytes, rows, firstRow, endRow } = job;
  const buffer = memory.bufferUpTo(memoryBytes);
  const remaining = new RemainingRows(rows, { firstRow, endRow, units: 1 });
  if (job.bits !== null) remaining.keep(job.bits);
  const asked = predicates.map((predicate, i) => ({
    predicate,
    column: columnAt(buffer, layouts, i * wordsPerLayout),
  }));
  const narrowed = narrow(asked, mode, remaining);
  const selection = remaining.selection();
  if (selection.kind !== 'bits') return { result: { ...narrowed, bits: null }, transfer: [] };
  const bits = selection.bits as Uint8Array<ArrayBuffer>;
  return { result: { ...narrowed, bits }, transfer: [bits.buffer] };
}

function writeLines(job: LinesJob, memory: SharedMemory): Finished<readonly WrittenPiece[]> {
  const { format, block, columnCount, fixedBytes, cells, parts, pieceBytes } = job;
  const table = { format, block, columnCount, fixedBytes, columns: null };
  const written = writeParts(table, unpackParts(parts), pieceBytes, new CellSpace(memory, cells));
  const result = written.map(({ bytes, rows }) => ({
    piece: memory.holds(bytes) ? bytes.length : bytes,
    rows,
  }));
  const onHeap = result.map(({ piece }) => piece).filter((piece) => typeof piece !== 'number');
  return { result, transfer: buffersOf(onHeap) };
}

function count({ time, value, memoryBytes, ...rest }: CountsJob, memory: SharedMemory): Finished<RowCounts> {
  const buffer = memory.bufferUpTo(memoryBytes);
  const columnOf = (layout: ColumnLayout | null) => (layout === null ? null : columnAt(buffer, layout));
  const result = countRows({ ...rest, time: columnOf(time), value: columnOf(value) });
  const { ranges, valueCounts, firstRows, pairs } = result;
  const lists = [ranges, valueCounts, firstRows, pairs].filter((list) => list !== null);
  return { result, transfer: buffersOf(lists) };
}

/** The three kinds of jobs, which threads do with one module. */
export const matchesTask: Task<MatchesJob & { sink: 'matches' }, NarrowedRows> = taskOf();
export const linesTask: Task<LinesJob & { sink: 'lines' }, readonly WrittenPiece[]> = taskOf();
export const countsTask: Task<CountsJob & { sink: 'counts' }, RowCounts> = taskOf();

function taskOf<Job extends RowGroupJob, Result>(): Task<Job, Result> {
  return { module: builtModule(import.meta.url), work: (job) => work(job) as Finished<Result> };
}
