import type { Column } from '../columns/column.js';
import type { ReadCounters } from '../store/reading/read-counters.js';
import type { HeldColumns, RowGroup } from '../store/reading/snapshot.js';

/** All columns of a row group with `fields` fields. Decodes one at a time, so that only one needs decoding memory, and waits for none. */
export async function allColumns(
  rowGroup: RowGroup,
  fields: number,
  counters: ReadCounters,
): Promise<HeldColumns> {
  const open = await rowGroup.open();
  const columns: Column[] = [];
  const releases: (() => void)[] = [];
  const release = (): void => releases.forEach((each) => each());
  try {
    for (let field = 0; field < fields; field++) {
      const held = await open.columns([field], counters, { use: 'once', neverWaits: true });
      columns.push(...held.columns);
      releases.push(() => held.release());
    }
  } catch (error) {
    release();
    throw error;
  }
  return { columns, release };
}
