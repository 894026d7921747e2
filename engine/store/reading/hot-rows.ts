import { assert } from '../../terms/assert.js';
import type { BatchBuilder } from '../../columns/batch-builder.js';
import type { ColumnBuilder } from '../../columns/column-builder.js';
import { plainColumn } from '../../columns/take.js';
import type { Column, RecordBatch } from '../../columns/column.js';
import type { AskableFilters } from './filter-ask.js';
import type { HeldColumns, OpenRowGroup, RowGroup } from './snapshot.js';
import { widenZone, zoneOfNoRows, type ZoneMap } from '../../columns/zone-map.js';
import { placementField, type Field, type Schema } from '../../terms/schema.js';
import { conversionOf, convertColumn, convertZone, nullColumn } from '../../columns/convert-column.js';
import type { OrdinalRun, Run } from '../manifest/manifest.js';
import { spareBuilders } from '../../columns/spare-builders.js';

/**
 * The rows of a hot file in memory, in the column layouts that scans read. Rows are only appended, so a snapshot is simply a number of
 * rows: the rows below it never change.
 */
export class HotRows {
  readonly schema: Schema;
  readonly #file: string;
  readonly #builder: BatchBuilder;
  #isGivenBack = false;
  /** Zone map of each field over all rows. */
  #zones: readonly ZoneMap[];
  readonly #runs: Run[] = [];
  #rowCount = 0;

  /** `file` names the hot file in error messages and in `--explain`. */
  constructor(schema: Schema, file: string) {
    this.schema = schema;
    this.#file = file;
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
      this.#addRun({ ...run, firstRow });
      firstRow += run.rows;
    }
    this.#rowCount = this.#builder.rows;
    assert(firstRow === this.#rowCount, 'every row of a hot batch has a position');
  }

  /** Adds a run, merged into the previous one where its ordinals continue that one. */
  #addRun(run: Run): void {
    const last = this.#runs.at(-1);
    if (last?.partition === run.partition && last.firstOrdinal + last.rows === run.firstOrdinal) {
      this.#runs[this.#runs.length - 1] = { ...last, rows: last.rows + run.rows };
    } else if (run.rows > 0) {
      this.#runs.push(run);
    }
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
      if (index < 0) return { field, stored: undefined, zone: nullZone(rows) };
      const stored = { column: this.#builder.column(index), field: this.schema.fields[index]! };
      // Zone maps cover all rows, so there is none for fewer rows.
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

/** Where the values of a field of the current schema come from. */
interface Source {
  readonly field: Field;
  /** The file's column of that name; undefined where the field was added later. */
  readonly stored: { readonly column: ColumnBuilder; readonly field: Field } | undefined;
  readonly zone: ZoneMap | null;
}

/** A row group of hot rows. All of it is in memory, so opening it and reading its columns never waits. */
class HotRowGroup implements RowGroup, OpenRowGroup {
  readonly index = 0;
  readonly hot = true;
  readonly filters: AskableFilters = { rowGroups: 1, ask: () => null };
  // Not needed for pruning: `zone` gives exact zone maps without opening anything.
  readonly timeMinMs = null;
  readonly timeMaxMs = null;
  readonly #taken = new Map<number, Column>();

  constructor(
    readonly file: string,
    readonly rows: number,
    private readonly sources: readonly Source[],
    private readonly owner: HotRows,
  ) {}

  opened(): OpenRowGroup {
    return this;
  }

  async open(): Promise<OpenRowGroup> {
    return this;
  }

  zone(field: number): ZoneMap | null {
    return this.sources[field]!.zone;
  }

  isInMemory(): boolean {
    return true;
  }

  async columns(fields: readonly number[]): Promise<HeldColumns> {
    return this.columnsInMemory(fields);
  }

  columnsInMemory(fields: readonly number[]): HeldColumns {
    assert(!this.owner.isGivenBack, 'hot rows are read while a snapshot holds them');
    return { columns: fields.map((field) => this.#column(field)), release: () => undefined };
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
