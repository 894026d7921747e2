import { columnBytes, type Column } from '../column.js';
import { bulkRowsMin, rowGroupBytesMax } from '../limits.js';
import type { Schema } from '../schema.js';
import { ColumnLease } from './column-lease.js';
import { jsonColumn, jsonKey } from './json-columns.js';
import { makeJsonColumns } from './json-lines.js';
import type { JsonColumns, JsonLines } from './json-lines.js';
import type { Pace } from './pace.js';
import type { RowRange, ScanUnit } from './plan.js';
import type { ScanStats } from './query.js';
import type { QueryThreads } from './query-threads.js';
import type { ScanWork } from './row-group-filter.js';
import { listSelected } from './selection.js';
import type { Selection } from './selection.js';
import type { ColumnUse, RowGroup } from './snapshot.js';

/** Matches of one unit that the answer has: `take` of them, after the first `skip`. */
export interface Matches {
  readonly unit: ScanUnit;
  readonly selection: Selection;
  readonly skip: number;
  readonly take: number;
}

interface Material {
  readonly columns: JsonColumns;
  readonly bytes: number;
  readonly lease: ColumnLease;
}

/**
 * Writes matches out as lines. Columns are asked for only here and only for row groups that have a match. The last few row
 * groups are held on to, because the runs of two segments can alternate row by row; but only until a piece is handed out: a
 * caller that takes its time must not keep others from the memory. Whoever made it calls `close`.
 */
export class Materialiser {
  readonly #keys: readonly Uint8Array[];
  readonly #fields: readonly number[];
  readonly #lines: JsonLines;
  readonly #stats: ScanStats;
  readonly #threads: QueryThreads | null;
  readonly #pace: Pace;
  /** In the order of their last use. */
  readonly #held = new Map<RowGroup, Material>();
  #heldBytes = 0;
  /** What was written last. It pins nothing: its arrays are read again only while the same columns are held. */
  #last: { rowGroup: RowGroup; columns: readonly Column[]; written: JsonColumns } | undefined;
  /** Row groups whose columns the statistics have. */
  readonly #counted = new WeakSet<RowGroup>();
  #rows = new Uint32Array(1024);

  constructor(schema: Schema, lines: JsonLines, { stats, pace, threads }: ScanWork) {
    this.#fields = schema.fields.map((_, field) => field);
    this.#keys = schema.fields.map((field) => jsonKey(field.name));
    this.#lines = lines;
    this.#threads = threads;
    this.#stats = stats;
    this.#pace = pace;
  }

  /** The pieces that the matches fill; what they leave begun stays in the lines. */
  async *write(matches: Matches): AsyncGenerator<Uint8Array> {
    const stats = this.#stats;
    let startMs = performance.now();
    const { rowGroup } = matches.unit;
    let columns = await this.#columnsOf(rowGroup, matches.take);
    let { skip, take } = matches;
    for (const range of matches.unit.ranges) {
      if (take === 0) break;
      const { clipped, skipped, from, to } = this.#list(matches.selection, range, skip, take);
      skip -= skipped;
      take -= to - from;
      const ordinalOfRow0 = clipped.firstOrdinal - clipped.firstRow;
      for (let next = from; next < to;) {
        const written = this.#lines.write(columns, this.#rows, next, to, clipped.partition, ordinalOfRow0);
        stats.rowsReturned += written - next;
        next = written;
        if (next === to) break;
        const piece = this.#lines.take();
        stats.writeMs += performance.now() - startMs;
        if (piece !== null) {
          this.close();
          yield piece;
        }
        await this.#pace.pause();
        startMs = performance.now();
        columns = await this.#columnsOf(rowGroup, matches.take);
      }
    }
    stats.writeMs += performance.now() - startMs;
  }

  /** Lists the matching rows of a range; those at [from, to) of the list are wanted. `skipped` counts those left out before. */
  #list(
    selection: Selection,
    range: RowRange,
    skip: number,
    take: number,
  ): { clipped: RowRange; skipped: number; from: number; to: number } {
    if (selection.kind === 'all') {
      const skipped = Math.min(skip, range.rows);
      const rows = Math.min(take, range.rows - skipped);
      const clipped = {
        firstRow: range.firstRow + skipped,
        rows,
        partition: range.partition,
        firstOrdinal: range.firstOrdinal + skipped,
      };
      this.#makeRoom(rows);
      listSelected(selection, clipped, this.#rows);
      return { clipped, skipped, from: 0, to: rows };
    }
    this.#makeRoom(range.rows);
    const count = listSelected(selection, range, this.#rows);
    const from = Math.min(skip, count);
    return { clipped: range, skipped: from, from, to: Math.min(count, from + take) };
  }

  #makeRoom(rows: number): void {
    if (this.#rows.length < rows) this.#rows = new Uint32Array(rows);
  }

  async #columnsOf(rowGroup: RowGroup, rowsToWrite: number): Promise<JsonColumns> {
    const known = this.#held.get(rowGroup);
    if (known !== undefined) {
      this.#held.delete(rowGroup);
      this.#held.set(rowGroup, known);
      return known.columns;
    }
    const use = rowsToWrite < bulkRowsMin ? 'again' : 'once';
    const lease = new ColumnLease({ signal: this.#pace.signal, onWait: () => this.close() });
    try {
      const columns = await this.#read(rowGroup, lease, use);
      const bytes = columns.reduce((sum, column) => sum + columnBytes(column), 0);
      this.#makeRoomFor(bytes);
      const material = { columns: this.#prepare(rowGroup, columns, rowsToWrite), bytes, lease };
      this.#held.set(rowGroup, material);
      this.#heldBytes += bytes;
      return material.columns;
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** What was let go between two pieces and is still there is not counted a second time. */
  async #read(rowGroup: RowGroup, lease: ColumnLease, use: ColumnUse): Promise<Column[]> {
    const open = await rowGroup.open(this.#threads);
    const stats = this.#stats;
    const { columnsCached } = stats;
    const columns = await open.columns(this.#fields, stats, lease, use);
    if (this.#counted.has(rowGroup)) stats.columnsCached = columnsCached;
    this.#counted.add(rowGroup);
    return columns;
  }

  /** The columns as they are written. While they stay in memory, those of the last piece serve for the next. */
  #prepare(rowGroup: RowGroup, columns: readonly Column[], rowsToWrite: number): JsonColumns {
    const last = this.#last;
    if (last?.rowGroup === rowGroup && last.columns.every((column, i) => column === columns[i]))
      return last.written;
    const written = makeJsonColumns(
      columns.map((column, field) => jsonColumn(this.#keys[field]!, column, rowsToWrite)),
    );
    this.#last = { rowGroup, columns, written };
    return written;
  }

  #makeRoomFor(bytes: number): void {
    for (const rowGroup of this.#held.keys()) {
      if (this.#heldBytes + bytes <= rowGroupBytesMax) break;
      this.#forget(rowGroup);
    }
  }

  /** Gives back what takes memory from others; what is written after that is read again. */
  close(): void {
    for (const [rowGroup, { lease }] of this.#held) if (!lease.isEmpty) this.#forget(rowGroup);
  }

  #forget(rowGroup: RowGroup): void {
    const material = this.#held.get(rowGroup)!;
    this.#held.delete(rowGroup);
    this.#heldBytes -= material.bytes;
    material.lease.release();
  }
}
