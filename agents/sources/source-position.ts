import { createHash } from 'node:crypto';
import { type Checkpoint, checkpointKey } from '../../engine/index.js';

/** SHA-256 in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Number of bytes at the beginning of the content by which a source is looked up. The content hash distinguishes sources
 * that share them.
 */
export const headBytesMax = 1024;

/** The identity fields of a checkpoint for a source with this beginning. */
export function headIdentity(head: Uint8Array): Pick<Checkpoint, 'headHash' | 'headBytes'> {
  return { headHash: sha256(head), headBytes: head.length };
}

/** Content is sampled every 16 bytes up to here, because a log may be short, and then at steps of an eighth of the offset. */
const denseBytes = 2048;
const stepBytes = 16;

/** Bytes before an offset that its sample covers: a line of a log, with its time. */
const sampledBytes = 128;

/** Characters of each sample, 18 bits. */
const characters = 3;

/** Stands for a sample whose bytes were not at hand. */
const unknown = '.'.repeat(characters);

function nextOffset(offset: number): number {
  return offset + (offset < denseBytes ? stepBytes : Math.floor(offset / 8));
}

function sampleOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, characters);
}

/**
 * Extends the samples of content up to `from` by `contentBytes` more bytes, which begin with `bytes`. `tail` are the last
 * bytes before `from`. Samples are hashes of the bytes before a series of offsets, the same for all content. Thus the
 * samples of the beginning of a content are the beginning of its samples.
 */
export function grownSamples(
  samples: string,
  from: number,
  tail: Uint8Array,
  bytes: Uint8Array,
  contentBytes = bytes.length,
): string {
  let grown = samples;
  let offset = 0;
  for (let left = samples.length; left >= 0; left -= characters) offset = nextOffset(offset);
  for (; offset <= from + contentBytes; offset = nextOffset(offset)) {
    const start = Math.max(0, offset - sampledBytes) - from;
    const end = offset - from;
    if (end <= 0 || end > bytes.length || -start > tail.length) grown += unknown;
    else if (start >= 0) grown += sampleOf(bytes.subarray(start, end));
    else grown += sampleOf(Buffer.concat([tail.subarray(tail.length + start), bytes.subarray(0, end)]));
  }
  return grown;
}

/** Samples the first `contentBytes` bytes of content whose bytes `read` returns. Throws what `read` throws. */
export async function samplesOf(
  contentBytes: number,
  read: (offset: number, length: number) => Promise<Uint8Array>,
): Promise<string> {
  let samples = '';
  for (let offset = nextOffset(0); offset <= contentBytes; offset = nextOffset(offset)) {
    const length = Math.min(offset, sampledBytes);
    const bytes = await read(offset - length, length);
    samples += bytes.length === length ? sampleOf(bytes) : unknown;
  }
  return samples;
}

/** The samples of the first `contentBytes` bytes of content with the given samples. */
export function samplesTo(samples: string, contentBytes: number): string {
  let count = 0;
  for (let offset = nextOffset(0); offset <= contentBytes; offset = nextOffset(offset)) count++;
  return samples.slice(0, count * characters);
}

/** Up to where two contents are alike as far as their samples show, and from where they differ (Infinity: nowhere). */
export function alike(a: string, b: string): { readonly to: number; readonly differs: number } {
  let to = 0;
  let offset = 0;
  for (let at = 0; at < Math.min(a.length, b.length); at += characters) {
    offset = nextOffset(offset);
    const [one, other] = [a.slice(at, at + characters), b.slice(at, at + characters)];
    if (one === other && one !== unknown) to = offset;
    else if (one !== unknown && other !== unknown) return { to, differs: offset };
  }
  return { to, differs: Infinity };
}

/** Number of bytes before an offset by which content without a whole-content hash is recognised: a few lines, with their times. */
export const tailBytesMax = 512;

/** The last bytes of content that ended with `tail` and continues with `bytes`. A copy. */
export function contentTail(tail: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length >= tailBytesMax) return bytes.slice(bytes.length - tailBytesMax);
  const kept = tail.subarray(Math.max(0, tail.length + bytes.length - tailBytesMax));
  const result = new Uint8Array(kept.length + bytes.length);
  result.set(kept);
  result.set(bytes, kept.length);
  return result;
}

/** A position in content, and the bytes by which it is recognised there. */
export interface ContentPosition {
  /** Offset of the first content byte behind it. */
  readonly offset: number;
  /** The first bytes of the content before `offset`, at most `headBytesMax`. */
  readonly head: Uint8Array;
  /** The last bytes before `offset`, at most `tailBytesMax`. */
  readonly tail: Uint8Array;
  /** Samples of the content before `offset`, as `grownSamples` takes them. */
  readonly samples: string;
}

const nothing = new Uint8Array(0);

/** The beginning of any content. */
export const contentBeginning: ContentPosition = { offset: 0, head: nothing, tail: nothing, samples: '' };

/**
 * The position after `contentBytes` more bytes of content, which begin with `bytes`. Where `bytes` is only a part of them,
 * `newTail` must be their last bytes.
 */
export function contentBehind(
  { offset, head, tail, samples }: ContentPosition,
  bytes: Uint8Array,
  contentBytes = bytes.length,
  newTail: Uint8Array | null = null,
): ContentPosition {
  return {
    offset: offset + contentBytes,
    head: grownHead(head, bytes),
    tail: newTail ?? contentTail(tail, bytes),
    samples: grownSamples(samples, offset, tail, bytes, contentBytes),
  };
}

/** What must be known of the content before an offset to read it on from there. */
export interface Reading {
  /** The header in force, of a table; absent where none has come, or the agent's file has the columns. */
  readonly header?: string;
}

/** The form in which a checkpoint holds what must be known to read on. */
export function readingText(reading: Reading | undefined): Pick<Checkpoint, 'reading'> {
  return reading === undefined ? {} : { reading: JSON.stringify(reading) };
}

/** What must be known to read on from a checkpoint; undefined where it does not say. */
export function readingOf({ reading }: Pick<Checkpoint, 'reading'>): Reading | undefined {
  if (reading === undefined) return undefined;
  const { header } = JSON.parse(reading) as Reading;
  return header === undefined ? {} : { header };
}

/** Up to where a source is stored. Immutable: taking lines gives a new one. */
export interface SourcePosition extends ContentPosition {
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
  /** Undefined where nothing must be known to read on, or it is not known. */
  readonly reading?: Reading | undefined;
}

/** Position of a source of which nothing is stored. */
export const beginning: SourcePosition = {
  ...contentBeginning,
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
    reading: readingOf(checkpoint),
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
  }: {
    readonly path: string;
    readonly status: { readonly inode: string; readonly bornMs: number | null };
    readonly target: string | null;
  },
): Checkpoint {
  const { inode, bornMs } = status;
  const {
    offset,
    head,
    tail,
    samples,
    endsInLine,
    key,
    lastTimeMs,
    records,
    rejected,
    packedBytes,
    reading,
  } = position;
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
    ...readingText(reading),
  };
}
