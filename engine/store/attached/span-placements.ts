import { addNumber } from './deleted-rows.js';
import { DamageError, assert } from '../../core/errors.js';
import type { Column } from '../../columns/column.js';
import type { ForeignFile, ForeignRead, RowSpan } from '../../foreign/foreign-file.js';
import { decodeForeign } from '../../foreign/read-foreign.js';
import { changeColumn, chunkOf, type ColumnSource, type ValueChange } from './column-source.js';
import { rowGroupRowsMax } from '../../core/limits.js';

/** The hours of the rows of one span. */
export interface SpanPlacement {
  /** Whether the rows are in order of their hours, and so in the order of their positions. */
  readonly isOrdered: boolean;
  /** Placement time (ms) of the row before the span, if the span's first row has no time of its own; else null. */
  readonly previousMs: number | null;
  /** The number of rows in each hour, ascending. `hour` is an index into the hours of the file. */
  readonly hours: HourCounts;
}

/** Number of rows in an hour. */
export interface HourRows {
  readonly hour: number;
  readonly rows: number;
}

/** The hours of a span, ascending. An array is a valid implementation. */
export interface HourCounts extends Iterable<HourRows> {
  readonly length: number;
  /** The hour at `index`; a negative index counts from the end. */
  at(index: number): HourRows | undefined;
}

/** From this many hours on a span is packed into a typed array; objects would take five times as much memory. */
const packedMin = 16;

/** Hours in a typed array. */
class PackedHours implements HourCounts {
  /** Pairs of hour and rows. */
  constructor(private readonly numbers: Uint32Array) {}

  get length(): number {
    return this.numbers.length / 2;
  }

  at(index: number): HourRows | undefined {
    const place = index < 0 ? this.length + index : index;
    if (place < 0 || place >= this.length) return undefined;
    return { hour: this.numbers[2 * place]!, rows: this.numbers[2 * place + 1]! };
  }

  *[Symbol.iterator](): Iterator<HourRows> {
    for (let i = 0; i < this.length; i++) yield this.at(i)!;
  }
}

function unpackedHours(numbers: Uint32Array): HourRows[] {
  return Array.from({ length: numbers.length / 2 }, (_, i) => ({
    hour: numbers[2 * i]!,
    rows: numbers[2 * i + 1]!,
  }));
}

const orderedFlag = 1;
const previousFlag = 2;

/**
 * Encodes placements as base64 of LEB128 numbers. For each span: flags, the previous time if there is one, the number of hours, and for
 * each hour the difference from the previous hour and its rows. A span with few hours takes about ten bytes.
 */
export function encodePlacements(placements: readonly SpanPlacement[]): string {
  const bytes: number[] = [];
  for (const { isOrdered, previousMs, hours } of placements) {
    bytes.push((isOrdered ? orderedFlag : 0) | (previousMs === null ? 0 : previousFlag));
    if (previousMs !== null) addNumber(bytes, previousMs);
    addNumber(bytes, hours.length);
    let last = 0;
    for (const { hour, rows } of hours) {
      addNumber(bytes, hour - last);
      addNumber(bytes, rows);
      last = hour;
    }
  }
  return Buffer.from(bytes).toString('base64');
}

/**
 * Decodes what `encodePlacements` has written.
 *
 * @param spanRows rows of each span
 * @param hours number of hours of the file
 * @throws DamageError for invalid content
 */
export function decodePlacements(text: string, spanRows: readonly number[], hours: number): SpanPlacement[] {
  const bytes = Buffer.from(text, 'base64');
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let factor = 1; at < bytes.length && factor < Number.MAX_SAFE_INTEGER; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128 && Number.isSafeInteger(value)) return value;
    }
    throw new DamageError('"placements" ends too early', {});
  };
  const placements = spanRows.map((rows): SpanPlacement => {
    const flags = next();
    const previousMs = (flags & previousFlag) === 0 ? null : next();
    const count = next();
    if (count > rows) throw new DamageError(`"placements" has ${count} hours for ${rows} rows`, {});
    let hour = 0;
    let sum = 0;
    const own = new Uint32Array(2 * count);
    for (let i = 0; i < count; i++) {
      const step = next();
      hour += step;
      const hourRows = next();
      sum += hourRows;
      if (hour >= hours || hourRows === 0 || (i > 0 && step === 0))
        throw new DamageError(`"placements" has ${hourRows} rows for hour ${hour} of ${hours}`, {});
      own[2 * i] = hour;
      own[2 * i + 1] = hourRows;
    }
    if (sum !== rows) throw new DamageError(`"placements" has ${sum} rows for ${rows}`, {});
    return {
      isOrdered: (flags & orderedFlag) !== 0,
      previousMs,
      hours: count < packedMin ? unpackedHours(own) : new PackedHours(own),
    };
  });
  if (at !== bytes.length) throw new DamageError('"placements" continues after the last span', {});
  return placements;
}

/** The values of a column in all spans of a row group. */
export interface AllSpans {
  /** By span. */
  readonly columns: readonly Column[];
  /** crc32 of the column chunk's bytes; null if they were not read in one pass. */
  readonly checksum: number | null;
}

/** Reads a column in all spans of a row group. `read.wanted` is ignored. */
export async function readAllSpans(read: ForeignRead, change: ValueChange): Promise<AllSpans> {
  const found = new Map<number, Column>();
  let { pages } = read;
  let checksum: number | null = null;
  for (let wanted = 0; wanted < read.spans.length; wanted++) {
    if (found.has(wanted)) continue;
    const decoded = await decodeForeign({ ...read, pages, wanted });
    for (const { span, column } of decoded.spans) found.set(span, changeColumn(column, change));
    assert(found.has(wanted), 'a reading gives the wanted span');
    pages = decoded.pages;
    checksum ??= decoded.checksum;
  }
  return { columns: read.spans.map((_, span) => found.get(span)!), checksum };
}

/** Divides a row group of a foreign file into spans: as few as the scan's limit on row groups allows, and of about equal size. */
export function spansOf(rows: number): RowSpan[] {
  const count = Math.ceil(rows / rowGroupRowsMax);
  return Array.from({ length: count }, (_, i) => ({
    from: Math.floor((rows * i) / count),
    to: Math.floor((rows * (i + 1)) / count),
  }));
}

/** A reading of the first span of a column in a row group. */
export function columnRead(
  { path, format }: Pick<ForeignRead, 'path' | 'format'>,
  { rowGroups }: ForeignFile,
  source: ColumnSource & { kind: 'column' },
  rowGroup: number,
): ForeignRead {
  const { column, columnIndex } = source;
  const { rows: rowGroupRows } = rowGroups[rowGroup]!;
  const chunk = chunkOf(rowGroups[rowGroup]!, source);
  const where = { path, format, columnIndex, column, rowGroup, rowGroupRows, chunk };
  return { ...where, spans: spansOf(rowGroupRows), wanted: 0, pages: null };
}

/** A span, with its place in the file. */
export interface FileSpan extends RowSpan {
  readonly rowGroup: number;
  /** Index among the spans of its row group. */
  readonly index: number;
}

/** The spans of all row groups, in file order. */
export function spansOfFile(rowGroupRows: readonly number[]): FileSpan[] {
  return rowGroupRows.flatMap((rows, rowGroup) =>
    spansOf(rows).map((span, index) => ({ ...span, rowGroup, index })),
  );
}
