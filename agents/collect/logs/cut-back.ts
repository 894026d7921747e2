import { type Checkpoint, columnValue, placementField } from '../../../engine/index.js';
import { isOfContainers, type FileInput } from '../../definition/definition.js';
import { ContainerRecords } from '../../decode/container-records.js';
import { headersOf } from '../../decode/table-headers.js';
import {
  alike,
  headBytesMax,
  type Reading,
  readingOf,
  samplesOf,
  tailBytesMax,
  sha256,
} from '../../sources/source-position.js';
import type { DecodeSettings, LineRange } from '../../decode/decode-task.js';
import { decodeLines } from '../../decode/lent-decoding.js';
import { readAt, type FileStatus, type LogHandle } from './log-files.js';

/** Limit on the bytes at the end of a log that are searched for lines that are not stored. A power cut loses the last seconds of a log. */
const unstoredBytesMax = 16 * 1024 * 1024;
const firstSearchBytes = 64 * 1024;

/** Limit on the bytes at the end of a log that are searched for the last stored line: about a million lines. */
const searchedBytesMax = 64 * 1024 * 1024;

/** Bytes that are searched without giving up the turn. */
const pieceBytes = 256 * 1024;

/** Limit on the bytes in which the time of a line is looked for, and on the number of lines that are tried: lines may all end alike. */
const datedBytesMax = 16 * 1024;
const triesMax = 1000;

const lineFeed = 0x0a;

/** A log that has lost its end, e.g. by a power cut, and the position from which it is read on. */
export interface CutBack {
  readonly known: Checkpoint;
  /** Offset of the first byte that is not stored. */
  readonly offset: number;
  /** Whether the lines' times give the offset; otherwise it is the end of the file. */
  readonly isDated: boolean;
  /** Whether the file has only stored content, as far as samples of it show. */
  readonly isBeginning: boolean;
}

/** Place of a line in a text. */
interface Line {
  readonly start: number;
  readonly end: number;
}

/** How to decode lines to see their times. */
export interface LineTimes {
  readonly settings: DecodeSettings;
  /** Field values from the file's name. */
  readonly captures: ReadonlyMap<string, string>;
  readonly nowMs: number;
  /** What must be known where the lines begin; undefined at the beginning of content. */
  readonly reading?: Reading | undefined;
}

/**
 * Finds where to read on in a log whose beginning matches a checkpoint but whose content before the checkpoint's offset does
 * not: its disk lost power and with it the log's end, while the archive's disk kept the records. As far as samples show that
 * the content is the stored one, lines that are not later than the last stored record are stored. Null where no checkpoint
 * fits, where no such line is found, and where the file may be another one: then all of it is read again.
 *
 * @param own checkpoints of this very file, by its number and name, whose beginning it has, by ascending offset
 */
export async function findCutBack(
  handle: LogHandle,
  { sizeBytes, bornMs }: FileStatus,
  own: readonly Checkpoint[],
  reading: LineTimes,
): Promise<CutBack | null> {
  // A shorter head is not enough to recognise content by, when nothing after it matches.
  const known = own.findLast(
    ({ headBytes, contentHash }) => headBytes === headBytesMax && contentHash === null,
  );
  if (known === undefined) return null;
  const samples = await samplesOf(sizeBytes, (at, length) => readAt(handle, at, length));
  const { differs } = alike(known.samples ?? '', samples);
  const isBeginning = sizeBytes < known.offset && differs === Infinity;
  // A file's number alone does not show that it is the same: another file may have got it, and begin with the same banner.
  if (!isBeginning && (bornMs === null || known.bornMs === undefined)) return null;
  const undated = isBeginning ? { known, offset: sizeBytes, isDated: false, isBeginning } : null;
  const { lastTimeMs } = known;
  if (lastTimeMs === null || placementField(reading.settings.definition.schema) < 0) return undated;
  // What differs, and what is behind the stored content, was written since.
  const sinceBytes = Math.min(differs, known.offset);
  const end = sinceBytes < sizeBytes ? await lineStart(handle, sinceBytes) : sizeBytes;
  for (let bytes = firstSearchBytes; bytes <= unstoredBytesMax; bytes *= 4) {
    const from = Math.max(0, end - bytes);
    const there = { ...reading, reading: from === 0 ? undefined : readingOf(known) };
    const offset = await firstLater(handle, from, end, lastTimeMs, there);
    if (offset === 'undated') return undated;
    if (offset !== null) return { known, offset, isDated: true, isBeginning };
    if (from === 0) return null;
  }
  return null;
}

/**
 * Offset after the last line in [from, to) that is not later than `lastTimeMs`. Null where all lines are later; `undated`
 * where no line has a time.
 */
async function firstLater(
  handle: LogHandle,
  from: number,
  to: number,
  lastTimeMs: number,
  reading: LineTimes,
): Promise<number | null | 'undated'> {
  const bytes = await readAt(handle, from, to - from);
  const lines = linesOf(bytes, from > 0, reading);
  const times = await timesOf(bytes, lines, reading);
  const last = times.findLastIndex((timeMs) => timeMs !== null && timeMs <= lastTimeMs);
  if (last < 0) return times.every((timeMs) => timeMs === null) ? 'undated' : null;
  // In a multi-line record, only the first line has a time.
  const file = reading.settings.definition.file!;
  const hasLines = (file.multiline ?? file.values) !== undefined || file.format === 'csv';
  const isMultiline = hasLines && !isOfContainers(file);
  const next = isMultiline ? times.findIndex((timeMs, i) => i > last && timeMs !== null) : last + 1;
  return from + (lines[next]?.start ?? bytes.length);
}

