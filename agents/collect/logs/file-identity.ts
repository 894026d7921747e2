import { type Checkpoint, checkpointKey, ContentHash, placementField } from '../../../engine/index.js';
import { feedEnd } from '../../decode/line-framing.js';
import type { RecordEndsOf } from '../../decode/record-ends.js';
import { candidatesOf, isBeginningOf, isCompressed, knownBeginnings } from '../../sources/source-cursor.js';
import type { DecodeSettings } from '../../decode/decode-task.js';
import { headersOf, readingBehind } from '../../decode/table-headers.js';
import { timeSlackMs } from './agent-files.js';
import { CompressedSource, type SampledContent } from './compressed-source.js';
import { findCutBack, findTrimmed, timesIn, type LineTimes } from './cut-back.js';
import type { FollowedFile } from './followed-file.js';
import { readAt, type FileStatus, type LogHandle } from './log-files.js';
import type { FollowedContent, Identity } from './log-state.js';
import {
  alike,
  beginning,
  headBytesMax,
  positionOf,
  readingOf,
  samplesOf,
  sha256,
  tailBytesMax,
  type SourcePosition,
} from '../../sources/source-position.js';
import type { CollectLog } from './collect-log.js';

/** What identification needs besides the file itself. */
export interface IdentityContext {
  readonly checkpoints: readonly Checkpoint[];
  /** The agent's files by inode, including this one. */
  readonly files: ReadonlyMap<string, FollowedFile>;
  /** The handle of a file that is open; else null. */
  readonly opened: (file: FollowedFile) => LogHandle | null;
  /** The name before rotation of the log at a path; undefined where the path is not one of the agent's. */
  readonly baseOf: (path: string) => string | undefined;
  /** Inodes of files that were seen to be removed: a new file under their name is another one. */
  readonly removed: ReadonlySet<string>;
  /** Contents that were truncated while they were read. */
  readonly truncated: readonly TruncatedSource[];
  /** When the agent was first followed: older generations are history. */
  readonly firstStartMs: number;
  /** Number of last lines to take of what existed when the agent was first followed; 0 for all. */
  readonly limitLines: number;
  readonly nowMs: number;
  /** How the agent's lines form records. */
  readonly endsOf: RecordEndsOf;
  /** How the lines are decoded. */
  readonly settings: DecodeSettings;
}

/** What was known about a source when its content was truncated. */
export interface TruncatedSource {
  readonly base: string;
  readonly key: string | null;
  readonly position: SourcePosition;
  /** Its first bytes, stored or not. */
  readonly begun: Uint8Array;
  /** Bytes that existed and had not been read. */
  unreadBytes: number;
}

/** A compressed file, or one that is shorter than it was, is read only after it has not changed for this long: it may still be written. */
const quietMs = 2000;

const readPieceBytes = 64 * 1024;

/** Limit on the bytes that are searched for a file's last lines. A hole, or a line without an end, may be terabytes long. */
const lastBytesMax = 256 * 1024 * 1024;

/**
 * Identifies a file and the position from which it is read on. Uses device and inode number, the beginning of the content,
 * and the bytes before the offset of a checkpoint; names only tell which files may be copies of one another. Throws Node's
 * errors of reading, and `SourceError`.
 */
export async function identify(
  file: FollowedFile,
  handle: LogHandle,
  context: IdentityContext,
): Promise<Identity> {
  const identity = await identityOf(file, handle, context);
  const { definition } = context.settings;
  if (identity.kind !== 'follow' || headersOf(definition) === null) return identity;
  const { position, head, known } = identity;
  if (position.offset === 0 || position.reading !== undefined) return identity;
  // The header in force there is found by reading the table from its beginning.
  let at = 0;
  const next = async (): Promise<Uint8Array | null> => {
    const piece = await readAt(handle, at, Math.min(readPieceBytes, position.offset - at));
    at += piece.length;
    return piece.length === 0 ? null : piece;
  };
  const { reading, offset } = await readingBehind(definition, { path: file.path, next }, head);
  // The last lines may begin inside a row.
  const from = known === null ? await positionAt(handle, offset, head) : position;
  return { ...identity, position: { ...from, unseenTo: position.unseenTo, reading } };
}

