import { columnBytes, type Column, type PlainColumn, sharedLayout } from '../columns/column.js';
import type { ZoneMap } from '../columns/zone-map.js';
import { andRange, bitmapBytes, setRange } from '../kernels/bitmap.js';
import type { CountedRows } from '../kernels/count.js';
import { sharedMemory } from '../core/shared-memory.js';
import type { OpenRowGroup } from '../store/reading/snapshot.js';
import { countBucketsMax, countCellsMax, countPairsOfRowGroupMax } from '../core/limits.js';
import type { Schema } from '../core/schema.js';
import type { NumberField } from '../numbers/group-numbers.js';
import type { NumbersWanted } from '../numbers/number-functions.js';
import type { ScanWork } from './row-group-filter.js';
import { areFew, countRows, type RowCounts, type RowsToCount } from './row-counts.js';
import { countsTask } from './row-group-task.js';
import { lackedField, type CountQuery, type TimeBucket } from './count-query.js';
import type { JobQueue } from '../workers/job-queue.js';
import type { ScanUnit } from './plan.js';
import type { Selection } from './selection.js';
import type { Tally } from './tally.js';
import { bucketOfTime, bucketsBetween, bucketsOfRows } from './time-ranges.js';
import { knownValues } from './value-bytes.js';

/** The counted rows of a row group, and what has to be read to count them. */
export interface RowGroupCount extends TimesOfGroup, ValuesOfGroup {
  readonly open: OpenRowGroup;
  /** The fields whose numbers are wanted; null in place of one that no row has. */
  readonly numbers: readonly (number | null)[];
  /** The fields that are read. */
  readonly fields: readonly number[];
  readonly counted: CountedRows;
  /** Number of rows that are counted. */
  readonly count: number;
}

interface TimesOfGroup {
  readonly readsTime: boolean;
  /**
   * The buckets that the times may be in, ascending; null where they are too many or not known. Where the column need not be read, all rows
   * are in the only bucket, or no row has a time if there is none.
   */
  readonly buckets: readonly TimeBucket[] | null;
}

interface ValuesOfGroup {
  readonly readsValue: boolean;
  /** Where the column need not be read: the value of all rows, as a column of one row; null where no row has a value. */
  readonly value: PlainColumn | null;
}

/** Finds out what the zone maps of a row group tell. Reads no columns. */
export function rowGroupCount(
  query: CountQuery,
  schema: Schema,
  open: OpenRowGroup,
  unit: ScanUnit,
  selection: Selection,
  count: number,
  hasNumbers: boolean,
): RowGroupCount {
  const times = timesOf(query, open);
  const values = valuesOf(query, schema, open);
  const asked = hasNumbers ? query.numbers!.fields : [];
  const numbers = asked.map((field) => (isLacked(field, open) ? null : field));
  const fields = [
    ...(times.readsTime ? [query.time!.field] : []),
    ...(values.readsValue ? [query.values!.field] : []),
    ...numbers.filter((field) => field !== null),
  ];
  const read = [...new Set(fields)];
  return { open, numbers, fields: read, counted: countedRows(unit, selection), count, ...times, ...values };
}

/**
 * Counts the rows of a row group into a tally, here or, where their columns are in shared memory, on a thread. Returns the bytes of the
 * columns, as a measure of the work; `Infinity` where it was long.
 *
 * @param turn the counts are added after it
 */
export async function countRowGroup(
  query: CountQuery,
  group: RowGroupCount,
  tally: Tally,
  { pace, stats, threads }: ScanWork,
  isInline: boolean,
  turn: Promise<void>,
): Promise<number> {
  const { columns, release } = await group.open.columns(group.fields, stats, { signal: pace.signal });
  try {
    await pace.pause();
    const columnOf = (field: number): Column => columns[group.fields.indexOf(field)]!;
    const time = group.readsTime ? columnOf(query.time!.field) : null;
    // A second pass only counts the values of its tally.
    const isAgain = tally.first !== null;
    const read = group.readsValue ? columnOf(query.values!.field) : null;
    const value = read !== null && isAgain ? knownValues(read, tally.values!) : read;
    // Where the zone maps did not tell the buckets, the time column does. A second pass knows which of them have rows.
    const found = group.buckets ?? bucketsOfRows(query.time!.buckets, time!, group.counted);
    const buckets = isAgain ? found.filter(({ from }) => tally.first!.bucketFrom(from) !== undefined) : found;
    const pairsMax = isAgain ? countCellsMax : countPairsOfRowGroupMax;
    const job: RowsToCount = {
      counted: group.counted,
      count: group.count,
      time,
      starts: BigInt64Array.from(buckets, ({ from }) => BigInt(from)),
      value,
      hasOneValue: group.value !== null,
      pairsMax: tally.cells.isFull ? 0 : pairsMax,
      numbers: numberFields(group, tally.numbers?.wanted, columnOf),
    };
    const counts = isInline || threads === null ? countRows(job) : await countThere(job, threads);
    await turn;
    tally.add(buckets, value?.kind === 'dictionary' ? value.values : (value ?? group.value), counts);
    return isLong(job) ? Infinity : columns.reduce((sum, column) => sum + columnBytes(column), 0);
  } finally {
    release();
  }
}

