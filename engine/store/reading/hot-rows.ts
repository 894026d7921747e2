import { assert } from '../../terms/assert.js';
import type { BatchBuilder } from '../../columns/batch-builder.js';
import type { ColumnBuilder } from '../../columns/column-builder.js';
import { plainColumn } from '../../columns/take.js';
import type { Column, RecordBatch } from '../../columns/column.js';
import type { AskableFilters } from './filter-ask.js';
import type { OpenRowGroup, RowGroup } from './snapshot.js';
import { widenZone, zoneOfNoRows, type ZoneMap } from '../../columns/zone-map.js';
import { placementField, type Field, type Schema } from '../../terms/schema.js';
import { conversionOf, convertColumn, convertZone, nullColumn } from '../../columns/convert-column.js';
import type { OrdinalRun, Run } from '../manifest/manifest.js';
import { spareBuilders } from '../../columns/spare-builders.js';

/**
 * The rows of a hot file in memory, in the layouts of the scan. Rows are only added, at the end. So a snapshot is a number of rows, and
 * what it has read does not change.
 */
export class HotRows {
  readonly schema: Schema;
  readonly #file: string;
  readonly #builder: BatchBuilder;
  #isGivenBack = false;
  /** Bounds over all rows of each field. */
  #zones: readonly ZoneMap[];
  readonly #runs: Run[] = [];
  #rowCount = 0;

  /** `file` names the hot file in messages and explanations. */
  constructor(schema: Schema, file: string) {
    this.schema = schema;
    this.#file = file;
    this.#builder = spareBuilders.take(schema);
    this.#zones = schema.fields.map(() => zoneOfNoRows);
  }

  /** Gives the memory to the next hot file. No columns that were taken of the rows may be in use any more. */
  giveBack(): void {
    assert(!this.#isGivenBack, 'the memory of hot rows is given back once');
    this.#isGivenBack = true;
    spareBuilders.give(this.#builder);
  }

  /** Another file may have the memory by now. */
  get isGivenBack(): boolean {
    return this.#isGivenBack;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Adds rows of the file's schema with their positions. The batch is copied. */
  append(batch: RecordBatch, runs: readonly OrdinalRun[]): void {
    const columns = batch.columns.map(plainColumn);
    this.#builder.append({ ...batch, columns });
    this.#zones = this.#zones.map((zone, i) => widenZone(zone, columns[i]!));
    let firstRow = this.#rowCount;
    for (const run of runs) {
      this.#addRun({ ...run, firstRow });
      firstRow += run.rows;
    }
    this.#rowCount = this.#builder.rows;
    assert(firstRow === this.#rowCount, 'every row of a hot batch has a position');
  }

  /** Runs that go on from the one before, in rows and in ordinals, are one. */
  #addRun(run: Run): void {
    const last = this.#runs.at(-1);
    if (last?.partition === run.partition && last.firstOrdinal + last.rows === run.firstOrdinal) {
      this.#runs[this.#runs.length - 1] = { ...last, rows: last.rows + run.rows };
    } else if (run.rows > 0) {
      this.#runs.push(run);
    }
  }

  /** Where the rows stand, in the order of the rows: that of commit, not of position. */
  runs(): Run[] {
    return [...this.#runs];
  }

  /** Earliest and latest time of the rows by the field that places them, in milliseconds; null where no row has one. */
  timeRangeMs(): readonly [number, number] | null {
    const placement = placementField(this.schema);
    if (placement < 0) return null;
    const { min, max } = this.#zones[placement]!;
    return typeof min === 'bigint' && typeof max === 'bigint' ? [Number(min), Number(max)] : null;
  }

  /** All rows, sharing memory. */
  batch(): RecordBatch {
    return this.#builder.take(this.#rowCount);
  }

  /** The first `rows` rows as the scan's unit, with the fields of `target`. Later appends don't change it. */
  rowGroup(target: Schema, rows: number): RowGroup {
    assert(rows <= this.#rowCount, `a snapshot of ${rows} rows of ${this.#rowCount}`);
    const sources = target.fields.map((field): Source => {
      const index = this.schema.fields.findIndex(({ name }) => name === field.name);
      if (index < 0) return { field, stored: undefined, zone: nullZone(rows) };
      const stored = { column: this.#builder.column(index), field: this.schema.fields[index]! };
      // Bounds are kept for all rows there are: those of fewer rows are not known.
      const zone =
        rows === this.#rowCount
          ? convertZone(this.#zones[index]!, conversionOf(stored.field.type, field.type))
          : null;
      return { field, stored, zone };
    });
    return new HotRowGroup(this.#file, rows, sources, this);
  }
}

function nullZone(rows: number): ZoneMap {
  return { nullCount: rows, rows, min: null, max: null };
}

/** Where a field of the current schema comes from. */
interface Source {
  readonly field: Field;
  /** What the file has under its name; undefined for a field that came later. */
  readonly stored: { readonly column: ColumnBuilder; readonly field: Field } | undefined;
  readonly zone: ZoneMap | null;
}

class HotRowGroup implements RowGroup, OpenRowGroup {
  readonly index = 0;
  readonly hot = true;
  readonly filters: AskableFilters = { rowGroups: 1, ask: () => null };
  // The zone maps are at hand without opening anything, and exact.
  readonly timeMinMs = null;
  readonly timeMaxMs = null;
  readonly #taken = new Map<number, Column>();
  #all: readonly Column[] | undefined;

  constructor(
    readonly file: string,
    readonly rows: number,
    private readonly sources: readonly Source[],
    private readonly owner: HotRows,
  ) {}

  isOpen(): boolean {
    return true;
  }

  open(): OpenRowGroup {
    return this;
  }

  zone(field: number): ZoneMap | null {
    return this.sources[field]!.zone;
  }

  isAtHand(): boolean {
    return true;
  }

  columns(fields: readonly number[]): Column[] {
    assert(!this.owner.isGivenBack, 'hot rows are read while a snapshot holds them');
    return fields.map((field) => this.#column(field));
  }

  columnsNow(): readonly Column[] {
    this.#all ??= this.columns(this.sources.map((_, field) => field));
    assert(!this.owner.isGivenBack, 'hot rows are read while a snapshot holds them');
    return this.#all;
  }

  #column(field: number): Column {
    let column = this.#taken.get(field);
    if (column === undefined) {
      column = this.#take(this.sources[field]!);
      this.#taken.set(field, column);
    }
    return column;
  }

  #take({ field, stored }: Source): Column {
    if (stored === undefined) return nullColumn(field.type, this.rows);
    const conversion = conversionOf(stored.field.type, field.type);
    return convertColumn(stored.column.take(this.rows), conversion, field.type);
  }
}
