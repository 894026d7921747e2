import { columnBytes } from '../column.js';
import { bulkRowsMin, rowGroupBytesMax } from '../limits.js';
import type { Schema } from '../schema.js';
import { jsonColumn, jsonKey } from './json-columns.js';
import { makeJsonColumns } from './json-lines.js';
import type { JsonColumns, JsonLines } from './json-lines.js';
import type { Pace } from './pace.js';
import type { RowRange, ScanUnit } from './plan.js';
import type { ScanStats } from './query.js';
import { listSelected } from './selection.js';
import type { Selection } from './selection.js';
import type { RowGroup } from './snapshot.js';

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
}

/**
 * Writes matches out as lines. Columns are asked for only here and only for row groups that have a match. The last few row
 * groups are held on to, because the runs of two segments can alternate row by row.
 */
export class Materialiser {
  readonly #keys: readonly Uint8Array[];
  readonly #lines: JsonLines;
  readonly #stats: ScanStats;
  readonly #pace: Pace;
  /** In the order of their last use. */
  readonly #held = new Map<RowGroup, Material>();
  #heldBytes = 0;
  #rows = new Uint32Array(1024);

  constructor(schema: Schema, lines: JsonLines, stats: ScanStats, pace: Pace) {
    this.#keys = schema.fields.map((field) => jsonKey(field.name));
    this.#lines = lines;
    this.#stats = stats;
    this.#pace = pace;
  }

  /** The pieces that the matches fill; what they leave begun stays in the lines. */
  async *write(matches: Matches): AsyncGenerator<Uint8Array> {
    const stats = this.#stats;
    let startMs = performance.now();
    const columns = await this.#columnsOf(matches.unit.rowGroup, matches.take);
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
        if (piece !== null) yield piece;
        await this.#pace.pause();
        startMs = performance.now();
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
    const open = await rowGroup.open();
    const use = rowsToWrite < bulkRowsMin ? 'again' : 'once';
    const columns = [];
    let bytes = 0;
    for (let field = 0; field < this.#keys.length; field++) {
      const column = await open.column(field, this.#stats, use);
      bytes += columnBytes(column);
      columns.push(jsonColumn(this.#keys[field]!, column, rowsToWrite));
    }
    for (const [other, material] of this.#held) {
      if (this.#heldBytes + bytes <= rowGroupBytesMax) break;
      this.#held.delete(other);
      this.#heldBytes -= material.bytes;
    }
    const material = { columns: makeJsonColumns(columns), bytes };
    this.#held.set(rowGroup, material);
    this.#heldBytes += bytes;
    return material.columns;
  }
}
