import type { ChunkSize, OpenRowGroup, RowGroup } from '../store/reading/snapshot.js';
import { LogstrataError } from '../core/errors.js';
import { UnitWalk, type ScanPlan } from './plan.js';
import type { Pruning } from './pruning.js';
import type { ScanWork } from './row-group-filter.js';

/** The fields and the length of an answer. */
export interface AnswerSize {
  /** Indices of the fields that the lines have. */
  readonly fields: readonly number[];
  /** The most records. */
  readonly limit: number;
}

/**
 * An upper bound of the bytes of columns that a query reads if nothing is in memory. It is the sum, over the row groups that times and zone
 * maps do not rule out, of the chunks that predicates are evaluated on; plus the chunks that the lines are written from, of the `limit` row
 * groups where they are largest. The walk ends once the rows that certainly match are as many as `limit`.
 *
 * The filters beside the values are not asked, so the bound is far too high where they rule out most row groups. Only footers are read,
 * which the query needs anyway and which stay in memory. The bytes of footers and filters are not included.
 */
export async function readingEstimate(
  plan: ScanPlan,
  pruning: Pruning,
  { fields, limit }: AnswerSize,
  { pace, stats, threads }: ScanWork,
): Promise<number> {
  const walk = new UnitWalk(plan);
  const chunks = new Chunks();
  const seen = new Set<RowGroup>();
  const written: number[] = [];
  let filterBytes = 0;
  let remoteBytes = 0;
  let remoteRows = 0;
  let sureRows = 0;
  while (walk.rowGroup !== undefined && sureRows < limit) {
    const { rowGroup } = walk;
    await pace.pause();
    if (rowGroup.remote !== undefined) {
      // The other machine reads the rows itself. Only the matching rows come over the network.
      const { rowBytes } = rowGroup.remote;
      const rows = walk.take()?.ranges.reduce((sum, range) => sum + range.rows, 0) ?? 0;
      remoteBytes = Math.max(remoteBytes, rowBytes * Math.min(limit, (remoteRows += rows)));
      continue;
    }
    const left = await pruning.leftByBounds(rowGroup);
    const unit = left === null ? null : walk.take();
    if (left === null) walk.skip();
    if (left === null || unit === null) continue;
    if (left.length === 0) sureRows += unit.ranges.reduce((rows, range) => rows + range.rows, 0);
    if (seen.has(rowGroup)) continue;
    seen.add(rowGroup);
    const open = await rowGroup.open(threads, stats);
    const filtered = left.map(({ predicate }) => predicate.field);
    filterBytes += chunks.add(open, filtered);
    written.push(chunks.add(open, fields));
  }
  // Descending, to take the largest.
  written.sort((a, b) => b - a);
  return written.slice(0, limit).reduce((sum, bytes) => sum + bytes, filterBytes + remoteBytes);
}

/** The column chunks that have been counted. */
export class Chunks {
  readonly #counted = new Set<ChunkSize>();

  /** Counts the chunks of fields. Returns the bytes of those that were not counted before. */
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

/** The `invalid` error for a query that would read more than it may. */
export function tooMuchToRead(bytes: number, bytesMax: number): LogstrataError {
  return new LogstrataError(
    'invalid',
    `this query may have to read ${bytes.toLocaleString('en-US')} bytes, but the maximum for a query is ${bytesMax.toLocaleString('en-US')}: ` +
      'ask for a shorter time range, fewer fields or fewer records',
  );
}