/** Start of the line that `offset` is in or ends; 0 if that is too far away. */
async function lineStart(handle: LogHandle, offset: number): Promise<number> {
  const from = Math.max(0, offset - firstSearchBytes);
  const bytes = await readAt(handle, from, offset - from);
  const found = bytes.lastIndexOf(lineFeed);
  return found < 0 ? 0 : from + found + 1;
}

/**
 * The lines of a text, those of records of a container together. With `beginsInLine`, it begins inside a line, which is left out.
 */
function linesOf(bytes: Uint8Array, beginsInLine: boolean, { settings }: LineTimes): Line[] {
  const lines: Line[] = [];
  let start = beginsInLine ? bytes.indexOf(lineFeed) + 1 : 0;
  while (start < bytes.length) {
    const found = bytes.indexOf(lineFeed, start);
    const end = found < 0 ? bytes.length : found + 1;
    lines.push({ start, end });
    start = end;
  }
  const file = settings.definition.file!;
  return isOfContainers(file) ? joinedLines(bytes, lines, file) : lines;
}

/** Joins lines between which a container's log can't be cut, because each has a time although their record has only one. */
function joinedLines(bytes: Uint8Array, lines: readonly Line[], file: FileInput): Line[] {
  const records = new ContainerRecords(file);
  const joined: Line[] = [];
  let from = lines[0]?.start ?? 0;
  records.begin(from);
  for (const { start, end } of lines) {
    records.take({ bytes, start, end: end - 1 });
    const to = end === bytes.length ? end : records.cut;
    if (to > from) joined.push({ start: from, end: to });
    from = to;
  }
  return joined;
}

/** The time of each line, or of the last record of several; null for a line that has none, or is not a record. */
async function timesOf(
  bytes: Uint8Array,
  lines: readonly Line[],
  { settings, captures, nowMs, reading }: LineTimes,
): Promise<(number | null)[]> {
  const times: (number | null)[] = [];
  const headers = headersOf(settings.definition);
  let known = reading;
  const lineRanges = lines.map((line): LineRange => {
    const range = { ...line, captures, continuesLine: false, written: { byMs: nowMs }, reading: known };
    if (headers !== null) known = headers.behind(bytes, range);
    return range;
  });
  const field = placementField(settings.definition.schema);
  // A call decodes as many lines as fit into a batch.
  while (times.length < lines.length) {
    const ranges = lineRanges.slice(times.length);
    const { ranges: done, batch } = await decodeLines(null, { settings, ranges }, bytes, null);
    let row = 0;
    for (const { rows } of done) {
      row += rows;
      const value = rows === 0 ? null : columnValue(batch!.columns[field]!, row - 1);
      times.push(value === null ? null : Number(value));
    }
  }
  return times;
}

/** Where the last stored line ends in a log that lost its beginning; `lost` where the log begins before that line but does not have it. */
export type Trimmed = { readonly known: Checkpoint; readonly offset: number } | 'lost';

/**
 * Finds the last stored line in a log whose beginning is not the stored one, as when its program keeps only the last lines.
 * Null where the log begins with lines that are later than all stored ones, and where its lines have no times: the same few
 * bytes could then be those of other lines. Throws Node's errors of reading.
 *
 * @param candidates checkpoints of logs with this name that no other file continues
 */
export async function findTrimmed(
  handle: LogHandle,
  sizeBytes: number,
  candidates: readonly Checkpoint[],
  reading: LineTimes,
): Promise<Trimmed | null> {
  const long = candidates.filter(({ offset, tailHash }) => offset >= tailBytesMax && tailHash !== undefined);
  if (long.length === 0) return null;
  const [firstMs] = await timesIn(await readAt(handle, 0, datedBytesMax), reading);
  if (firstMs === undefined) return null;
  const later = long.filter(({ lastTimeMs }) => lastTimeMs !== null && lastTimeMs >= firstMs);
  const byTail = new Map(later.map((each) => [each.tailHash!, each]));
  let tries = 0;
  const least = Math.max(0, sizeBytes - searchedBytesMax);
  for (let to = later.length === 0 ? 0 : sizeBytes; to - least >= tailBytesMax;) {
    const from = Math.max(least, to - pieceBytes);
    const bytes = await readAt(handle, from, to - from);
    for (let end = bytes.length; end >= tailBytesMax; end = bytes.lastIndexOf(lineFeed, end - 2) + 1) {
      const tail = bytes.subarray(end - tailBytesMax, end);
      const known = tail.at(-1) === lineFeed ? byTail.get(sha256(tail)) : undefined;
      if (known === undefined || tries++ > triesMax) continue;
      const there = { ...reading, reading: readingOf(known) };
      const times = await timesIn(bytes.subarray(Math.max(0, end - datedBytesMax), end), there);
      if (times.at(-1) === known.lastTimeMs) return { known, offset: from + end };
    }
    to = from + tailBytesMax - 1;
  }
  return later.some(({ lastTimeMs }) => lastTimeMs! > firstMs) ? 'lost' : null;
}

/** The times of the lines that have one. */
export async function timesIn(bytes: Uint8Array, reading: LineTimes): Promise<number[]> {
  const times = await timesOf(bytes, linesOf(bytes, false, reading), reading);
  return times.filter((timeMs) => timeMs !== null);
}
