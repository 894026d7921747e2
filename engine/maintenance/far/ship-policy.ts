import { dayNumber, hourMs } from '../../terms/cursor.js';
import type { FarLeftover } from '../../store/manifest/far-copy.js';
import {
  ageingPartition,
  ageReferenceMs,
  isFarOnly,
  type Manifest,
  type SegmentEntry,
} from '../../store/manifest/manifest.js';

/** When records are shipped, and when their local files are removed. */
export interface FarPolicy {
  /** Age of a day (ms), counted from its end, at which its segments are shipped. */
  readonly afterMs: number;
  /** How long (ms) their local files are kept after that. */
  readonly keepLocalMs: number;
  /** Whether segments that were fetched back are shipped too, which happens only on demand. */
  readonly shipsAll?: boolean | undefined;
}

/** The segments to ship, oldest first. Looks only at the manifest. */
export function segmentsToShip(
  manifest: Manifest,
  { afterMs, shipsAll = false }: FarPolicy,
  nowMs: number,
): SegmentEntry[] {
  const referenceMs = ageReferenceMs(manifest, nowMs);
  return manifest.segments
    .filter((entry) => entry.far === undefined && (shipsAll || entry.stays !== true))
    .filter((entry) => referenceMs - endOfDayMs(entry) >= afterMs)
    .sort((a, b) => a.runs[0]!.partition - b.runs[0]!.partition);
}

/** The end of the day that a segment ages by. Imported records age by their times. */
function endOfDayMs(entry: SegmentEntry): number {
  return (dayNumber(ageingPartition(entry, entry.runs.at(-1)!.partition)) + 1) * 24 * hourMs;
}

/** Local files of shipped segments that are no longer needed. */
export function filesToFree({ segments }: Manifest, { keepLocalMs }: FarPolicy, nowMs: number): string[] {
  return segments.flatMap((entry) => {
    const isDue = entry.far !== undefined && !isFarOnly(entry) && nowMs - entry.far.shippedMs >= keepLocalMs;
    return isDue ? [entry.file] : [];
  });
}

/** Attempts to drop: those that cannot become a copy and that ended longer ago than a query may take. */
export function leftoversToDrop(
  { farLeftovers = [] }: Manifest,
  nowMs: number,
  longestQueryMs: number,
): readonly FarLeftover[] {
  return farLeftovers.filter(({ file, sinceMs }) => file === undefined && nowMs - sinceMs >= longestQueryMs);
}

/** The shard with the fewest rows; the first one of several. */
export function leastFilledShard({ segments }: Manifest, shards: number): number {
  const rows = new Array<number>(shards).fill(0);
  for (const { far } of segments) if (far !== undefined && far.shard < shards) rows[far.shard]! += far.rows;
  return rows.indexOf(Math.min(...rows));
}
