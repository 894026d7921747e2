import { type Checkpoint, checkpointKey } from '../../../engine/index.js';
import { sha256 } from '../../sources/content-hash.js';
import { contentTail, tailBytesMax } from '../../sources/content-reader.js';
import { headBytesMax, headIdentity } from '../../sources/source-identity.js';

/** How far one source is stored, and by what it is recognised there. Never changed: taking lines gives another one. */
export interface SourcePosition {
  /** First byte of the content that is not stored. */
  readonly offset: number;
  /** The first bytes of the content before `offset`, at most `headBytesMax`. */
  readonly head: Uint8Array;
  /** The last bytes before `offset`, at most `tailBytesMax`. */
  readonly tail: Uint8Array;
  /** What is stored ends inside a line. */
  readonly endsInLine: boolean;
  /** The checkpoint that the next one takes the place of; null for none. */
  readonly key: string | null;
  readonly lastTimeMs: number | null;
  readonly records: number;
  readonly rejected: number;
  /** What stands before this byte was written while nobody followed: none of it is late. */
  readonly unseenTo: number;
  /** Length of the compressed file whose content ends at `offset`; null where that is not known, or for none. */
  readonly packedBytes: number | null;
}

const nothing = new Uint8Array(0);

/** The beginning of a source of which nothing is stored. */
export const beginning: SourcePosition = {
  offset: 0,
  head: nothing,
  tail: nothing,
  endsInLine: false,
  key: null,
  lastTimeMs: null,
  records: 0,
  rejected: 0,
  unseenTo: 0,
  packedBytes: null,
};

/**
 * Where a checkpoint says that a source stands, with the bytes of the source that stand there. Up to `unseenTo` nobody has
 * followed it since.
 */
export function positionOf(
  checkpoint: Checkpoint,
  head: Uint8Array,
  tail: Uint8Array,
  unseenTo: number,
): SourcePosition {
  const { offset, endsInLine, lastTimeMs, records, rejected, contentHash } = checkpoint;
  return {
    offset,
    head: head.slice(0, Math.min(headBytesMax, offset)),
    tail: tail.slice(-tailBytesMax),
    endsInLine,
    // A load's checkpoint stays: other files with the same content may be known by it.
    key: contentHash === null ? checkpointKey(checkpoint) : null,
    lastTimeMs,
    records,
    rejected,
    unseenTo,
    packedBytes: null,
  };
}

/**
 * The position behind content that begins with `bytes` and has `contentBytes`. Where those are more than are at hand, its
 * last bytes are given as `tail`.
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
  };
}

/** The beginning of content that began with `head` and goes on with `bytes`, at most `headBytesMax` of it. */
export function grownHead(head: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (head.length >= headBytesMax) return head;
  const added = bytes.subarray(0, headBytesMax - head.length);
  const grown = new Uint8Array(head.length + added.length);
  grown.set(head);
  grown.set(added, head.length);
  return grown;
}

/** The checkpoint to commit for a position. */
export function checkpointAt(position: SourcePosition, inode: string, path: string): Checkpoint {
  const { offset, head, tail, endsInLine, key, lastTimeMs, records, rejected, packedBytes } = position;
  return {
    ...headIdentity(head),
    contentHash: null,
    tailHash: sha256(tail),
    inode,
    ...(packedBytes === null ? {} : { packedBytes }),
    offset,
    endsInLine,
    ...(key === null ? {} : { continues: key }),
    path,
    lastTimeMs,
    records,
    rejected,
  };
}
