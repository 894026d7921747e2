import type { ForeignFile, ForeignRowGroup } from '../../foreign/foreign-file.js';
import { partitionOfTime } from '../../terms/cursor.js';
import { LogstrataError } from '../../terms/errors.js';
import { foreignPartsMax, rowGroupRowsMax } from '../../terms/limits.js';
import { placementField, type Field, type Schema } from '../../terms/schema.js';
import type { FilePlan, FileToAttach } from './attached-file.js';
import { columnSource, type ColumnSource } from './column-source.js';
import type { ForeignVersion, ForeignWork } from './foreign-work.js';
import {
  placeTask,
  readOf,
  type PlacedRowGroup,
  type PlacedSpans,
  type PlaceJob,
  type SpanHours,
} from './place-task.js';
import { encodePlacements, type SpanPlacement } from './span-placements.js';
import { fileStamp, type FileStamp } from './same-file.js';
import { spansOfFile } from './spans.js';

/** Number of rows that a thread places in one task, so that other tasks can run in between. */
const portionRows = 2_000_000;

/**
 * Reads what is needed to assign positions to a file's rows: its footer, and the column that places them.
 *
 * @param nowMs the clock, by which rows without a readable time, and rows with times in the future, are placed
 * @throws DamageError for a malformed file; `invalid` if the column cannot place rows, `conflict` if the file changes meanwhile,
 * `unsupported`, `not_found` and `io`
 */
export async function planFile(
  file: FileToAttach,
  schema: Schema,
  nowMs: number,
  work: ForeignWork,
): Promise<FilePlan> {
  const { path, format, object, ...rest } = file;
  const before = object ?? (await fileStamp(path));
  const described = await work.describe({ path, ...before }, format);
  assertAnswerable(path, described);
  const placement = await placeRows(file, before, described, schema, nowMs, work);
  // All reads of an object are of one version, so it need not be checked again.
  const after = object ?? (await fileStamp(path));
  if (before.bytes !== after.bytes || before.mtimeMs !== after.mtimeMs)
    throw new LogstrataError('conflict', `${path} changes while it is read`, { path });
  const rowGroupRows = described.rowGroups.map(({ rows }) => rows);
  return {
    path,
    format,
    ...rest,
    ...after,
    footerHash: described.footerHash,
    rowGroupRows,
    nowMs,
    ...placement,
  };
}

async function placeRows(
  { path, format, constants }: FileToAttach,
  stamp: FileStamp,
  file: ForeignFile,
  schema: Schema,
  nowMs: number,
  work: ForeignWork,
): Promise<FilePlacement & Pick<FilePlan, 'placedBy'>> {
  const place = placementField(schema);
  if (place < 0) return { ...allAt(nowMs, file), placedBy: null };
  const field = schema.fields[place]!;
  const { column, columnIndex, change } = placingSource(path, field, file, constants);
  const from = { path, format, columnIndex, column, change, nowMs };
  const placement = await placeAll(from, { path, ...stamp }, file, work);
  const placedBy = {
    column: field.attached?.column ?? field.name,
    ...(field.attached?.unit === undefined ? {} : { unit: field.attached.unit }),
  };
  return { ...placement, placedBy };
}

/** The column that places the rows of a file. Throws `invalid` if there is none that can. */
export function placingSource(
  path: string,
  field: Field,
  file: ForeignFile,
  constants: FileToAttach['constants'],
): ColumnSource & { readonly kind: 'column' } {
  const source = columnSource(field, file, constants);
  const name = field.attached?.column ?? field.name;
  if (source.kind !== 'column') {
    const what = Object.hasOwn(constants, name)
      ? `reads "${name}" from the name of its folder, which can't order records`
      : `has no column "${name}"`;
    throw invalid(path, `${what}, whose times the field "${field.name}" and the order of the records need`);
  }
  const { column, change } = source;
  if (change.unit === null && change.conversion !== 'none') {
    const wanted =
      column.type === 'string'
        ? 'only times and numbers can order records'
        : 'give the unit of its numbers (unit: s, ms, us or ns)';
    throw invalid(path, `has no times in column "${name}" (${column.stored}): ${wanted}`);
  }
  return source;
}

