import { comparePositions, partitionOfTime } from '../../engine/core/cursor.js';
import type { Schema } from '../../engine/core/schema.js';
import type { Dataset, ModelRecord, Value } from '../model/dataset.js';

/** A row of a file; its first value is the time that places it. */
export type Row = readonly Value[];

/** Where the placement rules put the rows of files that are attached one after another while the clock is at `nowMs`. */
export function placed(schema: Schema, files: readonly (readonly Row[])[], nowMs: number): Dataset {
  const next = new Map<number, number>();
  const records: ModelRecord[] = [];
  for (const rows of files) {
    let previous = nowMs;
    for (const values of rows) {
      const [time] = values;
      if (time !== null) previous = Math.min(nowMs, Math.max(1, Number(time)));
      const partition = partitionOfTime(previous);
      const ordinal = next.get(partition) ?? 1;
      next.set(partition, ordinal + 1);
      records.push({ position: { partition, ordinal }, values });
    }
  }
  records.sort((a, b) => comparePositions(a.position, b.position));
  return { schema, records };
}
