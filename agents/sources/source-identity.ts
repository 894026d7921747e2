import type { Checkpoint, LoadedPart } from '../../engine/index.js';
import {
  sha256,
  ContentReader,
  tailBytesMax,
  alike,
  grownSamples,
  changedWhileRead,
  SourceReader,
} from './source-reader.js';
import type { OpenFile } from './opened-file.js';

/**
 * Number of bytes at the beginning of the content by which a source is looked up. The content hash distinguishes sources
 * that share them.
 */
export const headBytesMax = 1024;

/** A source positioned at the end of its archived content. */
export interface PositionedSource {
  readonly reader: SourceReader;
  readonly content: ContentReader;
  /** The first bytes of the content, at most `headBytesMax`. */
  readonly head: Uint8Array;
  /** The checkpoint of what is already stored of it; null for a new source. */
  readonly known: Checkpoint | null;
  /** Where only a part is read: its end offset, and the latest time at which its content was written. */
  readonly part?: { readonly offset: number; readonly writtenMs: number };
}

/** The identity fields of a checkpoint for a source with this beginning. */
export function headIdentity(head: Uint8Array): Pick<Checkpoint, 'headHash' | 'headBytes'> {
  return { headHash: sha256(head), headBytes: head.length };
}

/**
 * The checkpoints that may belong to a source that begins with `head`, by ascending offset.
 *
 * @param isOther whether the file of a checkpoint is another one for its path alone
 */
export function candidatesOf(
  checkpoints: readonly Checkpoint[],
  head: Uint8Array,
  isOther: (path: string) => boolean = () => false,
): Checkpoint[] {
  const hashes = new Map<number, string>();
  const hashOf = (bytes: number): string => {
    const known = hashes.get(bytes) ?? sha256(head.subarray(0, bytes));
    hashes.set(bytes, known);
    return known;
  };
  return checkpoints
    .filter(
      ({ headBytes, headHash }) =>
        headBytes > 0 && headBytes <= head.length && headHash === hashOf(headBytes),
    )
    .filter(({ path }) => !isOther(path))
    .sort((a, b) => a.offset - b.offset);
}

/**
 * Whether content that begins with `head` and has the given samples is a beginning of a longer source, as far as the
 * samples of both show. They do not show it for content of less than 16 bytes.
 */
export function isBeginningOf(whole: Checkpoint, head: Uint8Array, samples: string): boolean {
  const beginsAlike = candidatesOf([whole], head).length > 0;
  // Stored by an earlier version, which took no samples.
  if (whole.samples === undefined) return beginsAlike && whole.headBytes === headBytesMax;
  const { to, differs } = alike(whole.samples, samples);
  return to > 0 && differs === Infinity && (beginsAlike || whole.headBytes > head.length);
}

/** Options of `openAtKnownEnd`. */
export interface KnownEndOptions {
  readonly openFile?: OpenFile | undefined;
  /**
   * Sources of which the file may hold only the beginning. If it does, it is positioned at its end, which is before the
   * offset of the checkpoint that is returned.
   */
  readonly wholes?: readonly Checkpoint[];
  /** See `candidatesOf`. */
  readonly isOther?: (path: string) => boolean;
}

/**
 * Opens a file at the end of its archived content. The content is hashed from its beginning, whatever the file's name and
 * compression; of the checkpoints whose content the file has, the longest wins. A checkpoint without a content hash (a
 * collector's) is matched by the beginning and by the bytes before its offset.
 *
 * A short file can't be distinguished from the beginning of another: once "a" is stored, a file "a b" counts as the same
 * file grown.
 *
 * @param checkpoints empty for a file that is to be stored whatever is known of it
 * @param onPiece called repeatedly while known content is skipped
 */
export async function openAtKnownEnd(
  path: string,
  checkpoints: readonly Checkpoint[],
  onPiece: (reader: SourceReader, content: ContentReader) => void,
  { openFile, wholes = [], isOther }: KnownEndOptions = {},
): Promise<PositionedSource> {
  const first = await openFromStart(path, openFile);
  try {
    const { head, content, reader } = first;
    const ofHead = grownSamples('', 0, new Uint8Array(0), head);
    const likely = wholes.filter((whole) => isBeginningOf(whole, head, ofHead));
    const candidates = candidatesOf(checkpoints, head, isOther).filter(({ offset }) =>
      mayReach(reader, offset),
    );
    const found = await matches(content, candidates, () => onPiece(reader, content));
    const known = found.at(-1) ?? null;
    const longest = Math.max(0, ...likely.map(({ offset }) => offset));
    const ends = (await content.skipTo(longest, () => onPiece(reader, content))) < longest;
    if (content.offset === (known?.offset ?? 0)) return { ...first, known };
    const samples = content.samples();
    const whole = likely.find((one) => one.offset > content.offset && isBeginningOf(one, head, samples));
    if (ends && whole !== undefined) return { ...first, known: whole };
    // `matches` has read past the known end to compare with a longer checkpoint, which belongs to another file.
    const again = await reopenAt(path, known, first.head, onPiece, openFile);
    await first.reader.close();
    return again;
  } catch (error) {
    await first.reader.close();
    throw error;
  }
}

