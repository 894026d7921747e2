import type { FarCounts } from './shipping.js';
import type { CompactionCounts } from '../maintenance/compaction.js';
import type { DiskSpace } from '../store/disk/directory.js';
import {
  isFarOnly,
  noCounters,
  nothingRetired,
  type Counters,
  type Manifest,
  type Retired,
  liveRows,
} from '../store/manifest/manifest.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { BufferPool } from '../store/reading/buffer-pool.js';
import type { CommitTally } from '../store/writer/agent-writer.js';
import type { Codec } from '../parquet/compression.js';
import { diskFreeBytesMin } from '../core/limits.js';
import type { WriterLock } from '../store/writer/writer-link.js';

/** What an open archive holds and has done, as it is at one moment: for those who watch it. */
export interface ArchiveFigures {
  readonly agents: readonly AgentFigures[];
  readonly pool: PoolFigures;
  /** Threads that rewrite segments. */
  readonly compactionThreadsBusy: number;
  /** Of the disk with the data folder; null where that can't be told. */
  readonly disk: DiskSpace | null;
}

/** Decoded columns in memory. */
export interface PoolFigures {
  readonly bytes: number;
  readonly bytesMax: number;
  /** Bytes that queries hold. */
  readonly pinnedBytes: number;
  readonly evictions: number;
}

/** One agent's. Counts are of this process where nothing else is said. */
export interface AgentFigures {
  readonly agent: string;
  /** Its manifest is damaged or lost: nothing of it is answered. */
  readonly isDamaged: boolean;
  /** In files of ours. */
  readonly records: number;
  readonly segments: Readonly<Record<Codec, SegmentFigures>>;
  readonly hotRecords: number;
  readonly hotBytes: number;
  readonly rejectedBytes: number;
  /** Files of other programs that are answered from where they lie. */
  readonly attachedFiles: number;
  readonly attachedRecords: number;
  /** Over the agent's life. */
  readonly counters: Counters;
  readonly retired: Retired;
  readonly commits: { readonly done: number; readonly failed: number };
  /** Undefined where this process does not compact by itself. */
  readonly compaction: CompactionCounts | undefined;
  /** In the far tier: with a copy here too, and alone. */
  readonly farRecords: number;
  readonly farOnlyRecords: number;
  /** Attempts there that are to be dropped. */
  readonly farLeftovers: number;
  /** How old the writer's word is by which a reader on another machine answers, in milliseconds. Absent in any other process. */
  readonly lagMs?: number | undefined;
  /** Undefined where this process does not ship by itself. */
  readonly shipping: FarCounts | undefined;
}

export interface SegmentFigures {
  readonly files: number;
  readonly bytes: number;
}

/** What can be said of an agent by its manifest alone. */
type SealedFigures = Pick<
  AgentFigures,
  | 'segments'
  | 'records'
  | 'attachedFiles'
  | 'attachedRecords'
  | 'farRecords'
  | 'farOnlyRecords'
  | 'farLeftovers'
>;

const known = new WeakMap<Manifest, SealedFigures>();

/** Counted once for each manifest: there may be thousands of segments. */
function sealedFigures(manifest: Manifest): SealedFigures {
  let figures = known.get(manifest);
  if (figures === undefined) {
    const { segments, attached, farLeftovers = [] } = manifest;
    const far = segments.filter((segment) => segment.far !== undefined);
    figures = {
      segments: { lz4: figuresOf(segments, 'lz4'), zstd: figuresOf(segments, 'zstd') },
      records: rowsOf(segments),
      attachedFiles: attached.reduce((sum, { files }) => sum + files, 0),
      attachedRecords: attached.reduce((sum, { rows }) => sum + rows, 0),
      farRecords: rowsOf(far),
      farOnlyRecords: rowsOf(far.filter(isFarOnly)),
      farLeftovers: farLeftovers.filter(({ file }) => file === undefined).length,
    };
    known.set(manifest, figures);
  }
  return figures;
}

function rowsOf(segments: Manifest['segments']): number {
  return segments.reduce((sum, segment) => sum + liveRows(segment), 0);
}

