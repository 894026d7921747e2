import { positionToInt64 } from '../../engine/core/cursor.js';
import { wholeBatches } from '../../engine/columns/take.js';
import type { Value } from '../model/rows.js';
import { heap } from '../../engine/core/arena.js';
import type { Column, RecordBatch } from '../../engine/columns/column.js';
import type { Schema } from '../../engine/core/schema.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { copyColumn } from '../../engine/columns/convert-column.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import type { Run, SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { SealedSegment } from '../../engine/store/reading/sealed-segment.js';
import { SegmentWriter } from '../../engine/store/sealed/sealed-segment-writer.js';
import type { OpenRowGroup, RowGroup } from '../../engine/store/reading/snapshot.js';
import type { Codec } from '../../engine/parquet/compression.js';
import { newReadCounters, type ReadCounters } from '../../engine/store/reading/read-counters.js';
import { allMembers, preparePredicates } from '../../engine/scan/predicate.js';
import type { Predicate } from '../../engine/scan/query.js';
import { SegmentRulings, ruling, type Ruling } from '../../engine/store/sealed/segment-rulings.js';
import type { FilterQuestion } from '../../engine/store/sealed/filter-question.js';

/** The hour of 2026-01-01T00:00Z. */
export const samplePartition = 490896;

/** Runs that cover `rows` rows, a few in each partition, with gaps between the ordinals. */
export function sampleRuns(rows: number, runRows = 1000): Run[] {
  const runs: Run[] = [];
  for (let firstRow = 0; firstRow < rows; firstRow += runRows) {
    const partition = samplePartition + Math.floor(runs.length / 3);
    const firstOrdinal = 1 + (runs.length % 3) * (runRows + 7);
    runs.push({ partition, firstOrdinal, firstRow, rows: Math.min(runRows, rows - firstRow) });
  }
  return runs;
}

/** Seals batches, one row group each, as the file `path`, with the given `runs` or sample positions. */
export async function sealBatches(
  directory: Directory,
  path: string,
  schema: Schema,
  batches: readonly RecordBatch[],
  codec: Codec,
  runs?: readonly Run[],
): Promise<SegmentEntry> {
  const writer = await SegmentWriter.create(directory, path, schema, { codec });
  let rows = 0;
  for (const batch of batches) {
    await writer.appendRowGroup(wholeBatches([batch]));
    rows += batch.length;
  }
  const written = await writer.finish(runs ?? sampleRuns(rows), 1);
  return { ...written, file: path, schemaVersion: 1, replaces: [] };
}

export async function openSegment(
  directory: Directory,
  entry: SegmentEntry,
  schema: Schema,
  pool = new BufferPool(1 << 28),
): Promise<SealedSegment> {
  return new SealedSegment(directory, entry.file, entry, schema, pool);
}

export const noReads = newReadCounters;

/** The questions that one predicate of a query puts to filters. */
export function questionsOf(schema: Schema, predicate: Predicate): FilterQuestion[] {
  const { clauses } = preparePredicates({ limit: 1, predicates: [predicate] }, schema);
  return clauses
    .flatMap(allMembers)
    .flatMap(({ field, asked }) => (asked.length === 0 ? [] : [{ field, asked, concludes: 1 }]));
}

/** The verdict of the filters of a row group that were not used before. */
export async function rulingOf(
  { filters, index }: RowGroup,
  questions: readonly FilterQuestion[],
  counters = noReads(),
): Promise<Ruling> {
  const rulings = new SegmentRulings(filters.rowGroups, questions.length);
  rulings.set(index, ruling.mayMatch);
  await filters.ask({ rowGroups: [index], rulings, questions, threads: null, counters });
  if (rulings.failure !== undefined) throw rulings.failure as Error;
  return rulings.of(index);
}

/** Whether a row group may contain a folded text, according to its gram filters. */
export async function mayContain(
  rowGroup: RowGroup,
  field: number,
  folded: Uint8Array,
  counters = noReads(),
): Promise<boolean> {
  const question = { field, asked: [{ hash: null, shortHash: null, folded }], concludes: 1 };
  return (await rulingOf(rowGroup, [question], counters)) === ruling.mayMatch;
}

/** The whole content of a file. */
export async function fileBytes(directory: Directory, path: string): Promise<Uint8Array> {
  const file = await directory.openRead(path);
  try {
    return await file.read(0, await file.size());
  } finally {
    await file.close();
  }
}

/** The positions of the rows, in the form of the `_cursor` column. */
export function cursorsOf(runs: readonly Run[]): bigint[] {
  return runs.flatMap((run) =>
    Array.from({ length: run.rows }, (_, i) =>
      positionToInt64({ partition: run.partition, ordinal: run.firstOrdinal + i }),
    ),
  );
}

/** Every type, with and without nulls, in repeating and distinct values. */
export const mixedSchema: Schema = {
  fields: [
    { name: 'time', type: 'time' },
    { name: 'level', type: 'string' },
    { name: 'path', type: 'string' },
    { name: 'message', type: 'string', index: true },
    { name: 'duration', type: 'float' },
    { name: 'status', type: 'int' },
    { name: 'serial', type: 'int' },
    { name: 'ratio', type: 'float' },
    { name: 'nothing', type: 'string' },
    { name: 'no_number', type: 'int' },
    { name: 'seldom', type: 'time' },
    { name: 'same', type: 'string' },
  ],
};

const levels = ['INFO', 'WARN', '', 'ERROR', 'żółć', '日本語😀'];

/** Deterministic rows for `mixedSchema`. */
export function mixedRows(rows: number, seed = 1): Value[][] {
  let state = seed;
  const random = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x80000000;
  };
  return Array.from({ length: rows }, (_, i) => [
    1767225600000 + i * 7 + Math.floor(random() * 50),
    levels[Math.floor(random() * 6)]!,
    `/api/v1/items/${Math.floor(random() * 300)}`,
    random() < 0.05
      ? ''
      : `msg ${i} żó 😀 ${'x'.repeat(random() * 40)}\u0000${Math.floor(random() * 1e9).toString(16)}`,
    Math.round(random() * 1e5) / 1000,
    random() < 0.3 ? null : [200, 404, 500][Math.floor(random() * 3)]!,
    BigInt(Math.floor((random() - 0.5) * 2 ** 52)) * 1000n,
    random() < 0.1 ? null : -random(),
    null,
    null,
    i % 5 === 0 ? null : 1767225600000 - i,
    'same',
  ]);
}

/** One column as it was read, with arrays of its own. */
export async function columnOf(
  open: OpenRowGroup,
  field: number,
  counters: ReadCounters = noReads(),
): Promise<Column> {
  const { columns, release } = await open.columns([field], counters);
  try {
    return copyColumn(columns[0]!, heap);
  } finally {
    release();
  }
}
