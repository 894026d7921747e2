import { decodeSummary, type SegmentFilters } from './segment-filters.js';

/** Where the filters of a segment are said to lie, in a file of the real file system. */
export interface SummaryPlace {
  /** Absolute. */
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
  /** Row groups of the segment. */
  readonly rowGroups: number;
}

/** Memory for summaries that a thread keeps, and for checksums of filters that come with them: those of thousands of segments. */
const summaryBytesMax = 16 * 1024 * 1024;

interface KeptSummary {
  readonly offset: number;
  readonly filters: SegmentFilters | null;
  readonly bytes: number;
}

/** By path, the oldest first. */
const summaries = new Map<string, KeptSummary>();
let summaryBytes = 0;

/**
 * What the summary at a place says, read once by each thread; null where it is damaged, which `verify` reports.
 *
 * @param read gives bytes of the file, fewer where it ends before
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
