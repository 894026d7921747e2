import { type Checkpoint, checkpointKey } from '../../../engine/index.js';
import { sha256 } from '../../sources/content-hash.js';
import { tailBytesMax } from '../../sources/content-reader.js';
import type { RecordEnds } from '../../lines/record-ends.js';
import { candidatesOf, headBytesMax } from '../../sources/source-identity.js';
import { isCompressed } from '../../sources/source-reader.js';
import type { DecodeSettings } from '../../frames/decode-task.js';
import { CompressedSource } from './compressed-source.js';
import { findCutBack } from './cut-back.js';
import type { FollowedFile } from './followed-file.js';
import type { FileStatus, LogHandle } from './log-files.js';
import type { Identity } from './log-state.js';
import { readAt } from './read-at.js';
import { beginning, positionOf, type SourcePosition } from './source-position.js';

/** What identity looks at beside the file itself. */
export interface IdentityContext {
  readonly checkpoints: readonly Checkpoint[];
  /** The agent's files by their inodes, this one included. */
  readonly files: ReadonlyMap<string, FollowedFile>;
  /** Files that were seen to be removed: what is new under their name is not they. */
  readonly removed: ReadonlySet<string>;
  /** Sources that were cut off while they were read. */
  readonly truncated: readonly TruncatedSource[];
  /** When the agent was followed first: older generations are history. */
  readonly firstStartMs: number;
  /** Lines to take of what was there when the agent was followed first; 0 for all. */
  readonly limitLines: number;
  readonly nowMs: number;
  /** How the agent's lines make records. */
  readonly ends: RecordEnds;
  /** How they are decoded. */
  readonly settings: DecodeSettings;
}

/** What was known of a source when its content was cut off. */
export interface TruncatedSource {
  readonly base: string;
  readonly key: string | null;
  readonly position: SourcePosition;
  /** What it began with, stored or not. */
  readonly begun: Uint8Array;
  /** Bytes that were there and had not been read. */
  unreadBytes: number;
}

/** A compressed file is taken for whole when it has been left alone for this long: it may still be written. */
const compressedQuietMs = 2000;

/** File systems keep times in steps of up to two seconds, and Linux takes them from a clock that is some milliseconds late. */
const timeSlackMs = 2000;

const readPieceBytes = 64 * 1024;

/**
 * Tells what a file is and where it is to be read on. It goes by the device and number, the beginning of the content, and
 * what stands before the offset that a checkpoint names; a name only says which files may be copies of one another.
 * Throws Node's errors of reading, and `SourceError`.
 */
export async function identify(
  file: FollowedFile,
  handle: LogHandle,
  context: IdentityContext,
): Promise<Identity> {
  const status = await handle.status();
  // What it is will be seen by its content. A copy that is just being made is empty at first.
  if (status.sizeBytes === 0) return { kind: 'waiting' };
  const head = await readAt(handle, 0, Math.min(headBytesMax, status.sizeBytes));
  if (isCompressed(head)) return identifyCompressed(file, context);
  const own = candidatesOf(context.checkpoints, head).filter(({ inode }) => inode === file.inode);
  const ownPosition = await longestMatch(handle, status, head, own);
  if (ownPosition !== null) return { kind: 'follow', ...ownPosition, head };
  const cutBack = await findCutBack(handle, status.sizeBytes, own, {
    settings: context.settings,
    captures: file.name.captures,
    nowMs: context.nowMs,
  });
  if (cutBack !== null) {
    const { known, offset } = cutBack;
    const tail = await tailBefore(handle, offset);
    const endsInLine = offset > 0 && tail.at(-1) !== 0x0a;
    const position = positionOf({ ...known, offset, endsInLine }, head, tail, status.sizeBytes);
    return { kind: 'follow', position: { ...position, key: checkpointKey(known) }, known, head, cutBack };
  }
  // Somebody else has gone on with what it had.
  if (file.gone && file.state.hasStored) return { kind: 'done' };
  if (file.rotated && isCopyOfPresent(file, head, context)) return { kind: 'waiting' };
  const free = freeCandidates(file, head, context);
  const position = await longestMatch(handle, status, head, free);
  if (position !== null) return { kind: 'follow', ...position, head };
  if (file.rotated && isShortCopy(file, status, head, free, context)) return { kind: 'done' };
  if (isHistory(file, status, context)) return { kind: 'history' };
  // What came after the first look is new, however many lines it has.
  const { thereBytes } = file.state;
  const isLimited = context.limitLines > 0 && thereBytes <= status.sizeBytes;
  const start = isLimited ? await lastLines(handle, thereBytes, head, context.limitLines) : beginning;
  // A generation that nobody has followed was written while the service was down.
  const unseenTo = file.rotated ? status.sizeBytes : 0;
  return { kind: 'follow', position: { ...start, unseenTo }, known: null, head };
}

