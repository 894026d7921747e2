import type { Checkpoint } from '../../../engine/index.js';
import { tailBytesMax } from '../../sources/content-reader.js';
import { sha256 } from '../../sources/sha256.js';
import { linesOf, timesOf, type LineTimes } from './cut-back.js';
import { readAt, type LogHandle } from './log-files.js';

/** Limit on the bytes at the end of a log that are searched for the last stored line: about a million lines. */
const searchedBytesMax = 64 * 1024 * 1024;

/** Bytes that are searched without giving up the turn. */
const pieceBytes = 256 * 1024;

/** Limit on the bytes in which the time of a line is looked for, and on the number of lines that are tried: lines may all end alike. */
const datedBytesMax = 16 * 1024;
const triesMax = 1000;

const lineFeed = 0x0a;

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
      const times = await timesIn(bytes.subarray(Math.max(0, end - datedBytesMax), end), reading);
      if (times.at(-1) === known.lastTimeMs) return { known, offset: from + end };
    }
    to = from + tailBytesMax - 1;
  }
  return later.some(({ lastTimeMs }) => lastTimeMs! > firstMs) ? 'lost' : null;
}

/** The times of the lines that have one. */
export async function timesIn(bytes: Uint8Array, reading: LineTimes): Promise<number[]> {
  const times = await timesOf(bytes, linesOf(bytes, false), reading);
  return times.filter((timeMs) => timeMs !== null);
}