function figuresOf(segments: Manifest['segments'], codec: Codec): SegmentFigures {
  const some = segments.filter((segment) => segment.codec === codec && !isFarOnly(segment));
  return { files: some.length, bytes: some.reduce((sum, { bytes }) => sum + bytes, 0) };
}

const nothing: SegmentFigures = { files: 0, bytes: 0 };

/** The figures of an agent that has nothing on this machine, and of which this process does nothing. */
export const noFigures: Omit<AgentFigures, 'agent'> = {
  isDamaged: false,
  segments: { lz4: nothing, zstd: nothing },
  records: 0,
  hotRecords: 0,
  hotBytes: 0,
  rejectedBytes: 0,
  attachedFiles: 0,
  attachedRecords: 0,
  farRecords: 0,
  farOnlyRecords: 0,
  farLeftovers: 0,
  counters: noCounters,
  retired: nothingRetired,
  commits: { done: 0, failed: 0 },
  compaction: undefined,
  shipping: undefined,
};

/** The figures of one agent, which has a tally where this process writes. */
export function agentFigures(
  state: AgentState,
  tally: CommitTally | undefined,
  compaction: CompactionCounts | undefined,
  shipping: FarCounts | undefined,
): AgentFigures {
  const { agent, manifest, values, damage } = state;
  const sealed = manifest === undefined ? noFigures : sealedFigures(manifest);
  return {
    agent,
    ...noFigures,
    ...sealed,
    isDamaged: damage !== undefined,
    records: sealed.records + state.hotRowCount,
    hotRecords: state.hotRowCount,
    hotBytes: state.hotBytes,
    rejectedBytes: state.rejectedBytes,
    counters: values.counters,
    retired: manifest?.retired ?? nothingRetired,
    commits: { done: tally?.done ?? 0, failed: tally?.failed ?? 0 },
    compaction,
    shipping,
  };
}

/** The figures of a pool. */
export function poolFigures({ bytes, bytesMax, pinnedBytes, evictions }: BufferPool): PoolFigures {
  return { bytes, bytesMax, pinnedBytes, evictions };
}

/** Something that keeps a process from answering, or storing, all that it should. */
export interface Trouble {
  /** Whose records it is about; undefined where it is those of all. */
  readonly agent?: string;
  /** A sentence for the operator. */
  readonly reason: string;
}

/** What is wrong with one agent. A disk that was full is no trouble any more once there is room on it, though nothing was stored since. */
export function agentTroubles(
  { agent, damage }: AgentState,
  tally: CommitTally | undefined,
  disk: DiskSpace | null,
): Trouble[] {
  if (damage !== undefined) return [{ agent, reason: `its records can't be read: ${damage.message}` }];
  const failure = tally?.failure;
  if (failure === undefined) return [];
  const wasFull = 'code' in failure && failure.code === 'disk_full';
  if (wasFull && disk !== null && disk.freeBytes >= diskFreeBytesMin) return [];
  return [{ agent, reason: `nothing can be stored: ${failure.message}` }];
}

/** That the disk is full, or nearly. */
export function diskTroubles(location: string, disk: DiskSpace | null): Trouble[] {
  if (disk === null || disk.freeBytes >= diskFreeBytesMin) return [];
  const reason = `the disk of ${location} is full: ${disk.freeBytes} bytes are free, but at least ${diskFreeBytesMin} are needed`;
  return [{ reason }];
}

/**
 * That nothing is to be stored because nobody holds the lock, or that another process can take it.
 *
 * @param lock is undefined where this process does not hold it
 * @param isLinked whether another process holds it, and takes what this one commits
 * @param whyNot why it could not be taken, as far as that has failed
 */
export async function lockTroubles(
  location: string,
  lock: WriterLock | undefined,
  isLinked: boolean,
  whyNot: string | undefined,
): Promise<Trouble[]> {
  if (lock === undefined)
    return isLinked || whyNot === undefined
      ? []
      : [{ reason: `no process writes to ${location}: ${whyNot}` }];
  if (await lock.isHeld()) return [];
  return [{ reason: `the lock on ${location} is lost because its files were removed. Restart the server` }];
}
