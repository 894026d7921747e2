import type { Scan } from '../archive.js';
import { parseCursor, type Position } from '../cursor.js';
import { isLogstrataError } from '../errors.js';
import { executeScan, type ScanSettings } from './execute.js';
import type { Query, ScanStats } from './query.js';
import { endOfSnapshot, type Snapshot } from './snapshot.js';

/** Attempts to go on after the writer has removed a file that the snapshot named. */
const attemptsMax = 10;

/**
 * A scan in a process that is not the writer. The writer may replace and remove a segment while it is read; the scan then
 * goes on in the newest state after the last record that it has given. Cursors never change, so the answer is the same.
 */
export async function resumeScan(
  takeSnapshot: () => Promise<Snapshot>,
  query: Query,
  options: ScanSettings,
): Promise<Scan> {
  const snapshot = await takeSnapshot();
  // Later records are no part of this answer, whenever it is continued.
  const end = endOfSnapshot(snapshot);
  const first = executeScan(snapshot, query, options);
  return { stats: first.stats, lines: resumingLines(first, takeSnapshot, query, end, options) };
}

async function* resumingLines(
  first: Scan,
  takeSnapshot: () => Promise<Snapshot>,
  query: Query,
  end: Position,
  options: ScanSettings,
): AsyncGenerator<Uint8Array> {
  let scan = first;
  let given = 0;
  let last: Position | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      for await (const piece of scan.lines) {
        yield piece;
        given += countLines(piece);
        last = lastCursor(piece);
      }
      return;
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'not_found' || attempt === attemptsMax) throw error;
      // Once lines have been given, the matches that the newest `limit` reached back to are fixed: go on from there.
      const before = query.before ?? end;
      const rest =
        last === undefined
          ? { ...query, before }
          : { ...query, after: last, before, limit: query.limit - given };
      scan = executeScan(await takeSnapshot(), rest, options);
      addStats(first.stats, scan.stats);
    }
  }
}

/** The counters of the first scan keep counting what the next one does. */
function addStats(total: ScanStats, next: ScanStats): void {
  for (const key of Object.keys(total) as (keyof ScanStats)[]) {
    const before = total[key];
    Object.defineProperty(total, key, {
      enumerable: true,
      configurable: true,
      get: () => before + next[key],
    });
  }
}

const newline = 10;
const cursorAt = '{"_cursor":"'.length;

function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) lines++;
  return lines;
}

function lastCursor(piece: Uint8Array): Position | undefined {
  const start = piece.lastIndexOf(newline, piece.length - 2) + 1;
  return parseCursor(Buffer.from(piece.subarray(start + cursorAt, start + cursorAt + 16)).toString('latin1'));
}
