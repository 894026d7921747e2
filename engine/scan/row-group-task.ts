import { columnAt, wordsPerLayout, type ColumnLayout } from '../columns/column.js';
import type { LineTable } from '../kernels/json-rows.js';
import { onLentMemory } from '../core/shared-memory.js';
import { throwIfEnded } from '../workers/job-queue.js';
import { buffersOf, taskIn, type Finished } from '../workers/task.js';
import { JsonLines, type LinePart, type Piece } from './json-lines.js';
import { narrow, type Narrowed, type NarrowMode } from './narrowing.js';
import { arraysOfNumbers } from '../numbers/group-numbers.js';
import type { NumbersWanted } from '../numbers/number-functions.js';
import type { PreparedPredicate } from './predicate.js';
import { RemainingRows } from './selection.js';
import { countRows, type RowCounts, type RowsToCount } from './row-counts.js';

// Work on rows of a row group whose columns are in the memory that the asking thread has lent: to find those that match, to write them as
// lines, or to count them. A job keeps nothing. The same functions do the same work on the asking thread.

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
  /** Set once the query has ended, for a job that may take long; else null. */
  readonly ended: Int32Array | null;
}

/** What is left of a row group: one bit for each of its rows, or null where no row is left. */
export interface NarrowedRows extends Narrowed {
  readonly bits: Uint8Array<ArrayBuffer> | null;
}

/** Rows to write as lines. */
export interface LinesJob {
  /** All columns are in the memory. */
  readonly table: LineTable;
  /** Addresses of the cells in the memory for the pieces, one cell for each. */
  readonly cells: readonly number[];
  readonly parts: readonly LinePart[];
  /** Maximum bytes of a piece, unless it consists of one line. */
  readonly pieceBytes: number;
}

/** A piece. Where it is in the next cell, only its length is given. Of several agents, `last` has the index of the last entry as its ordinal. */
export interface WrittenPiece extends Omit<Piece, 'bytes'> {
  readonly bytes: number | Uint8Array;
}

/** Rows to count, with the layouts of the columns to count by. */
export interface CountsJob extends Omit<RowsToCount, 'time' | 'value' | 'numbers'> {
  readonly time: ColumnLayout | null;
  readonly value: ColumnLayout | null;
  readonly numbers: readonly { readonly column: ColumnLayout | null; readonly wanted: NumbersWanted }[];
  /** End of the columns in the memory. */
  readonly memoryBytes: number;
}

/** Runs on a thread: finds the rows that match. */
export function findMatches(job: MatchesJob): Finished<NarrowedRows> {
  const { predicates, mode, layouts, memoryBytes, rows, firstRow, endRow } = job;
  return onLentMemory((memory) => {
    const buffer = memory.bufferUpTo(memoryBytes);
    const remaining = new RemainingRows(rows, { firstRow, endRow, units: 1 });
    if (job.bits !== null) remaining.keep(job.bits);
    const asked = predicates.map((predicate, i) => ({
      predicate,
      column: columnAt(buffer, layouts, i * wordsPerLayout),
    }));
    const steps = narrow(asked, mode, remaining);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) throwIfEnded(job.ended);
    const narrowed = step.value;
    const selection = remaining.selection();
    if (selection.kind !== 'bits') return { result: { ...narrowed, bits: null }, transfer: [] };
    const bits = selection.bits as Uint8Array<ArrayBuffer>;
    return { result: { ...narrowed, bits }, transfer: [bits.buffer] };
  });
}

/** Runs on a thread: writes rows as lines. */
export function writeLines(job: LinesJob): Finished<readonly WrittenPiece[]> {
  const { table, cells, parts, pieceBytes } = job;
  return onLentMemory((memory) => {
    const lines = new JsonLines(pieceBytes, memory, cells);
    const result: WrittenPiece[] = [];
    const take = (): void => {
      const piece = lines.take();
      if (piece === null) return;
      const { bytes, rows, last } = piece;
      // The place in several agents is read from the entry, as a message with all of its positions takes long.
      const at = parts[0]!.agents === undefined ? last : { partition: 0, ordinal: lines.lastIndex };
      result.push({ rows, last: at, bytes: memory.holds(bytes) ? bytes.length : bytes });
    };
    for (const part of parts)
      for (let rest = lines.write(table, part); rest !== null; rest = lines.write(table, rest)) take();
    take();
    const onHeap = result.map(({ bytes }) => bytes).filter((bytes) => typeof bytes !== 'number');
    return { result, transfer: buffersOf(onHeap) };
  });
}

/** Runs on a thread: counts rows. */
export function count({ time, value, numbers, memoryBytes, ...rest }: CountsJob): Finished<RowCounts> {
  return onLentMemory((memory) => {
    const buffer = memory.bufferUpTo(memoryBytes);
    const columnOf = (layout: ColumnLayout | null) => (layout === null ? null : columnAt(buffer, layout));
    const result = countRows({
      ...rest,
      time: columnOf(time),
      value: columnOf(value),
      numbers: numbers.map(({ column, wanted }) => ({ column: columnOf(column), wanted })),
    });
    const { ranges, valueCounts, firstRows, pairs } = result;
    const lists = [ranges, valueCounts, firstRows, pairs].filter((list) => list !== null);
    const ofNumbers = result.numbers === null ? [] : arraysOfNumbers(result.numbers);
    return { result, transfer: buffersOf([...lists, ...ofNumbers]) };
  });
}

/** The three kinds of jobs. */
export const matchesTask = taskIn(import.meta.url, { findMatches });
export const linesTask = taskIn(import.meta.url, { writeLines });
export const countsTask = taskIn(import.meta.url, { count });
