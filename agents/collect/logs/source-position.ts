import { type Checkpoint, checkpointKey } from '../../../engine/index.js';
import { sha256, contentTail, tailBytesMax, grownSamples, samplesTo } from '../../sources/source-reader.js';
import { headBytesMax, headIdentity } from '../../sources/source-identity.js';
import type { FileStatus } from './log-files.js';

/** Up to where a source is stored, and the bytes by which it is recognised there. Immutable: taking lines gives a new one. */
export interface SourcePosition {
  /** Offset of the first content byte that is not stored. */
  readonly offset: number;
  /** The first bytes of the content before `offset`, at most `headBytesMax`. */
  readonly head: Uint8Array;
  /** The last bytes before `offset`, at most `tailBytesMax`. */
  readonly tail: Uint8Array;
  /** Samples of the content before `offset`, as `grownSamples` takes them. */
  readonly samples: string;
  /** Whether the stored content ends inside a line. */
  readonly endsInLine: boolean;
  /** Key of the checkpoint that the next one replaces; null for none. */
  readonly key: string | null;
  readonly lastTimeMs: number | null;
  readonly records: number;
  readonly rejected: number;
  /** Offset up to which the content was written while nobody followed it; records before it do not count as late. */
  readonly unseenTo: number;
  /** Size of the compressed file whose content ends at `offset`; null where it is not known, or the file is not compressed. */
  readonly packedBytes: number | null;
}

const nothing = new Uint8Array(0);

/** Position of a source of which nothing is stored. */
export const beginning: SourcePosition = {
  offset: 0,
  head: nothing,
  tail: nothing,
  samples: '',
  endsInLine: false,
  key: null,
  lastTimeMs: null,
  records: 0,
  rejected: 0,
  unseenTo: 0,
  packedBytes: null,
};

/** The position that a checkpoint gives, with the file's bytes there. The content up to `unseenTo` was written while nobody followed. */
export function positionOf(
  checkpoint: Checkpoint,
  head: Uint8Array,
  tail: Uint8Array,
  unseenTo: number,
): SourcePosition {
  const { offset, endsInLine, lastTimeMs, records, rejected, contentHash, samples = '' } = checkpoint;
  return {
    offset,
    head: head.slice(0, Math.min(headBytesMax, offset)),
    tail: tail.slice(-tailBytesMax),
    samples: samplesTo(samples, offset),
    endsInLine,
    // A load's checkpoint is not replaced: other files with the same content may be recognised by it.
    key: contentHash === null ? checkpointKey(checkpoint) : null,
    lastTimeMs,
    records,
    rejected,
    unseenTo,
    packedBytes: null,
  };
}

/**
 * The position after `contentBytes` more bytes of content, which begin with `bytes`. Where `bytes` is only a part of them,
 * `tail` must be their last bytes.
 */
export function positionBehind(
  position: SourcePosition,
  bytes: Uint8Array,
  contentBytes = bytes.length,
  tail: Uint8Array | null = null,
): SourcePosition {
  return {
    ...position,
    offset: position.offset + contentBytes,
    head: grownHead(position.head, bytes),
    tail: tail ?? contentTail(position.tail, bytes),
    samples: grownSamples(position.samples, position.offset, position.tail, bytes, contentBytes),
  };
}

/** Extends the first bytes of content, `head`, by the bytes that follow; at most `headBytesMax` in all. */
export function grownHead(head: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (head.length >= headBytesMax) return head;
  const added = bytes.subarray(0, headBytesMax - head.length);
  const grown = new Uint8Array(head.length + added.length);
  grown.set(head);
  grown.set(added, head.length);
  return grown;
}

/** The checkpoint to commit for a position. */
export function checkpointAt(
  position: SourcePosition,
  {
    path,
    status,
    target,
  }: { readonly path: string; readonly status: FileStatus; readonly target: string | null },
): Checkpoint {
  const { inode, bornMs } = status;
  const { offset, head, tail, samples, endsInLine, key, lastTimeMs, records, rejected, packedBytes } =
    position;
  return {
    ...headIdentity(head),
    contentHash: null,
    tailHash: sha256(tail),
    samples,
    inode,
    ...(bornMs === null ? {} : { bornMs }),
    ...(packedBytes === null ? {} : { packedBytes }),
    offset,
    endsInLine,
    ...(key === null ? {} : { continues: key }),
    path,
    ...(target === null ? {} : { target }),
    lastTimeMs,
    records,
    rejected,
  };
}
