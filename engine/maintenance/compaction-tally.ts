import type { SegmentEntry } from '../store/manifest/manifest.js';

/** What background compaction has done for an agent since the process started. */
export interface CompactionCounts {
  readonly rewrites: number;
  readonly failed: number;
  /** Number of segments that were replaced, and of those that replaced them. */
  readonly segmentsRead: number;
  readonly segmentsWritten: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** A mutable `CompactionCounts`. */
export class CompactionTally implements CompactionCounts {
  rewrites = 0;
  failed = 0;
  segmentsRead = 0;
  segmentsWritten = 0;
  bytesRead = 0;
  bytesWritten = 0;

  /** Counts a rewrite that replaced `read` by `written`. */
  rewritten(read: readonly SegmentEntry[], written: readonly SegmentEntry[]): void {
    this.rewrites++;
    this.segmentsRead += read.length;
    this.segmentsWritten += written.length;
    this.bytesRead += sizeOf(read);
    this.bytesWritten += sizeOf(written);
  }
}

function sizeOf(segments: readonly SegmentEntry[]): number {
  return segments.reduce((sum, { bytes }) => sum + bytes, 0);
}
