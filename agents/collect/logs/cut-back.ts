import { type Checkpoint, columnValue, placementField } from '../../../engine/index.js';
import { headBytesMax } from '../../sources/source-identity.js';
import type { DecodeSettings } from '../../frames/decode-task.js';
import { decodeLines } from '../../frames/lent-decoding.js';
import type { LogHandle } from './log-files.js';
import { readAt } from './read-at.js';

/** Content that is searched for what is not stored: disks lose seconds of it. */
const searchedBytesMax = 16 * 1024 * 1024;
const firstSearchBytes = 64 * 1024;

const lineFeed = 0x0a;

/** A log whose end its disk has lost, and where it goes on. */
export interface CutBack {
  readonly known: Checkpoint;
  /** The first byte that is not stored. */
  readonly offset: number;
  /** Whether that is known by the times of the lines; else it is taken to be the end. */
  readonly isDated: boolean;
}

interface Line {
  readonly start: number;
  readonly end: number;
}

/** What lines are read by, to see their times. */
export interface LineTimes {
  readonly settings: DecodeSettings;
  /** Fields that the file's name gives. */
  readonly captures: ReadonlyMap<string, string>;
  readonly nowMs: number;
}

/**
 * Where to go on in a log that begins as it did and does not have what a checkpoint says was read of it: its disk lost power, and the end
 * with it, while the archive's kept it. What it has from before is stored; what was written since is later than the last record that
 * is stored. Null where no checkpoint says so, or too much of the content is later: then it is another content.
 *
 * @param own checkpoints of this very file whose beginning it has, by ascending offset
 */
export async function findCutBack(
  handle: LogHandle,
  sizeBytes: number,
  own: readonly Checkpoint[],
  reading: LineTimes,
): Promise<CutBack | null> {
  // Fewer bytes than these are too few to know a content by, when nothing else of it is there.
  const known = own.findLast(
    ({ headBytes, contentHash }) => headBytes === headBytesMax && contentHash === null,
  );
  if (known === undefined) return null;
  const undated = sizeBytes < known.offset ? { known, offset: sizeBytes, isDated: false } : null;
  const { lastTimeMs } = known;
  if (lastTimeMs === null || placementField(reading.settings.definition.schema) < 0) return undated;
  for (let bytes = firstSearchBytes; bytes <= searchedBytesMax; bytes *= 4) {
    const from = Math.max(0, sizeBytes - bytes);
    const offset = await firstLater(handle, from, sizeBytes, lastTimeMs, reading);
    if (offset === 'undated') return undated;
    if (offset !== null) return { known, offset, isDated: true };
    if (from === 0) return null;
  }
  return null;
}

/**
 * Position behind the last line between `from` and `to` that is no later than `lastTimeMs`; null when there is none, `undated` when no
 * line has a time.
 */
async function firstLater(
  handle: LogHandle,
  from: number,
  to: number,
  lastTimeMs: number,
  reading: LineTimes,
): Promise<number | null | 'undated'> {
  const bytes = await readAt(handle, from, to - from);
  const lines = linesOf(bytes, from > 0);
  const times = await timesOf(bytes, lines, reading);
  const last = times.findLastIndex((timeMs) => timeMs !== null && timeMs <= lastTimeMs);
  if (last < 0) return times.every((timeMs) => timeMs === null) ? 'undated' : null;
  // Lines of a record behind its first have no time of their own.
  const isMultiline = reading.settings.definition.file?.multiline !== undefined;
  const next = isMultiline ? times.findIndex((timeMs, i) => i > last && timeMs !== null) : last + 1;
  return from + (lines[next]?.start ?? bytes.length);
}

function linesOf(bytes: Uint8Array, beginsInLine: boolean): Line[] {
  const lines: Line[] = [];
  let start = beginsInLine ? bytes.indexOf(lineFeed) + 1 : 0;
  while (start < bytes.length) {
    const found = bytes.indexOf(lineFeed, start);
    const end = found < 0 ? bytes.length : found + 1;
    lines.push({ start, end });
    start = end;
  }
  return lines;
}

/** The time of each line; null for one that has none, or is no record. */
async function timesOf(
  bytes: Uint8Array,
  lines: readonly Line[],
  { settings, captures, nowMs }: LineTimes,
): Promise<(number | null)[]> {
  const times: (number | null)[] = [];
  const field = placementField(settings.definition.schema);
  // As many at once as a batch takes.
  while (times.length < lines.length) {
    const ranges = lines.slice(times.length).map((line) => ({
      ...line,
      captures,
      atBeginning: false,
      continuesLine: false,
      written: { byMs: nowMs },
    }));
    const { ranges: done, batch } = await decodeLines(null, { settings, ranges }, bytes, null);
    let row = 0;
    for (const { rows } of done) {
      const value = rows === 0 ? null : columnValue(batch!.columns[field]!, row);
      times.push(value === null ? null : Number(value));
      row += rows;
    }
  }
  return times;
}