async function identityOf(
  file: FollowedFile,
  handle: LogHandle,
  context: IdentityContext,
): Promise<Identity> {
  const status = await handle.status();
  // Only content identifies a file, and a copy that is being made is empty at first.
  if (status.sizeBytes === 0) return { kind: 'waiting' };
  const head = await readAt(handle, 0, Math.min(headBytesMax, status.sizeBytes));
  if (isCompressed(head)) return identifyCompressed(file, context);
  if (await waitsForReplaced(file, head, context)) return { kind: 'waiting' };
  const candidates = candidatesOf(context.checkpoints, head);
  const own = candidates.filter((one) => isOwn(one, file));
  // A load may have stored more of it from a copy.
  const ownOrLoaded = candidates.filter(
    (one) => own.length > 0 && (own.includes(one) || one.contentHash !== null),
  );
  const ownPosition =
    (await loadedFromLonger(file, handle, head, candidates, context)) ??
    (await longestMatch(handle, status, head, ownOrLoaded));
  if (ownPosition !== null) return { kind: 'follow', ...ownPosition, head };
  // If another file has all of a content, the log did not lose its end but was copied and truncated.
  const ofName = own.filter(
    (one) =>
      context.baseOf(one.path) === file.name.base && [file, undefined].includes(holderOf(one, context)),
  );
  const isQuiet = context.nowMs - file.state.unchangedSinceMs >= quietMs;
  const { settings, nowMs } = context;
  const reading = { settings, captures: file.name.captures, nowMs };
  const cutBack = await findCutBack(handle, status, ofName, reading);
  // All that is there is stored, and it was changed just now: the log may be written anew from its beginning.
  if (cutBack?.isBeginning === true && (!isQuiet || wasTruncated(cutBack.known, context)))
    return { kind: 'waiting' };
  if (cutBack !== null)
    return { kind: 'follow', ...(await storedTo(handle, status, head, cutBack)), head, cutBack };
  // Another file continues the content that this process stored.
  if (file.isGone && file.state.hasStored) return { kind: 'done' };
  const { sizeBytes } = status;
  const sampled = async (): Promise<SampledContent> => ({
    samples: await samplesTo(handle, sizeBytes),
    // One that may still grow may have been copied from what the other one has gained.
    bytes: isQuiet ? sizeBytes : 0,
  });
  if (file.rotated && (await isCopyOfPresent(file, head, context, sampled))) return { kind: 'waiting' };
  const free = freeCandidates(file, head, context);
  const found =
    (await longestMatch(handle, status, head, free)) ??
    (await findMoved(file, handle, status, head, reading, context));
  // A copy that lacks the last lines may also begin like what was stored before these.
  const isWhole = found !== null && found !== 'lost' && found.position.offset === status.sizeBytes;
  if (!isWhole && (await isStoredBeginning(file, handle, status, head, context))) return { kind: 'done' };
  if (found !== null && found !== 'lost')
    return isUnread(found.known, file, context) ? { kind: 'waiting' } : { kind: 'follow', ...found, head };
  if (isHistory(file, status, context)) return { kind: 'history' };
  // Lines that came after the first survey are new, however many they are.
  const { bytesWhenFound } = file.state;
  const isLimited = context.limitLines > 0 && bytesWhenFound <= status.sizeBytes;
  const start = isLimited ? await lastLines(handle, bytesWhenFound, head, context) : beginning;
  // A rotated generation that nobody has followed was written while the service was down.
  const unseenTo = file.rotated ? status.sizeBytes : 0;
  return {
    kind: 'follow',
    position: { ...start, unseenTo },
    known: null,
    head,
    isRewritten: found === 'lost',
  };
}

/** Whether the content of a checkpoint was truncated while it was followed, which no power cut does. */
function wasTruncated(known: Checkpoint, { truncated }: IdentityContext): boolean {
  return truncated.some(({ key }) => key === checkpointKey(known));
}

/** Finds the last stored line of a log of the same path in a log that has lost its beginning. */
async function findMoved(
  file: FollowedFile,
  handle: LogHandle,
  status: FileStatus,
  head: Uint8Array,
  reading: LineTimes,
  context: IdentityContext,
): Promise<{ position: SourcePosition; known: Checkpoint } | 'lost' | null> {
  if (file.rotated) return null;
  const before = context.checkpoints.filter((one) => one.path === file.path && isFree(one, file, context));
  const trimmed = await findTrimmed(handle, status.sizeBytes, before, reading);
  if (trimmed === null || trimmed === 'lost') return trimmed;
  const found = await storedTo(handle, status, head, trimmed);
  // The header may have been in the beginning that it has lost.
  return { ...found, position: { ...found.position, reading: readingOf(trimmed.known) } };
}