async function identifyCompressed(file: FollowedFile, context: IdentityContext): Promise<Identity> {
  const { status, unchangedSinceMs } = file.state;
  const head = await CompressedSource.head(file.path);
  const candidates = candidatesOf(context.checkpoints, head);
  const own = candidates.filter(({ inode }) => inode === file.inode);
  // All of it is stored, and need not be unpacked once more after each start.
  if (own.some(({ packedBytes }) => packedBytes === status.sizeBytes)) return { kind: 'done' };
  if (candidates.length === 0 && isHistory(file, status, context)) return { kind: 'history' };
  if (context.nowMs - unchangedSinceMs < compressedQuietMs) return { kind: 'waiting' };
  if (own.length === 0 && isCopyOfPresent(file, head, context)) return { kind: 'waiting' };
  const known = [...own, ...freeCandidates(file, head, context)];
  return { kind: 'packed', source: await CompressedSource.open(file.path, known, context.ends), head };
}

function isHistory(file: FollowedFile, status: FileStatus, context: IdentityContext): boolean {
  const newest = context.firstStartMs - timeSlackMs;
  return file.rotated && !file.name.direct && status.modifiedMs < newest;
}

/** Checkpoints of content like this that no other file goes on from. */
function freeCandidates(file: FollowedFile, head: Uint8Array, context: IdentityContext): Checkpoint[] {
  const { removed, files } = context;
  return candidatesOf(context.checkpoints, head).filter((candidate) => {
    const { inode, offset, headBytes } = candidate;
    if (inode === undefined || inode === file.inode) return inode === undefined;
    // A log that begins with the same few lines as one that was removed is no less new for that.
    if (!file.rotated && removed.has(inode) && headBytes < headBytesMax) return false;
    const holder = files.get(inode);
    if (holder === undefined) return true;
    if (holder.position !== null) return holder.position.key !== checkpointKey(candidate);
    return holder.state.status.sizeBytes < offset;
  });
}

/** Whether a file that is still read begins alike: then it is that one's copy, and is looked at when that one has gone. */
function isCopyOfPresent(file: FollowedFile, head: Uint8Array, context: IdentityContext): boolean {
  const stored = new Set(candidatesOf(context.checkpoints, head).map(({ inode }) => inode));
  for (const other of context.files.values()) {
    if (other === file || other.name.base !== file.name.base) continue;
    // Nobody has found out yet what that one is, of which something is stored: that comes first.
    if (other.kind === 'new' && stored.has(other.inode)) return true;
    if (other.followed === null) continue;
    // Also of what waits for its end, of which nothing is stored yet.
    const { begun } = other.followed;
    const bytes = Math.min(begun.length, head.length);
    if (bytes > 0 && Buffer.compare(begun.subarray(0, bytes), head.subarray(0, bytes)) === 0) return true;
  }
  return false;
}

/** A copy that was made before lines were written which were read: it has nothing new. */
function isShortCopy(
  file: FollowedFile,
  { sizeBytes }: FileStatus,
  head: Uint8Array,
  free: readonly Checkpoint[],
  context: IdentityContext,
): boolean {
  if (free.some(({ offset, headBytes }) => headBytes === headBytesMax && offset >= sizeBytes)) return true;
  return context.truncated.some(({ base, position }) => {
    if (base !== file.name.base || position.offset < sizeBytes) return false;
    const begun = position.head;
    return Buffer.compare(begun.subarray(0, head.length), head.subarray(0, begun.length)) === 0;
  });
}

async function longestMatch(
  handle: LogHandle,
  { sizeBytes }: FileStatus,
  head: Uint8Array,
  candidates: readonly Checkpoint[],
): Promise<{ position: SourcePosition; known: Checkpoint } | null> {
  for (const known of candidates.toReversed()) {
    const { offset } = known;
    if (offset > sizeBytes) continue;
    const tail = await tailBefore(handle, offset);
    if (known.tailHash === sha256(tail)) {
      return { position: positionOf(known, head, tail, sizeBytes), known };
    }
  }
  return null;
}

/** The last bytes before `offset`, by which a position is known. */
function tailBefore(handle: LogHandle, offset: number): Promise<Uint8Array> {
  const bytes = Math.min(tailBytesMax, offset);
  return readAt(handle, offset - bytes, bytes);
}

/** Where the last `lines` whole lines of the first `sizeBytes` begin. */
async function lastLines(
  handle: LogHandle,
  sizeBytes: number,
  head: Uint8Array,
  lines: number,
): Promise<SourcePosition> {
  let left = lines;
  let inLastLine = true;
  for (let end = sizeBytes; end > 0;) {
    const start = Math.max(0, end - readPieceBytes);
    const bytes = await readAt(handle, start, end - start);
    for (let at = bytes.lastIndexOf(0x0a); at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(0x0a, at - 1)) {
      // The first end met is that of the last whole line.
      if (inLastLine) inLastLine = false;
      else left--;
      if (left > 0) continue;
      const offset = start + at + 1;
      const tail = await tailBefore(handle, offset);
      return { ...beginning, offset, head: head.slice(0, offset), tail };
    }
    end = start;
  }
  return beginning;
}
