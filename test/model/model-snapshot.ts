import type { Column } from '../../engine/columns/column.js';
import { foldText } from '../../engine/core/fold.js';
import type {
  HeldColumns,
  OpenRowGroup,
  RowGroup,
  Snapshot,
  SnapshotRun,
} from '../../engine/store/reading/snapshot.js';
import type { ZoneMap } from '../../engine/columns/zone-map.js';
import { placementField, type Schema } from '../../engine/core/schema.js';
import type { Dataset, ModelRecord, Value } from './dataset.js';
import { makeColumn } from './model-column.js';
import { between, seededRandom, type Random } from './random.js';
import type { FileFilters, FilterRequest } from '../../engine/store/reading/filter-request.js';
import { ruling } from '../../engine/store/sealed/segment-rulings.js';
import type { FilterQuestion } from '../../engine/store/sealed/filter-question.js';
import type { ReadCounters } from '../../engine/store/reading/read-counters.js';

export interface Layout {
  /** Seed of all random choices, which repeats them. */
  readonly seed: number;
  /** Number of segments that records are dealt to in stretches, so that their runs alternate. */
  readonly segments: number;
  readonly rowGroupRows: number;
  /** Whether zone maps, time bounds and gram filters are all present and exact, or randomly missing or loose. */
  readonly statistics: 'exact' | 'chance';
}

/** A snapshot in memory that records how it is used. */
export interface ModelSnapshot extends Snapshot {
  readonly rowGroups: readonly ModelRowGroup[];
  /** How often it was released. */
  readonly released: () => number;
}

/** Splits the records randomly into row groups and runs, like segments. */
export function makeSnapshot(dataset: Dataset, layout: Layout): ModelSnapshot {
  const random = seededRandom(layout.seed);
  const rowGroups: ModelRowGroup[] = [];
  const open: { records: ModelRecord[]; group: ModelRowGroup }[] = [];
  const filters: ModelFilters[] = [];
  const runs: { group: ModelRowGroup; firstRow: number; rows: number; record: ModelRecord }[] = [];
  let segment = 0;
  let previous: ModelRecord | undefined;
  for (const record of dataset.records) {
    if (random() < 0.1) segment = between(random, 0, layout.segments);
    let target = open[segment];
    if (target === undefined || target.records.length >= layout.rowGroupRows) {
      const records: ModelRecord[] = [];
      const group = new ModelRowGroup(
        dataset.schema,
        records,
        `segment-${segment}`,
        rowGroups.length,
        (filters[segment] ??= new ModelFilters()),
        layout,
        random,
      );
      rowGroups.push(group);
      target = { records, group };
      open[segment] = target;
    }
    const run = runs.at(-1);
    const follows =
      previous?.position.partition === record.position.partition &&
      previous.position.ordinal + 1 === record.position.ordinal;
    if (run?.group === target.group && follows && random() > 0.02) run.rows++;
    else runs.push({ group: target.group, firstRow: target.records.length, rows: 1, record });
    target.records.push(record);
    previous = record;
  }
  for (const group of rowGroups) group.seal();
  let released = 0;
  return {
    schema: dataset.schema,
    rowGroups,
    runs: runs.map(({ group, firstRow, rows, record }): SnapshotRun => {
      const { partition, ordinal } = record.position;
      return { rowGroup: group, firstRow, rows, partition, firstOrdinal: ordinal };
    }),
    release: () => void released++,
    released: () => released,
  };
}

/** The filters of a segment's row groups, which are asked together and answer a little later. */
class ModelFilters implements FileFilters {
  readonly #rowGroups: ModelRowGroup[] = [];

  add(rowGroup: ModelRowGroup): void {
    this.#rowGroups[rowGroup.index] = rowGroup;
  }

  get rowGroups(): number {
    return this.#rowGroups.length;
  }

  async ask({ rowGroups, rulings, questions, counters }: FilterRequest): Promise<void> {
    await Promise.resolve();
    for (const index of rowGroups) {
      const rowGroup = this.#rowGroups[index]!;
      questions.forEach((question, i) => {
        if (rowGroup.isMissed(question, counters)) rulings.setAnswer(i, index, ruling.byGram);
        rulings.ruleOut(i, question, [index]);
      });
    }
  }
}