/** Finds out whether a load has stored all that a file without a name has, from a longer copy that is there. */
async function loadedFromLonger(
  file: FollowedFile,
  handle: LogHandle,
  head: Uint8Array,
  candidates: readonly Checkpoint[],
  { files }: IdentityContext,
): Promise<{ position: SourcePosition; known: Checkpoint } | null> {
  const { status } = file.state;
  const { sizeBytes } = status;
  const loads = candidates.filter((one) => isLongLoad(one) && one.offset > sizeBytes);
  if (!file.isGone || loads.length === 0) return null;
  const hash = new ContentHash();
  for (let at = 0; at < sizeBytes; at += readPieceBytes)
    hash.update(await readAt(handle, at, Math.min(readPieceBytes, sizeBytes - at)));
  const own = candidates.findLast((one) => isOwn(one, file)) ?? loads[0]!;
  const whole: Checkpoint = { ...own, offset: sizeBytes, contentHash: hash.digest() };
  for (const { place, name, isGone } of files.values()) {
    if (isGone || name.base !== file.name.base) continue;
    // If the other file can't be read, the lines are rather stored twice than lost.
    const found = await knownBeginnings(place, [whole, ...loads], () => {}).catch((): Checkpoint[] => []);
    if (found[0] === whole && found.length > 1)
      return storedTo(handle, status, head, { known: own, offset: sizeBytes });
  }
  return null;
}

/** Position of a file whose content up to `offset` is stored, although not all of it is where a checkpoint says. */
async function storedTo(
  handle: LogHandle,
  { sizeBytes }: FileStatus,
  head: Uint8Array,
  { known, offset }: { readonly known: Checkpoint; readonly offset: number },
): Promise<{ position: SourcePosition; known: Checkpoint }> {
  const tail = await tailBefore(handle, offset);
  const endsInLine = offset > 0 && tail.at(-1) !== 0x0a;
  const samples = await samplesTo(handle, offset);
  const position = positionOf({ ...known, offset, endsInLine, samples }, head, tail, sizeBytes);
  const key = known.contentHash === null ? checkpointKey(known) : null;
  return { position: { ...position, key, reading: undefined }, known };
}

/** Whether a file that was identified goes on where another one was read to, or behind. */
export function continues(
  file: FollowedFile,
  { position, head }: Extract<Identity, { kind: 'follow' }>,
  other: FollowedFile,
): boolean {
  if (other === file || other.followed === null) return false;
  const { position: before, begun } = other.followed;
  if (position.key !== null && before.key === position.key) return true;
  // A load may have stored more of the copy that took the other one's place.
  return (
    other.isGone &&
    file.replaces === other.inode &&
    before.offset <= position.offset &&
    beginsWith(head, begun) &&
    alike(before.samples, position.samples).differs === Infinity
  );
}

/** Whether the file whose name this one has taken is read first, because both may have the same lines. */
async function waitsForReplaced(
  { kind, replaces }: FollowedFile,
  head: Uint8Array,
  { files, opened }: IdentityContext,
): Promise<boolean> {
  const before = files.get(replaces ?? '');
  const content = before?.followed ?? null;
  const isUnknown = before?.isGone === true && ['new', 'waiting'].includes(before.kind);
  if (!isUnknown && (content === null || (kind !== 'new' && !hasUnread(content)))) return false;
  if (content !== null && beginsWith(head, content.begun)) return true;
  // It may have been written anew since it was read.
  const handle = opened(before!);
  const begun = handle === null ? null : await readAt(handle, 0, headBytesMax).catch(() => null);
  return begun !== null && begun.length > 0 && beginsWith(head, begun);
}

/** Whether there are lines that can be read, besides those that wait for the end of their record. */
function hasUnread({ seenBytes, position, rest }: FollowedContent): boolean {
  return seenBytes - position.offset > (rest?.bytes ?? 0);
}

