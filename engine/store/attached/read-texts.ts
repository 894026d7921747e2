import { setImmediate } from 'node:timers/promises';
import { isValid, type PlainColumn } from '../../columns/column.js';
import type { Field } from '../../core/schema.js';
import type { ObjectStorage } from '../../objects/object-storage.js';
import { GuardedThread } from '../../workers/guarded-thread.js';
import type { FileStamp } from './plan-file.js';
import { ForeignWork } from './foreign-work.js';
import { readRows } from './read-rows.js';

/** After so many rows, others get their turn. */
const pauseRows = 5000;

/**
 * Reads columns of a Parquet file as texts, those of nested columns as JSON; all null where the file has no such column. `take` gets the
 * values of one row at a time. Throws as `readRows` does.
 */
export async function readTextRows(
  { path, ...stamp }: FileStamp & { readonly path: string },
  columns: readonly string[],
  objects: ObjectStorage | undefined,
  take: (values: readonly (string | null)[]) => void,
): Promise<void> {
  const guard = new GuardedThread();
  const work = new ForeignWork({ guard, objects }, async (task, job) => (await task.work(job)).result);
  const fields = columns.map((name): Field => ({ name, type: 'string' }));
  const object = stamp.etag === undefined ? {} : { object: stamp };
  const file = { path, format: 'parquet', constants: {}, ...object } as const;
  try {
    await readRows(file, { work, schema: { fields }, columnsAtOnce: 1 }, async ({ batch }) => {
      const texts = batch.columns.map((column) => textsOf(column as PlainColumn));
      for (let row = 0; row < batch.length; row++) {
        take(texts.map((textAt) => textAt(row)));
        if (row % pauseRows === 0) await setImmediate();
      }
    });
  } finally {
    await guard.close();
  }
}

const decoder = new TextDecoder();

function textsOf(column: PlainColumn): (row: number) => string | null {
  return (row) => {
    if (column.kind !== 'bytes' || !isValid(column.validity, row)) return null;
    return decoder.decode(column.bytes.subarray(column.offsets[row], column.offsets[row + 1]));
  };
}