export class ModelRowGroup implements RowGroup, OpenRowGroup {
  readonly file: string;
  readonly index: number;
  readonly hot: boolean;
  readonly filters: FileFilters;
  rows = 0;
  timeMinMs: number | null = null;
  timeMaxMs: number | null = null;
  /** How often it was opened. */
  opens = 0;
  /** Fields whose columns were requested. */
  readonly fieldsRead = new Set<number>();
  readonly #schema: Schema;
  readonly #records: readonly ModelRecord[];
  readonly #random: Random;
  readonly #isExact: boolean;
  #columns: Column[] = [];
  #zones: (ZoneMap | null)[] = [];
  #hasGrams: boolean[] = [];

  constructor(
    schema: Schema,
    records: readonly ModelRecord[],
    file: string,
    index: number,
    filters: ModelFilters,
    layout: Layout,
    random: Random,
  ) {
    this.#schema = schema;
    this.#records = records;
    this.file = file;
    this.index = index;
    this.hot = random() < 0.3;
    this.#random = random;
    this.#isExact = layout.statistics === 'exact';
    this.filters = filters;
    filters.add(this);
  }

  /** Builds the columns once all records are present. */
  seal(): void {
    this.rows = this.#records.length;
    this.#columns = this.#schema.fields.map((field, i) =>
      makeColumn(field.type, this.#values(i), this.#random),
    );
    this.#zones = this.#schema.fields.map((_, i) => (this.#missing() ? null : this.#zone(i)));
    this.#hasGrams = this.#schema.fields.map(() => !this.#missing());
    const placement = placementField(this.#schema);
    if (placement < 0 || this.#missing()) return;
    const times = this.#values(placement).filter((value) => value !== null);
    if (times.length === 0) return;
    this.timeMinMs = Math.min(...times.map(Number));
    this.timeMaxMs = Math.max(...times.map(Number));
  }

  async open(): Promise<OpenRowGroup> {
    this.opens++;
    return this;
  }

  zone(field: number): ZoneMap | null {
    return this.#zones[field]!;
  }

  opened(): OpenRowGroup | null {
    return this.opens > 0 && this.index % 2 === 0 ? this : null;
  }

  /** Whether the field has a gram filter that rules out all of the texts. */
  isMissed({ field, asked }: FilterQuestion, counters: ReadCounters): boolean {
    if (!this.#hasGrams[field]!) return false;
    counters.gramPiecesRead++;
    return asked.every(({ folded }) => {
      const needle = Buffer.from(folded).toString('utf8');
      return this.#values(field).every(
        (value) => value === null || !foldText(String(value)).includes(needle),
      );
    });
  }

  async columns(fields: readonly number[], counters: ReadCounters): Promise<HeldColumns> {
    for (const field of fields) {
      if (this.fieldsRead.has(field)) counters.columnsCached++;
      else counters.columnsDecoded++;
      this.fieldsRead.add(field);
    }
    return { columns: fields.map((field) => this.#columns[field]!), release: () => undefined };
  }

  isInMemory(field: number): boolean {
    return this.fieldsRead.has(field);
  }

  #missing(): boolean {
    return !this.#isExact && this.#random() < 0.3;
  }

  #values(field: number): Value[] {
    return this.#records.map((record) => record.values[field]!);
  }

  #zone(field: number): ZoneMap {
    const values = this.#values(field);
    const present = values.filter((value) => value !== null);
    const nullCount = values.length - present.length;
    const bounds = { rows: values.length, nullCount };
    if (present.length === 0 || this.#missing()) return { ...bounds, min: null, max: null };
    if (this.#schema.fields[field]!.type === 'string') {
      const sorted = present.map((value) => Buffer.from(String(value))).sort((a, b) => Buffer.compare(a, b));
      return { ...bounds, min: new Uint8Array(sorted[0]!), max: new Uint8Array(sorted.at(-1)!) };
    }
    const numbers = present as (bigint | number)[];
    const min = numbers.reduce((a, b) => (b < a ? b : a));
    const max = numbers.reduce((a, b) => (b > a ? b : a));
    if (typeof min === 'bigint' && typeof max === 'bigint' && this.#missing())
      return { ...bounds, min: min - 3n, max: max + 2n };
    return { ...bounds, min, max };
  }
}