/** Whether the file that continues a checkpoint may have lines that are not stored. */
function isUnread(known: Checkpoint, { kind, replaces }: FollowedFile, context: IdentityContext): boolean {
  const holder = holderOf(known, context);
  const before = holder?.followed ?? null;
  // What a load has stored of it has no key there.
  if (before === null || ![null, checkpointKey(known)].includes(before.position.key)) return false;
  const isNew = kind === 'new' && replaces === holder!.inode;
  return isNew || hasUnread(before);
}

/** The file that continues the content of a checkpoint: it may be a copy of the file that the checkpoint was made for. */
function holderOf(checkpoint: Checkpoint, { files }: IdentityContext): FollowedFile | undefined {
  const { contentHash, offset, tailHash } = checkpoint;
  const key = checkpointKey(checkpoint);
  let holder = files.get(checkpoint.inode ?? '');
  if (holder?.position?.key === key) return holder;
  for (const each of files.values()) {
    const { position } = each;
    // Where a load has stored a content, its files have no key. The last one has taken the place of the others.
    const mayBeLoaded = contentHash !== null && position?.key === null && position.offset === offset;
    if (position?.key === key || (mayBeLoaded && tailHash === sha256(position.tail))) holder = each;
  }
  return holder;
}

function beginsWith(head: Uint8Array, begun: Uint8Array): boolean {
  return Buffer.compare(begun, head.subarray(0, begun.length)) === 0;
}

async function identifyCompressed(file: FollowedFile, context: IdentityContext): Promise<Identity> {
  const { status, unchangedSinceMs, target } = file.state;
  const { settings, nowMs, firstStartMs } = context;
  const isQuiet = nowMs - unchangedSinceMs >= quietMs;
  let head: Uint8Array;
  try {
    head = await CompressedSource.head(file.place);
  } catch (error) {
    if (isQuiet) throw error;
    // It is too short for now: its writer has just begun.
    return { kind: 'waiting' };
  }
  const candidates = candidatesOf(context.checkpoints, head);
  const own = candidates.filter((one) => isOwn(one, file));
  // Stored completely, so it need not be decompressed again after each start.
  if (own.some(({ packedBytes }) => packedBytes === status.sizeBytes)) return { kind: 'done' };
  if (candidates.length === 0 && isHistory(file, status, context)) return { kind: 'history' };
  if (!isQuiet) return { kind: 'waiting' };
  // Beside the target of a link, a generation from before the agent may have been compressed since.
  const reading = { settings, captures: file.name.captures, nowMs };
  const [firstMs = Infinity] = target === null ? [] : await timesIn(head, reading);
  if (candidates.length === 0 && firstMs < firstStartMs) return { kind: 'history' };
  const sampled = await CompressedSource.sampled(file.place);
  const isKnown = own.some((one) => alike(one.samples ?? '', sampled.samples).differs === Infinity);
  const isCopy = !isKnown && (await isCopyOfPresent(file, head, context, () => Promise.resolve(sampled)));
  if (isCopy) return { kind: 'waiting' };
  const known = [...own, ...freeCandidates(file, head, context)];
  const source = await CompressedSource.open(file.place, known, wholesOf(file, context), context.endsOf);
  return { kind: 'packed', source, head };
}

function isHistory(file: FollowedFile, status: FileStatus, context: IdentityContext): boolean {
  const newest = context.firstStartMs - timeSlackMs;
  return file.rotated && !file.name.direct && status.modifiedMs < newest;
}

/** Whether following this very file made a checkpoint. A load's checkpoint is of content, wherever that lies. */
function isOwn(checkpoint: Checkpoint, file: FollowedFile): boolean {
  return checkpoint.contentHash === null && isMadeFor(checkpoint, file);
}

/** Whether a checkpoint was made for this very file: a removed file's number is given to another one, the time of its creation is not. */
function isMadeFor({ inode, bornMs }: Checkpoint, { inode: ofFile, state }: FollowedFile): boolean {
  const nowBornMs = state.status.bornMs;
  return inode === ofFile && (bornMs === undefined || nowBornMs === null || bornMs === nowBornMs);
}

/** Whether a load made a checkpoint, of enough bytes that another file that has them is a copy. */
function isLongLoad({ contentHash, headBytes }: Checkpoint): boolean {
  return contentHash !== null && headBytes === headBytesMax;
}

