import { throwIfAborted } from '../../store/reading/pace.js';
import type { ChunkSize, OpenRowGroup, RowGroup } from '../../store/reading/snapshot.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import { LogstrataError } from '../../terms/errors.js';
import { UnitWalk, type ScanPlan } from '../plan/plan.js';
import type { Pruning } from './pruning.js';
import type { ScanWork } from './row-group-filter.js';

/** What an answer has. */
export interface AnswerSize {
  /** The fields that it is written from. */
  readonly fields: readonly number[];
  /** The most records. */
  readonly limit: number;
}

/**
 * How many bytes of columns a query reads at the most, of files that nothing is in memory of. That is, of row groups that times and zone
 * maps do not rule out, the chunks that its filters look at; and the chunks that the answer is written from, of as many row groups as it has
 * records, the largest ones. It ends where rows that match for sure are as many as the answer may have. Filters that lie beside values are not asked, so
 * that it is far too much where these rule out most. What is read for it are footers, which the query needs itself and which stay in memory;
 * these, and filters, come on top.
 */
export function* readingEstimate(
  plan: ScanPlan,
  pruning: Pruning,
  { fields, limit }: AnswerSize,
  { pace, stats, threads }: ScanWork,
): Steps<never, number> {
  const walk = new UnitWalk(plan);
  const chunks = new Chunks();
  const seen = new Set<RowGroup>();
  const written: number[] = [];
  let filterBytes = 0;
  let farBytes = 0;
  let farRows = 0;
  let sureRows = 0;
  while (walk.rowGroup !== undefined && sureRows < limit) {
    const { rowGroup } = walk;
    yield* settled(pace.pause());
    throwIfAborted(pace.signal);
    if (rowGroup.far !== undefined) {
      // The cluster looks at rows; what comes over the network is what matches.
      const { rowBytes } = rowGroup.far;
      const rows = walk.take()?.ranges.reduce((sum, range) => sum + range.rows, 0) ?? 0;
      farBytes = Math.max(farBytes, rowBytes * Math.min(limit, (farRows += rows)));
      continue;
    }
    const left = yield* pruning.leftByBounds(rowGroup);
    const unit = left === null ? null : walk.take();
    if (left === null) walk.pass();
    if (left === null || unit === null) continue;
    if (left.length === 0) sureRows += unit.ranges.reduce((rows, range) => rows + range.rows, 0);
    if (seen.has(rowGroup)) continue;
    seen.add(rowGroup);
    const open = yield* settled(rowGroup.open(threads, stats));
    filterBytes += chunks.add(
      open,
      left.map(({ predicate }) => predicate.field),
    );
    written.push(chunks.add(open, fields));
  }
  // The largest first.
  written.sort((a, b) => b - a);
  return written.slice(0, limit).reduce((sum, bytes) => sum + bytes, filterBytes + farBytes);
}

/** Chunks that have been counted. */
class Chunks {
  readonly #counted = new Set<ChunkSize>();

  /** Counts the chunks of fields, and gives the bytes of those that were not counted before. */
  add(open: OpenRowGroup, fields: readonly number[]): number {
    let bytes = 0;
    for (const field of fields) {
      const chunk = open.chunkSize?.(field);
      if (chunk === undefined || this.#counted.has(chunk)) continue;
      this.#counted.add(chunk);
      bytes += chunk.bytes;
    }
    return bytes;
  }
}

/** What a query is refused with that would read more than it may. */
export function tooMuchToRead(bytes: number, bytesMax: number): LogstrataError {
  return new LogstrataError(
    'invalid',
    `this query may have to read ${inGrouped(bytes)} bytes, and one may read ${inGrouped(bytesMax)} at the most: ` +
      'ask for a shorter time, for fewer fields, or for fewer records',
  );
}

function inGrouped(count: number): string {
  return count.toLocaleString('en-US');
}
