import { promises as fs } from 'node:fs';
import {
  type ForeignFile,
  type ForeignRead,
  isSameFooter,
  type ForeignFormat,
} from '../../foreign/foreign-file.js';
import { partitionOfTime } from '../../core/cursor.js';
import { LogstrataError, DamageError, isLogstrataError } from '../../core/errors.js';
import { foreignPartsMax, rowGroupRowsMax } from '../../core/limits.js';
import { placementField, type Field, type Schema } from '../../core/schema.js';
import type { FilePlan, FileToAttach, AttachedFile, FileIdentity } from './attached-list.js';
import { chunkOf, columnSource, type ColumnSource, type ValueChange } from './column-source.js';
import type { ForeignVersion, ForeignWork } from './foreign-work.js';
import { placeTask, type PlacedSpans, type PlaceJob, type SpanHours } from './import-tasks.js';
import { columnRead, encodePlacements, type SpanPlacement, spansOfFile } from './span-placements.js';
import { readForeignFile } from '../../foreign/read-foreign.js';
import { fileSystemError, problemOfKind } from '../disk/directory.js';
import type { ObjectStorage } from '../../objects/object-storage.js';

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
  toAttach: FileToAttach,
  stamp: FileStamp,
  file: ForeignFile,
  schema: Schema,
  nowMs: number,
  work: ForeignWork,
): Promise<FilePlacement & Pick<FilePlan, 'placedBy'>> {
  const { path, format } = toAttach;
  const place = placementField(schema);
  if (place < 0) return { ...allAt(nowMs, file), placedBy: null };
  const field = schema.fields[place]!;
  const source = placingSource(toAttach, field, file);
  const reads = file.rowGroups.map((_, rowGroup) => columnRead({ path, format }, file, source, rowGroup));
  const placement = await placeAll(reads, source.change, nowMs, { path, ...stamp }, work);
  const { format: texts } = source.change;
  const hasTexts = file.rowGroups.some((group) => chunkOf(group, source).nullCount !== group.rows);
  if (placement.timeMinMs === null && texts !== null && hasTexts) {
    const { name } = source.column;
    throw invalid(path, `has no text in column "${name}" that is a time of the format ${texts.format}`);
  }
  const placedBy = {
    column: field.attached?.column ?? field.name,
    ...(field.attached?.unit === undefined ? {} : { unit: field.attached.unit }),
    ...(field.attached?.format === undefined ? {} : source.change.format),
  };
  return { ...placement, placedBy };
}

/** The column that places the rows of a file. Throws `invalid` if there is none that can. */
export function placingSource(
  { path, constants, renamed }: FileToAttach,
  field: Field,
  file: ForeignFile,
): ColumnSource & { readonly kind: 'column' } {
  const source = columnSource(field, file, { constants, renamed });
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
        ? 'only times and numbers can order records, and texts with a format (timestamp: { format: rfc3339 })'
        : 'give the unit of its numbers (unit: s, ms, us or ns)';
    throw invalid(path, `has no times in column "${name}" (${column.stored}): ${wanted}`);
  }
  return source;
}

type FilePlacement = Pick<FilePlan, 'hours' | 'placements' | 'timeMinMs' | 'timeMaxMs'>;

/** Reads the column that places rows, some row groups at a time. */
async function placeAll(
  readings: readonly ForeignRead[],
  change: ValueChange,
  nowMs: number,
  file: ForeignVersion,
  work: ForeignWork,
): Promise<FilePlacement> {
  const spans: SpanHours[] = [];
  const mins: number[] = [];
  const maxs: number[] = [];
  let previousMs: number | null = null;
  for (const reads of portionsOf(readings)) {
    const job: PlaceJob = { reads, change, nowMs, previousMs };
    const placed: PlacedSpans = await work.read(
      placeTask,
      (place) => ({ ...job, reads: reads.map((read) => ({ ...read, ...place })) }),
      { file, column: reads[0]!.column, reads },
    );
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

/** Divides the readings of row groups into consecutive portions, one for each task. */
function portionsOf(reads: readonly ForeignRead[]): ForeignRead[][] {
  const portions: ForeignRead[][] = [];
  let rowsLeft = 0;
  for (const read of reads) {
    if (rowsLeft <= 0) {
      portions.push([]);
      rowsLeft = portionRows;
    }
    portions.at(-1)!.push(read);
    rowsLeft -= read.rowGroupRows;
  }
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

/** The attributes by which a change of a file is detected. An object also has an ETag. */
export type FileStamp = Pick<FileIdentity, 'bytes' | 'mtimeMs' | 'etag'>;

/** Size and modification time of a file, in whole milliseconds. Throws `not_found` and `io`, and `damaged` for anything but a regular file. */
export async function fileStamp(path: string): Promise<FileStamp> {
  try {
    const stats = await fs.stat(path);
    const problem = problemOfKind(stats);
    if (problem !== undefined) throw new DamageError(`cannot read ${path}: ${problem}`, { path });
    return { bytes: stats.size, mtimeMs: Math.floor(stats.mtimeMs) };
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
}

/**
 * Throws `damaged` unless the file exists and is the one that was attached. A copy with another modification time passes. An object is not
 * checked, because only the attached version of it is ever read.
 */
export async function assertSameFile(
  path: string,
  format: ForeignFormat,
  attached: FileIdentity,
): Promise<void> {
  if (attached.etag !== undefined) return;
  const { bytes, mtimeMs } = await present(path, () => fileStamp(path));
  if (bytes === attached.bytes && mtimeMs === attached.mtimeMs) return;
  const isSame =
    bytes === attached.bytes &&
    isSameFooter((await present(path, () => readForeignFile(path, format))).footerHash, attached.footerHash);
  if (isSame) return;
  throw new DamageError(
    `${path} has changed since it was attached: it had ${attached.bytes} bytes, last changed at ` +
      `${timeText(attached.mtimeMs)}; now it has ${bytes}, last changed at ${timeText(mtimeMs)}. ` +
      'Restore the earlier file, or attach the changed one (archive: changed: replace)',
    { path },
  );
}

/** Throws `damaged` unless an object exists and has the version that was attached; `io` if the storage cannot be asked. */
export async function assertSameObject(
  { path, etag }: AttachedFile,
  objects: ObjectStorage | undefined,
): Promise<void> {
  if (objects === undefined)
    throw new LogstrataError('invalid', `cannot look at ${path}: no object storage is open`, { path });
  const stamp = await present(path, () => objects.stamp(path));
  if (stamp.etag === etag) return;
  throw new DamageError(
    `${path} has changed since it was attached: its ETag was ${etag}, and is ${stamp.etag}. If it has the same rows, the next ` +
      'check of the archive accepts it; otherwise restore the earlier object, or attach the changed one ' +
      '(archive: changed: replace)',
    { path },
  );
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** Converts `not_found` to damage, because rows of the file are needed. */
async function present<T>(path: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    throw new DamageError(
      `${path} is attached but does not exist any more: restore it, or give up its records (archive: missing: retire)`,
      { path, cause: error },
    );
  }
}