/** Checkpoints of content with this beginning that no other file continues. */
function freeCandidates(file: FollowedFile, head: Uint8Array, context: IdentityContext): Checkpoint[] {
  return candidatesOf(context.checkpoints, head).filter((candidate) => {
    const { inode, headBytes } = candidate;
    if (inode === undefined) return true;
    // A new log may begin with the same few lines as a removed one; that alone does not make it the same.
    const isNew =
      !file.rotated && inode !== file.inode && context.removed.has(inode) && headBytes < headBytesMax;
    if (isNew && !isReplaced(candidate, file, context)) return false;
    return isFree(candidate, file, context);
  });
}

/** Whether `file` has taken the name of the file that continues a checkpoint, and is that log if it has its content. */
function isReplaced(candidate: Checkpoint, file: FollowedFile, context: IdentityContext): boolean {
  const holder = holderOf(candidate, context);
  if (file.rotated || holder === undefined || !holder.isGone || holder.path !== file.path) return false;
  if (candidate.headBytes === headBytesMax) return true;
  // A few lines may also begin a new log, unless they have times and the name was never without a file.
  return file.replaces === holder.inode && placementField(context.settings.definition.schema) >= 0;
}

/** Whether the file that continues a checkpoint is another one than `file` and does not have that content any more. */
function isFree(candidate: Checkpoint, file: FollowedFile, context: IdentityContext): boolean {
  if (candidate.inode === undefined) return false;
  if (isReplaced(candidate, file, context) || (file.isGone && isLongLoad(candidate))) return true;
  const holder = holderOf(candidate, context);
  if (holder === undefined || holder === file || holder.kind === 'done') return true;
  if (holder.position !== null) return holder.position.key !== checkpointKey(candidate);
  // It may only have the number of that file.
  const base = context.baseOf(candidate.path);
  if (!isMadeFor(candidate, holder) || (base !== undefined && base !== holder.name.base)) return true;
  return holder.state.status.sizeBytes < candidate.offset || wasTruncated(candidate, context);
}

/** Followed logs of this name that are gone. A rotated file may hold the beginning of one: a copy that was made too early. */
function wholesOf(file: FollowedFile, context: IdentityContext): Checkpoint[] {
  if (!file.rotated) return [];
  return context.checkpoints.filter(
    (one) =>
      one.contentHash === null && context.baseOf(one.path) === file.name.base && isFree(one, file, context),
  );
}

/**
 * Whether another file that is still read begins alike. Then this file is a copy of that one, and is looked at again once
 * that one is gone.
 */
async function isCopyOfPresent(
  file: FollowedFile,
  head: Uint8Array,
  context: IdentityContext,
  sample: () => Promise<SampledContent>,
): Promise<boolean> {
  const stored = new Set(candidatesOf(context.checkpoints, head).map(({ inode }) => inode));
  let sampled: SampledContent | undefined;
  for (const other of context.files.values()) {
    if (other === file || other.name.base !== file.name.base) continue;
    // The other file has not been identified yet, but some of it is stored: it is identified first.
    if (other.kind === 'new' && stored.has(other.inode)) return true;
    // A damaged copy keeps no other one waiting.
    if (other.beingRead === null || (other.kind === 'packed' && other.state.failure !== null)) continue;
    // `begun` includes lines that are not stored yet, as of a file that waits for the end of its record.
    const { begun, position } = other.beingRead;
    const bytes = Math.min(begun.length, head.length);
    if (bytes === 0 || Buffer.compare(begun.subarray(0, bytes), head.subarray(0, bytes)) !== 0) continue;
    // All logs of a program may begin with the same banner.
    sampled ??= await sample();
    // It is no copy of a shorter log. What it has of one that is gone was stored from that one.
    const isLonger = !other.isGone && sampled.bytes > (other.followed?.seenBytes ?? Infinity);
    if (!isLonger && alike(position.samples, sampled.samples).differs === Infinity) return true;
  }
  return false;
}

/**
 * Whether the file is a copy that ends before what was read of the original, as when lines were written between the copying
 * and the removal: it has nothing new.
 */
async function isStoredBeginning(
  file: FollowedFile,
  handle: LogHandle,
  { sizeBytes }: FileStatus,
  head: Uint8Array,
  context: IdentityContext,
): Promise<boolean> {
  const longer = wholesOf(file, context).filter(({ offset }) => offset > sizeBytes);
  if (longer.length === 0) return false;
  const samples = await samplesTo(handle, sizeBytes);
  return longer.some((one) => isBeginningOf(one, head, samples));
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
      const position = positionOf(known, head, tail, sizeBytes);
      const samples = known.samples ?? (await samplesTo(handle, offset));
      return { position: { ...position, samples }, known };
    }
  }
  return null;
}

