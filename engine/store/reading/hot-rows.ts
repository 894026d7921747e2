import { assert } from '../../core/errors.js';
import { type BatchBuilder, spareBuilders } from '../../columns/batch-builder.js';
import type { ColumnBuilder } from '../../columns/column-builder.js';
import { plainColumn } from '../../columns/take.js';
import type { Column, RecordBatch } from '../../columns/column.js';
import type { FileFilters } from './filter-request.js';
import type { HeldColumns, OpenRowGroup, RowGroup } from './snapshot.js';
import { widenZone, zoneOfNoRows, type ZoneMap } from '../../columns/zone-map.js';
import { placementField, type Field, type Schema } from '../../core/schema.js';
import { conversionOf, convertColumn, convertZone, nullColumn } from '../../columns/convert-column.js';
import { addRun, type OrdinalRun, type Run } from '../manifest/manifest.js';

/**
 * The rows of a hot file in memory, in the column layouts that scans read. Rows are only appended, so a snapshot is simply a number of
 * rows: the rows below it never change.
 */
export class HotRows {
  readonly #builder: BatchBuilder;
  #isGivenBack = false;
  /** Zone map of each field over all rows. */
  #zones: readonly ZoneMap[];
  readonly #runs: Run[] = [];
  #rowCount = 0;

  /** `file` names the hot file in error messages and in `--explain`. */
  constructor(
    readonly schema: Schema,
    private readonly file: string,
  ) {
    this.#builder = spareBuilders.take(schema);
    this.#zones = schema.fields.map(() => zoneOfNoRows);
  }

  /** Gives the memory to the next hot file. No column of these rows may be in use any more. */
  giveBack(): void {
    assert(!this.#isGivenBack, 'the memory of hot rows is given back once');
    this.#isGivenBack = true;
    spareBuilders.giveBack(this.#builder);
  }

  /** Whether the memory was given back. Another hot file may be using it. */
  get isGivenBack(): boolean {
    return this.#isGivenBack;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Appends a copy of the batch, which has the file's schema. `runs` are the positions of its rows. */
  append(batch: RecordBatch, runs: readonly OrdinalRun[]): void {
    const columns = batch.columns.map(plainColumn);
    this.#builder.append({ ...batch, columns });
    this.#zones = this.#zones.map((zone, i) => widenZone(zone, columns[i]!));
    let firstRow = this.#rowCount;
    for (const run of runs) {
      if (run.rows > 0) addRun(this.#runs, { ...run, firstRow });
      firstRow += run.rows;
    }
    this.#rowCount = this.#builder.rows;
    assert(firstRow === this.#rowCount, 'every row of a hot batch has a position');
  }

  /** The positions of the rows, in row order. That is the order of commit, not of position. */
  runs(): Run[] {
    return [...this.#runs];
  }

  /** Earliest and latest value of the placement field, in milliseconds; null where no row has one. */
  timeRangeMs(): readonly [number, number] | null {
    const placement = placementField(this.schema);
    if (placement < 0) return null;
    const { min, max } = this.#zones[placement]!;
    return typeof min === 'bigint' && typeof max === 'bigint' ? [Number(min), Number(max)] : null;
  }

  /** All rows. The batch shares memory with this object. */
  batch(): RecordBatch {
    return this.#builder.take(this.#rowCount);
  }

  /** The first `rows` rows as a row group with the fields of `target`. Later appends do not change it. */
  rowGroup(target: Schema, rows: number): RowGroup {
    assert(rows <= this.#rowCount, `a snapshot of ${rows} rows of ${this.#rowCount}`);
    const sources = target.fields.map((field): Source => {
      const index = this.schema.fields.findIndex(({ name }) => name === field.name);
      if (index < 0)
        return { field, stored: undefined, zone: { nullCount: rows, rows, min: null, max: null } };
      const stored = { column: this.#builder.column(index), field: this.schema.fields[index]! };
      // Zone maps cover all rows, so there is none for fewer rows.
      const zone =
        rows === this.#rowCount
          ? convertZone(this.#zones[index]!, conversionOf(stored.field.type, field.type))
          : null;
      return { field, stored, zone };
    });
    return new HotRowGroup(this.file, rows, sources, this);
  }
}

/** Where the values of a field of the current schema come from. */
interface Source {
  readonly field: Field;
  /** The file's column of that name; undefined where the field was added later. */
  readonly stored: { readonly column: ColumnBuilder; readonly field: Field } | undefined;
  readonly zone: ZoneMap | null;
}

/** A row group that is in memory, so that opening it and reading its columns never waits. */
export abstract class MemoryRowGroup implements RowGroup, OpenRowGroup {
  abstract readonly file: string;
  abstract readonly rows: number;
  abstract readonly hot: boolean;
  readonly index = 0;
  readonly filters: FileFilters = { rowGroups: 1, ask: () => null };
  // Not needed for pruning: a zone map is found without opening anything.
  readonly timeMinMs = null;
  readonly timeMaxMs = null;
  readonly #columns = new Map<number, Column>();

  /** Makes the column of a field, when it is first read. */
  protected abstract make(field: number): Column;

  abstract zone(field: number): ZoneMap | null;

  opened(): OpenRowGroup {
    return this;
  }

  async open(): Promise<OpenRowGroup> {
    return this;
  }

  isInMemory(): boolean {
    return true;
  }

  columnsInMemory(fields: readonly number[]): HeldColumns {
    const columns = fields.map((field) => {
      const column = this.#columns.get(field) ?? this.make(field);
      this.#columns.set(field, column);
      return column;
    });
    return { columns, release: () => undefined };
  }

  async columns(fields: readonly number[]): Promise<HeldColumns> {
    return this.columnsInMemory(fields);
  }
}

class HotRowGroup extends MemoryRowGroup {
  readonly hot = true;

  constructor(
    readonly file: string,
    readonly rows: number,
    private readonly sources: readonly Source[],
    private readonly owner: HotRows,
  ) {
    super();
  }

  zone(field: number): ZoneMap | null {
    return this.sources[field]!.zone;
  }

  override columnsInMemory(fields: readonly number[]): HeldColumns {
    assert(!this.owner.isGivenBack, 'hot rows are read while a snapshot holds them');
    return super.columnsInMemory(fields);
  }

  protected make(index: number): Column {
    const { field, stored } = this.sources[index]!;
    if (stored === undefined) return nullColumn(field.type, this.rows);
    const conversion = conversionOf(stored.field.type, field.type);
    return convertColumn(stored.column.take(this.rows), conversion, field.type);
  }
}
