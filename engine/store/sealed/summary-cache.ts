import { decodeSummary, type SegmentFilters } from './segment-filters.js';

/** The place of a segment's summary in a local file. */
export interface SummaryPlace {
  /** Absolute path. */
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
  /** Number of row groups of the segment. */
  readonly rowGroups: number;
}

/** Memory of a thread for summaries, and for the checksums of filters that are kept with them: those of thousands of segments. */
const summaryBytesMax = 16 * 1024 * 1024;

interface KeptSummary {
  readonly offset: number;
  readonly filters: SegmentFilters | null;
  readonly bytes: number;
}

/** By path, oldest first. */
const summaries = new Map<string, KeptSummary>();
let summaryBytes = 0;

/**
 * The decoded summary at a place. Each thread reads it only once. Null if it is damaged, which `verify` reports.
 *
 * @param read returns bytes of the file, fewer at its end
 */
export function summaryAt(
  { path, offset, bytes, rowGroups }: SummaryPlace,
  read: (path: string, offset: number, bytes: number) => Uint8Array,
): SegmentFilters | null {
  const known = summaries.get(path);
  if (known?.offset === offset) return known.filters;
  if (known !== undefined) forget(path, known.bytes);
  const filters = decodeSummary(read(path, offset, bytes), rowGroups);
  const kept = { offset, filters, bytes: bytes + (filters?.checksumBytes ?? 0) };
  summaries.set(path, kept);
  summaryBytes += kept.bytes;
  for (const [oldest, { bytes: oldestBytes }] of summaries) {
    if (summaryBytes <= summaryBytesMax) break;
    forget(oldest, oldestBytes);
  }
  return filters;
}

function forget(path: string, bytes: number): void {
  summaries.delete(path);
  summaryBytes -= bytes;
}