function samplesTo(handle: LogHandle, offset: number): Promise<string> {
  return samplesOf(offset, (at, length) => readAt(handle, at, length));
}

/** The last bytes before `offset`, by which a position is recognised. */
function tailBefore(handle: LogHandle, offset: number): Promise<Uint8Array> {
  const bytes = Math.min(tailBytesMax, offset);
  return readAt(handle, offset - bytes, bytes);
}

/** Position of the last `limitLines` complete lines among the first `sizeBytes` bytes; the beginning where they are longer than is searched. */
async function lastLines(
  handle: LogHandle,
  sizeBytes: number,
  head: Uint8Array,
  { limitLines, endsOf }: IdentityContext,
): Promise<SourcePosition> {
  const ends = endsOf(head);
  let left = limitLines;
  let inLastLine = true;
  for (let end = sizeBytes; end > 0 && sizeBytes - end < lastBytesMax;) {
    // A character has two bytes at most.
    const start = 2 * Math.floor(Math.max(0, end - readPieceBytes) / 2);
    const bytes = await readAt(handle, start, end - start);
    for (let at = bytes.lastIndexOf(0x0a); at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(0x0a, at - 1)) {
      const behind = feedEnd(ends, bytes, at);
      if (behind < 0) continue;
      // Searching backwards, the first line feed found ends the last complete line.
      if (inLastLine) inLastLine = false;
      else left--;
      if (left > 0) continue;
      return positionAt(handle, start + behind, head);
    }
    end = start;
  }
  return beginning;
}

/** Position of a file of which nothing is stored and nothing before `offset` is read. */
async function positionAt(handle: LogHandle, offset: number, head: Uint8Array): Promise<SourcePosition> {
  const tail = await tailBefore(handle, offset);
  const samples = await samplesTo(handle, offset);
  return { ...beginning, offset, head: head.slice(0, offset), tail, samples };
}

/** Warns where a file is recognised, but not all of its content is where it was. */
export function reportIdentity(log: CollectLog, agent: string, file: FollowedFile, identity: Identity): void {
  if (identity.kind !== 'follow') return;
  const { cutBack, isRewritten } = identity;
  const bytes = file.state.status.sizeBytes;
  if (cutBack !== undefined) {
    const { known, offset, isDated } = cutBack;
    const since = isDated
      ? 'where its lines become newer than the stored ones'
      : 'at its end, because its lines have no time that shows which are new';
    log.warn(
      { agent, file: file.path, bytes, stored: known.offset, from: offset },
      `a log has lost its end, of which some was stored, as in a power cut: ${known.offset} bytes are stored, it now has ${bytes}; ` +
        `reading continues at byte ${offset}, ${since}`,
    );
  }
  if (isRewritten === true)
    log.warn(
      { agent, file: file.path, bytes },
      'a log begins before the last line that was stored under its name, but that line was not found in it, as when its beginning ' +
        `was removed: all its ${bytes} bytes are read, and lines of it may be stored twice`,
    );
}

/**
 * Warns about logs that links led to, of which nothing was found beside the links' targets. Only of the log that a link led
 * to last, and only once: if the file that it leads to now was never read.
 */
export function reportLost(
  log: CollectLog,
  agent: string,
  files: readonly FollowedFile[],
  lost: readonly Checkpoint[],
  checkpoints: readonly Checkpoint[],
): void {
  for (const { path, target = path, offset, lastTimeMs } of lost) {
    const now = files.find((file) => file.path === path && file.state.target !== null);
    const isLast = checkpoints.every(
      (one) => one.path !== path || (one.lastTimeMs ?? 0) <= (lastTimeMs ?? 0),
    );
    if (now === undefined || !isLast || checkpoints.some(({ inode }) => inode === now.inode)) continue;
    log.warn(
      { agent, file: path, target, stored: offset },
      `the log that ${path} led to, ${target}, is gone, and is not beside it under a rotated name: ${offset} bytes of it are ` +
        'stored, and what was written to it after these is lost',
    );
  }
}
