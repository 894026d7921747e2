import type { Column } from '../columns/column.js';
import { selectRows, type SelectedRows } from '../scan/selected-rows.js';
import type { Predicate } from '../terms/predicate.js';
import { columnOfField } from '../store/far/far-sql.js';
import { fieldColumn, nativeBlock, unsignedColumn } from '../store/far/native-writer.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { positionToInt64, type Position } from '../terms/cursor.js';
import { farAnswerBytes } from '../terms/far-limits.js';
import { rowGroupRowsMax } from '../terms/limits.js';
import type { Schema } from '../terms/schema.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** A reader's request for the matching rows between two positions. `direction` says from which end the writer begins. */
export interface RowsQuestion {
  /** The first position of the range. Both `from` and `to` are included. */
  readonly from: Position;
  readonly to: Position;
  readonly direction: 'forward' | 'backward';
  /** Rows at most. A value above `rowGroupRowsMax` counts as `rowGroupRowsMax`. */
  readonly limit: number;
  readonly predicates: readonly Predicate[];
  /** Indexes of the requested fields in the schema, ascending. */
  readonly fields: readonly number[];
}

/** The first (forward) or last (backward) matching rows, in ClickHouse's `Native` format. They ascend in both directions. */
export interface RowsAnswer {
  readonly bytes: Uint8Array;
  /** Whether the range may have more matching rows, beyond these in the direction of the request. */
  readonly isCut: boolean;
}

/** Some rows of an answer, as one `Native` block. */
interface Block {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/**
 * Answers a reader's request for rows. An answer has a limit of bytes and rows; the reader sends another request for the rest.
 * The writer reads the rows from its own files or from the far tier, wherever they are by now.
 */
export async function rowsBetween(
  takeSnapshot: () => Promise<Snapshot>,
  question: RowsQuestion,
  schema: Schema,
  settings: { readonly signal?: AbortSignal | undefined; readonly workers?: WorkerPool | undefined },
): Promise<RowsAnswer> {
  const { from, to, direction, predicates, fields } = question;
  const limit = Math.min(question.limit, rowGroupRowsMax);
  const isForward = direction === 'forward';
  const query = {
    after: { partition: from.partition, ordinal: from.ordinal - 1 },
    before: { partition: to.partition, ordinal: to.ordinal + 1 },
    limit,
    predicates,
    form: { format: 'jsonl' as const, fields },
    ...(isForward ? {} : { last: true as const }),
  };
  const kept: Block[] = [];
  let bytes = 0;
  let rows = 0;
  let isCut = false;
  for await (const selected of selectRows(takeSnapshot, query, settings)) {
    for (const block of blocksOf(selected, fields, schema)) {
      // When an answer is full, the rows nearest to the end that the request begins at are kept.
      if (isForward && bytes >= farAnswerBytes) isCut = true;
      else {
        kept.push(block);
        bytes += block.bytes.length;
        rows += block.rows;
      }
    }
    while (!isForward && kept.length > 1 && bytes - kept[0]!.bytes.length >= farAnswerBytes) {
      const gone = kept.shift()!;
      bytes -= gone.bytes.length;
      rows -= gone.rows;
      isCut = true;
    }
    if (isCut && isForward) break;
  }
  return { bytes: Buffer.concat(kept.map((block) => block.bytes)), isCut: isCut || rows >= limit };
}

/** Encodes the rows as blocks of at most about a quarter of an answer each, estimated by the average size of a row. */
function* blocksOf(
  { batch, runs }: SelectedRows,
  fields: readonly number[],
  schema: Schema,
): Generator<Block> {
  const cursors = new BigUint64Array(batch.length);
  for (const { partition, firstOrdinal, firstRow, rows } of runs) {
    const first = BigInt.asUintN(64, positionToInt64({ partition, ordinal: firstOrdinal }));
    for (let i = 0; i < rows; i++) cursors[firstRow + i] = first + BigInt(i);
  }
  const rowBytes = Math.max(
    1,
    batch.columns.reduce((sum, column) => sum + bytesOf(column), 0) / batch.length,
  );
  const blockRows = Math.max(1, Math.floor(farAnswerBytes / 4 / rowBytes));
  for (let from = 0; from < batch.length; from += blockRows) {
    const to = Math.min(batch.length, from + blockRows);
    const columns = fields.map((field, i) => {
      const { type } = schema.fields[field]!;
      return fieldColumn(columnOfField(schema.fields[field]!), type, batch.columns[i]!, from, to);
    });
    const positions = unsignedColumn('_cursor', cursors.slice(from, to));
    yield { bytes: nativeBlock([positions, ...columns], to - from), rows: to - from };
  }
}

function bytesOf(column: Column): number {
  switch (column.kind) {
    case 'dictionary': {
      const { values, length } = column;
      return (bytesOf(values) / Math.max(1, values.length)) * length;
    }
    case 'bytes':
      return column.offsets.at(-1)! - column.offsets[0]!;
    case 'int64':
    case 'float64':
      return column.values.byteLength;
  }
}
