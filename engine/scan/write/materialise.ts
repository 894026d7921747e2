import { columnBytes } from '../../columns/column.js';
import { rowGroupBytesMax } from '../../terms/limits.js';
import type { ColumnLease } from '../../store/reading/column-lease.js';
import { lineTable, type LineTable } from '../../kernels/json-rows.js';
import { jsonColumns } from './json-columns.js';
import type { JsonLines } from './json-lines.js';
import { partsOf } from './line-parts.js';
import { RowGroupColumns } from './row-group-columns.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import type { Matches } from '../filter/selection.js';
import type { RowGroup } from '../../store/reading/snapshot.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { WrittenFields } from './written-fields.js';

interface Material {
  readonly table: LineTable;
  readonly bytes: number;
  readonly lease: ColumnLease;
}

/**
 * Writes matches as lines. Reads columns only here, and only of row groups that have a match. The columns of the last few row groups stay
 * pinned, because the runs of two segments can alternate row by row. They are released before each piece is handed out, so that a slow
 * reader keeps no memory from other queries. The owner calls `close`.
 */
export class Materialiser {
  readonly #fields: WrittenFields;
  readonly #lines: JsonLines;
  readonly #work: ScanWork;
  /** Pinned columns by row group, least recently used first. */
  readonly #held = new Map<RowGroup, Material>();
  #heldBytes = 0;
  /** The columns of all row groups that have been read. */
  readonly #columns = new WeakMap<RowGroup, RowGroupColumns>();

  /** @param work `onWait` is replaced: before waiting for memory, the materialiser releases its columns */
  constructor(fields: WrittenFields, lines: JsonLines, work: Omit<ScanWork, 'onWait'>) {
    this.#fields = fields;
    this.#lines = lines;
    this.#work = { ...work, onWait: () => this.close() };
  }

  /** Yields the pieces that the matches fill. Lines that do not fill a piece stay in the `JsonLines`. */
  *write(matches: Matches): Steps<Uint8Array> {
    const { stats, pace } = this.#work;
    let startMs = performance.now();
    const { rowGroup } = matches.unit;
    let table = yield* this.#tableOf(rowGroup, matches.take);
    for (const part of partsOf(matches)) {
      for (let next = part.first; next < part.end;) {
        next = this.#lines.write(table, part, next, part.end);
        if (next === part.end) break;
        stats.writeMs += performance.now() - startMs;
        yield* this.finish();
        yield* settled(pace.pause());
        startMs = performance.now();
        table = yield* this.#tableOf(rowGroup, matches.take);
      }
    }
    stats.writeMs += performance.now() - startMs;
  }

  /** Yields the remaining lines as a piece, if there are any. */
  *finish(): Steps<Uint8Array> {
    const piece = this.#lines.take();
    // No columns are pinned while the caller has the piece.
    this.close();
    if (piece === null) return;
    this.#work.stats.rowsReturned += piece.rows;
    yield piece.bytes;
  }

  *#tableOf(rowGroup: RowGroup, rowsToWrite: number): Steps<never, LineTable> {
    const known = this.#held.get(rowGroup);
    if (known !== undefined) {
      this.#held.delete(rowGroup);
      this.#held.set(rowGroup, known);
      return known.table;
    }
    const source =
      this.#columns.get(rowGroup) ?? new RowGroupColumns(rowGroup, this.#fields.fields, this.#work);
    this.#columns.set(rowGroup, source);
    const lease = source.newLease();
    try {
      const columns = yield* source.read(lease, rowsToWrite);
      const bytes = columns.reduce((sum, column) => sum + columnBytes(column), 0);
      this.#makeRoomFor(bytes);
      const written = jsonColumns(columns, this.#fields);
      const material = { table: lineTable(this.#fields.keys, written), bytes, lease };
      this.#held.set(rowGroup, material);
      this.#heldBytes += bytes;
      return material.table;
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  #makeRoomFor(bytes: number): void {
    for (const rowGroup of this.#held.keys()) {
      if (this.#heldBytes + bytes <= rowGroupBytesMax) break;
      this.#forget(rowGroup);
    }
  }

  /** Releases the pinned columns. Columns that are needed later are read again. */
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