function numberFields(
  { numbers }: RowGroupCount,
  wanted: NumbersWanted | undefined,
  columnOf: (field: number) => Column,
): NumberField[] {
  if (wanted === undefined) return [];
  return numbers.map((field) => ({ column: field === null ? null : columnOf(field), wanted }));
}

/** Has a thread count, where it can read the columns in place. */
async function countThere(job: RowsToCount, threads: JobQueue): Promise<RowCounts> {
  const columns = [job.time, job.value, ...job.numbers.map(({ column }) => column)];
  const layouts = columns.map((column) => column && sharedLayout(column));
  if (layouts.some((layout, i) => layout === null && columns[i] !== null)) return countRows(job);
  const memoryBytes = sharedMemory().buffer.byteLength;
  const [time = null, value = null] = layouts;
  const numbers = job.numbers.map(({ wanted }, i) => ({ column: layouts[2 + i]!, wanted }));
  const counting = threads.run(countsTask, { ...job, time, value, numbers, memoryBytes });
  threads.track(counting);
  return counting;
}

/** Whether counting takes long enough for another thread: the values of many rows without a dictionary have to be numbered first. */
function isLong({ value, count }: RowsToCount): boolean {
  return value !== null && value.kind !== 'dictionary' && !areFew(count, value);
}

function timesOf({ time }: CountQuery, open: OpenRowGroup): TimesOfGroup {
  if (time === undefined || isLacked(time.field, open)) return { readsTime: false, buckets: [] };
  const zone = open.zone(time.field);
  if (typeof zone?.min !== 'bigint' || typeof zone.max !== 'bigint')
    return { readsTime: true, buckets: null };
  const first = bucketOfTime(time.buckets, zone.min);
  if (zone.nullCount === 0 && BigInt(first.until) > zone.max) return { readsTime: false, buckets: [first] };
  return { readsTime: true, buckets: bucketsBetween(time.buckets, zone.min, zone.max, countBucketsMax) };
}

function valuesOf({ values }: CountQuery, schema: Schema, open: OpenRowGroup): ValuesOfGroup {
  if (values === undefined || isLacked(values.field, open)) return { readsValue: false, value: null };
  const zone = open.zone(values.field);
  // Files of other programs may have NaN and infinite floats, which become null here. Their bounds and null counts don't include these.
  const isKnown = zone?.nullCount === 0 && schema.fields[values.field]!.type !== 'float';
  const value = isKnown ? onlyValue(zone) : null;
  return { readsValue: value === null, value };
}

/** The value that all rows have, as a column of one row; null where the bounds differ. */
function onlyValue({ min, max }: ZoneMap): PlainColumn | null {
  const one = { length: 1, validity: null };
  if (typeof min === 'bigint' && min === max) return { kind: 'int64', ...one, values: BigInt64Array.of(min) };
  if (!(min instanceof Uint8Array && max instanceof Uint8Array && Buffer.compare(min, max) === 0))
    return null;
  return { kind: 'bytes', ...one, bytes: min, offsets: Uint32Array.of(0, min.length) };
}

/** Whether no row has a value. */
function isLacked(field: number, open: OpenRowGroup): boolean {
  const zone = field === lackedField ? null : open.zone(field);
  return field === lackedField || (zone !== null && zone.nullCount === zone.rows);
}

/** The selected rows of the ranges as a bitmap. */
function countedRows({ rowGroup, ranges }: ScanUnit, selection: Selection): CountedRows {
  let from = rowGroup.rows;
  let to = 0;
  let rows = 0;
  for (const range of ranges) {
    from = Math.min(from, range.firstRow);
    to = Math.max(to, range.firstRow + range.rows);
    rows += range.rows;
  }
  if (selection.kind === 'bits' && rows === to - from) return { bits: selection.bits, from, to };
  const bits = new Uint8Array(bitmapBytes(rowGroup.rows));
  for (const { firstRow, rows: each } of ranges) setRange(bits, firstRow, firstRow + each);
  if (selection.kind !== 'all') andRange(bits, bitmapOf(selection, rowGroup.rows), from & ~7, to);
  return { bits, from, to };
}

function bitmapOf(selection: Selection, rows: number): Uint8Array {
  if (selection.kind === 'bits') return selection.bits;
  const bits = new Uint8Array(bitmapBytes(rows));
  if (selection.kind === 'rows') for (const row of selection.rows) bits[row >> 3]! |= 1 << (row & 7);
  return bits;
}
