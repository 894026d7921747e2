import {
  addCounters,
  noCounters,
  type Checkpoint,
  type Counters,
  type LoadEntry,
  type Manifest,
  type OrdinalRun,
  type SegmentEntry,
} from './manifest.js';

/**
 * The values of a manifest plus those of the hot batches committed since: what the next manifest will say. A batch or a publication is
 * applied only once it is durable.
 */
export class CommittedValues {
  private readonly next: Map<number, number>;
  private readonly sources: Map<string, Checkpoint>;
  private readonly ordinalsFrom: number;
  private highest: number;
  private totals: Counters;

  constructor(manifest: Manifest | undefined, ordinalsFrom = manifest?.ordinalsFrom ?? 1) {
    this.next = new Map(manifest?.nextOrdinals ?? []);
    this.sources = new Map(
      (manifest?.checkpoints ?? []).map((checkpoint) => [checkpointKey(checkpoint), checkpoint]),
    );
    this.ordinalsFrom = ordinalsFrom;
    this.highest = manifest?.highestPartition ?? 0;
    this.totals = manifest?.counters ?? noCounters;
  }

  /** An independent copy, to which a publication can be applied before it is durable. */
  copy(): CommittedValues {
    const copy = new CommittedValues(undefined, this.ordinalsFrom);
    for (const [partition, ordinal] of this.next) copy.next.set(partition, ordinal);
    for (const [key, checkpoint] of this.sources) copy.sources.set(key, checkpoint);
    copy.highest = this.highest;
    copy.totals = this.totals;
    return copy;
  }

  /** The ordinal that the next record of the partition gets. */
  nextOrdinal(partition: number): number {
    return Math.max(this.next.get(partition) ?? 1, this.ordinalsFrom);
  }

  /** Highest partition that ever held a committed record, unless it was lowered; 0 for none. */
  get highestPartition(): number {
    return this.highest;
  }

  /** Counts over the agent's lifetime. */
  get counters(): Counters {
    return this.totals;
  }

  /** The checkpoints of all sources. */
  checkpoints(): Checkpoint[] {
    return [...this.sources.values()];
  }

  /** The checkpoint with this `checkpointKey`; undefined if there is none. */
  checkpoint(key: string): Checkpoint | undefined {
    return this.sources.get(key);
  }

  /** For the manifest: `[partition, next ordinal]` of every partition that ever held a record, ascending. */
  nextOrdinals(): [number, number][] {
    return [...this.next].sort((a, b) => a[0] - b[0]);
  }

  /** Marks the positions of runs as assigned. */
  applyRuns(runs: readonly OrdinalRun[]): void {
    for (const { partition, firstOrdinal, rows } of runs) {
      const next = this.next.get(partition) ?? 1;
      // Rows that are only rewritten have their positions already. They raise nothing.
      if (firstOrdinal + rows <= next) continue;
      this.next.set(partition, firstOrdinal + rows);
      this.highest = Math.max(this.highest, partition);
    }
  }

  /** Lowers the highest partition to at most `partition`, as somebody asked for. Positions that were assigned stay assigned. */
  lowerHighest(partition: number): void {
    this.highest = Math.min(this.highest, partition);
  }

  /** Marks the positions of segments as assigned. */
  applySegments(segments: readonly SegmentEntry[]): void {
    for (const segment of segments) this.applyRuns(segment.runs);
  }

  /** Replaces the checkpoints of sources. `packedInode` is not stored. */
  applyCheckpoints(checkpoints: readonly Checkpoint[]): void {
    for (const { continues, packedInode: _, ...checkpoint } of checkpoints) {
      if (continues !== undefined) this.sources.delete(continues);
      this.sources.set(checkpointKey(checkpoint), checkpoint);
    }
  }

  /**
   * Undoes the checkpoints of removed loads: their sources become unknown, or stored up to where they were before. A source that a later
   * load has continued keeps its checkpoint.
   */
  forget(gone: readonly LoadEntry[]): void {
    // Newest first: a load may have continued where another removed load had ended.
    for (const { parts } of gone.toReversed()) {
      for (const { from, until } of parts.toReversed()) {
        if (this.sources.delete(checkpointKey(until)) && from !== null)
          this.sources.set(checkpointKey(from), from);
      }
    }
  }

  applyCounters(counters: Counters): void {
    const totals = addCounters(this.totals, counters);
    // The rejected lines that a load takes over may outnumber those counted here, because a manifest that was rebuilt may count fewer.
    this.totals = { ...totals, rejected: Math.max(0, totals.rejected) };
  }
}

/**
 * The key of a source's checkpoint. A source is identified by the hash of its beginning and, where its stored content was hashed, by that
 * hash too, since different files may begin alike (a banner, a licence, column headings). A file that is followed is not hashed as a whole:
 * it is identified by its beginning, its inode, and the offset and hash of the last bytes stored. Equal files that are sources of their own
 * are numbered.
 */
export function checkpointKey(
  checkpoint: Pick<
    Checkpoint,
    'headHash' | 'headBytes' | 'contentHash' | 'offset' | 'inode' | 'tailHash' | 'copy'
  >,
): string {
  const { headBytes, headHash, contentHash, inode, copy } = checkpoint;
  if (contentHash !== null || inode === undefined)
    return `${headBytes}:${headHash}:${contentHash ?? ''}${copy === undefined ? '' : `:${copy}`}`;
  return `${headBytes}:${headHash}::${inode}:${checkpoint.offset}:${checkpoint.tailHash ?? ''}`;
}

/** Compares runs by position, ascending. Runs of live files never overlap. */
export function compareRuns(a: OrdinalRun, b: OrdinalRun): number {
  return a.partition - b.partition || a.firstOrdinal - b.firstOrdinal;
}