/**
 * Whether a file that was read under this path is stored completely, judged by its beginning, its length and, unless it is
 * compressed, its end; what is between is not read. Throws `SourceError`.
 */
export async function isStoredAsItLies(
  path: string,
  checkpoints: readonly Checkpoint[],
  openFile?: OpenFile,
): Promise<boolean> {
  const ofPath = checkpoints.filter((checkpoint) => checkpoint.path === path);
  if (ofPath.length === 0) return false;
  const { reader, head } = await openFromStart(path, openFile);
  try {
    const candidates = candidatesOf(ofPath, head);
    if (reader.compression !== 'none')
      return candidates.some(({ packedBytes }) => packedBytes === reader.fileBytes);
    const whole = candidates.filter(({ offset }) => offset === reader.fileBytes);
    if (whole.length === 0) return false;
    const tailHash = sha256(await reader.fileEnd(tailBytesMax));
    return whole.some((checkpoint) => checkpoint.tailHash === tailHash);
  } finally {
    await reader.close();
  }
}

/** A source of which only the head has been read. */
export type OpenedSource = Omit<PositionedSource, 'known'>;

/** Opens a source and reads its head. Throws `SourceError`. */
export async function openFromStart(path: string, openFile?: OpenFile): Promise<OpenedSource> {
  const reader = await SourceReader.open(path, openFile);
  try {
    const content = new ContentReader(reader.content);
    return { reader, content, head: await content.head(headBytesMax) };
  } catch (error) {
    await reader.close();
    throw error;
  }
}

/** Opens a source again at the end of its archived content. Throws `SourceError` where the file has changed since. */
export async function reopenAt(
  path: string,
  known: Checkpoint | null,
  head: Uint8Array,
  onPiece: (reader: SourceReader, content: ContentReader) => void,
  openFile?: OpenFile,
): Promise<PositionedSource> {
  const source = await openFromStart(path, openFile);
  const offset = known?.offset ?? 0;
  const reached = await source.content.skipTo(offset, () => onPiece(source.reader, source.content));
  const same = reached === offset && Buffer.compare(source.head, head) === 0;
  if (same && (known === null || isContentOf(known, source.content))) return { ...source, known };
  await source.reader.close();
  throw changedWhileRead(path);
}

/** Whether the content may be as long as `offset`: uncompressed content can't be longer than the file. */
function mayReach(reader: SourceReader, offset: number): boolean {
  return reader.compression !== 'none' || offset <= reader.fileBytes;
}

/** The candidates (in ascending order of offset) whose content the source has. */
async function matches(
  content: ContentReader,
  candidates: readonly Checkpoint[],
  onPiece: () => void,
): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  for (const candidate of candidates) {
    if ((await content.skipTo(candidate.offset, onPiece)) < candidate.offset) break;
    if (isContentOf(candidate, content)) found.push(candidate);
  }
  return found;
}

/** The checkpoints whose content a file begins with, by ascending offset. */
export async function knownBeginnings(
  path: string,
  checkpoints: readonly Checkpoint[],
  onPiece: () => void,
  openFile?: OpenFile,
): Promise<Checkpoint[]> {
  const { reader, content, head } = await openFromStart(path, openFile);
  try {
    const candidates = candidatesOf(checkpoints, head).filter(({ offset }) => mayReach(reader, offset));
    return await matches(content, candidates, onPiece);
  } finally {
    await reader.close();
  }
}

/** Opens a file at the beginning of a part that a load has stored, so that it ends where the part ends. */
export async function openPart(
  path: string,
  { from, until, writtenMs }: LoadedPart,
  onPiece: () => void,
  openFile?: OpenFile,
): Promise<PositionedSource> {
  const source = await openFromStart(path, openFile);
  try {
    await source.content.skipTo(from?.offset ?? 0, onPiece);
    source.content.endAt(until.offset);
    return { ...source, known: from, part: { offset: until.offset, writtenMs } };
  } catch (error) {
    await source.reader.close();
    throw error;
  }
}

/** Throws `SourceError` unless the content that was read is that of a checkpoint. */
export function requireContentOf(checkpoint: Checkpoint, { content }: PositionedSource): void {
  if (content.offset === checkpoint.offset && isContentOf(checkpoint, content)) return;
  throw changedWhileRead(content.path);
}

function isContentOf({ contentHash, tailHash }: Checkpoint, content: ContentReader): boolean {
  if (contentHash !== null) return contentHash === content.digest();
  return tailHash === sha256(content.tail());
}
