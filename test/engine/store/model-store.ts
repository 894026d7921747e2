import { type Position, comparePositions } from '../../../engine/core/cursor.js';
import { placementField, type Schema } from '../../../engine/core/schema.js';
import type { Dataset, ModelRecord, Value } from '../../model/dataset.js';

const hour = 3_600_000;

/** The placement rules in the simplest form: the records that a store should hold after a series of commits. */
export class ModelStore implements Dataset {
  records: ModelRecord[] = [];
  private readonly next = new Map<number, number>();
  private highest = 0;

  constructor(readonly schema: Schema) {}

  copy(): ModelStore {
    const copy = new ModelStore(this.schema);
    copy.records = [...this.records];
    for (const [partition, ordinal] of this.next) copy.next.set(partition, ordinal);
    copy.highest = this.highest;
    return copy;
  }

  /** One load: rows in the order of their source. */
  load(rows: readonly (readonly Value[])[], now: number): void {
    const timed = this.times(rows, now);
    timed.sort((a, b) => a.time - b.time);
    for (const { time, row } of timed) this.add(Math.max(1, Math.floor(time / hour)), row);
    this.settle();
  }

  /** One batch of live collection. */
  live(rows: readonly (readonly Value[])[], now: number, grace: number): void {
    const w = this.highest;
    const placed = this.times(rows, now).map(({ time, row }) => {
      const own = Math.max(1, Math.floor(time / hour));
      const late = time <= Math.min(now, w * hour) - grace;
      return { partition: own >= w || late ? own : w, row };
    });
    for (const { partition, row } of placed.sort((a, b) => a.partition - b.partition))
      this.add(partition, row);
    this.settle();
  }

  /** Removes records; their positions are not given again. */
  remove(isRemoved: (record: ModelRecord) => boolean): void {
    this.records = this.records.filter((record) => !isRemoved(record));
  }

  private times(rows: readonly (readonly Value[])[], now: number): { time: number; row: readonly Value[] }[] {
    const field = placementField(this.schema);
    let previous = now;
    return rows.map((row) => {
      const value = field < 0 ? null : row[field]!;
      if (value !== null) previous = Math.min(now, Math.max(1, Number(value)));
      else if (field < 0) previous = now;
      return { time: previous, row };
    });
  }

  private add(partition: number, values: readonly Value[]): void {
    const ordinal = this.next.get(partition) ?? 1;
    this.next.set(partition, ordinal + 1);
    this.records.push({ position: { partition, ordinal }, values });
  }

  private settle(): void {
    this.records.sort((a, b) => comparePositions(a.position, b.position));
    this.highest = Math.max(this.highest, this.records.at(-1)?.position.partition ?? 0);
  }

  positions(): Position[] {
    return this.records.map(({ position }) => position);
  }
}