type FilePlacement = Pick<FilePlan, 'hours' | 'placements' | 'timeMinMs' | 'timeMaxMs'>;

/** Reads the column that places rows, some row groups at a time. */
async function placeAll(
  from: Omit<PlaceJob, 'rowGroups' | 'previousMs'>,
  file: ForeignVersion,
  { rowGroups }: ForeignFile,
  work: ForeignWork,
): Promise<FilePlacement> {
  const spans: SpanHours[] = [];
  const mins: number[] = [];
  const maxs: number[] = [];
  let previousMs: number | null = null;
  for (const some of portionsOf(rowGroups, from.columnIndex)) {
    const job: PlaceJob = { ...from, rowGroups: some, previousMs };
    const reads = some.map((rowGroup) => readOf(job, rowGroup));
    const placed: PlacedSpans = await work.read(placeTask, (place) => ({ ...job, ...place }), {
      file,
      column: from.column,
      reads,
    });
    spans.push(...placed.spans);
    if (placed.timeMinMs !== null) mins.push(placed.timeMinMs);
    if (placed.timeMaxMs !== null) maxs.push(placed.timeMaxMs);
    previousMs = placed.lastMs;
  }
  return {
    ...placementOf(spans),
    timeMinMs: mins.length === 0 ? null : mins.reduce((a, b) => Math.min(a, b)),
    timeMaxMs: maxs.length === 0 ? null : maxs.reduce((a, b) => Math.max(a, b)),
  };
}

/** Divides row groups into consecutive portions, one for each task. */
function portionsOf(rowGroups: readonly ForeignRowGroup[], columnIndex: number): PlacedRowGroup[][] {
  const portions: PlacedRowGroup[][] = [];
  let rowsLeft = 0;
  rowGroups.forEach(({ rows, chunks }, rowGroup) => {
    if (rowsLeft <= 0) {
      portions.push([]);
      rowsLeft = portionRows;
    }
    portions.at(-1)!.push({ rowGroup, rows, chunk: chunks[columnIndex]! });
    rowsLeft -= rows;
  });
  return portions;
}

/** The hours of a file, and the number of rows of each span in each hour. */
function placementOf(spans: readonly SpanHours[]): Pick<FilePlan, 'hours' | 'placements'> {
  const sums = new Map<number, number>();
  for (const { rows } of spans)
    for (const [hour, count] of rows) sums.set(hour, (sums.get(hour) ?? 0) + count);
  const hours = [...sums].sort((a, b) => a[0] - b[0]);
  const indexes = new Map(hours.map(([hour], index) => [hour, index]));
  const placements = spans.map(({ isOrdered, previousMs, rows }): SpanPlacement => {
    const own = [...rows].map(([hour, count]) => ({ hour: indexes.get(hour)!, rows: count }));
    return { isOrdered, previousMs, hours: own.sort((a, b) => a.hour - b.hour) };
  });
  return { hours, placements: encodePlacements(placements) };
}

/** Throws `limit` if the footer of a file claims more rows than fit in memory, since each span takes memory. */
export function assertAnswerable(path: string, { rowGroups }: ForeignFile): void {
  const spans = rowGroups.reduce((sum, { rows }) => sum + Math.ceil(rows / rowGroupRowsMax), 0);
  if (spans <= foreignPartsMax) return;
  const rows = rowGroups.reduce((sum, group) => sum + group.rows, 0);
  const message = `${path} claims ${rows} rows in ${rowGroups.length} row groups, more than can be attached`;
  throw new LogstrataError('limit', message, { path });
}

function invalid(path: string, problem: string): LogstrataError {
  return new LogstrataError('invalid', `${path} ${problem}`, { path });
}

/** The placement of a file whose rows all go to the hour of `nowMs`. */
function allAt(nowMs: number, file: ForeignFile): FilePlacement {
  const hour = partitionOfTime(nowMs);
  const spans = spansOfFile(file.rowGroups.map(({ rows }) => rows)).map(({ from, to }) => ({
    isOrdered: true,
    previousMs: null,
    rows: new Map([[hour, to - from]]),
  }));
  return { ...placementOf(spans), timeMinMs: null, timeMaxMs: null };
}
