import {
  closing,
  type Checkpoint,
  ContentHash,
  isObjectPath,
  type LoadedPart,
  checkpointKey,
  isLogstrataError,
} from '../../engine/index.js';
import { PeekedSource, type ByteSource, describeSystemError, SourceError } from './byte-source.js';
import { GzipSource, ZstdSource } from './compression.js';
import { openOnDisk, type OpenedFile, type OpenFile } from './opened-file.js';
import { shellPath } from './paths.js';
import {
  alike,
  contentBeginning,
  contentBehind,
  grownSamples,
  headBytesMax,
  sha256,
  tailBytesMax,
  type ContentPosition,
} from './source-position.js';

/** Compression of a source, recognised by its first bytes, never by its name. */
export type Compression = 'none' | 'gzip' | 'zstd';

interface Signature {
  readonly bytes: readonly number[];
  /** The compression; for a format that is not supported, its name and the command that unpacks it. */
  readonly format: Compression | { readonly name: string; readonly unpack: string };
}

/** First bytes of files by which their format is recognised (RFC 1952; RFC 8878; the other formats' specifications). */
const signatures: readonly Signature[] = [
  { bytes: [0x1f, 0x8b, 0x08], format: 'gzip' },
  { bytes: [0x28, 0xb5, 0x2f, 0xfd], format: 'zstd' },
  // The sixteen magic numbers of a skippable frame, which may precede the first zstd frame.
  ...Array.from({ length: 16 }, (_, i): Signature => ({
    bytes: [0x50 + i, 0x2a, 0x4d, 0x18],
    format: 'zstd',
  })),
  { bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], format: { name: 'xz', unpack: 'xz -dc' } },
  { bytes: [0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59], format: { name: 'bzip2', unpack: 'bzip2 -dc' } },
  { bytes: [0x04, 0x22, 0x4d, 0x18], format: { name: 'lz4', unpack: 'lz4 -dc' } },
  { bytes: [0x50, 0x4b, 0x03, 0x04], format: { name: 'zip', unpack: 'unzip -p' } },
  { bytes: [0x1f, 0x9d], format: { name: 'compress', unpack: 'uncompress -c' } },
];

const lineBreak = 0x0a;

/** Whether bytes begin like a compressed file of a supported format. */
export function isCompressed(head: Uint8Array): boolean {
  return signatures.some(
    ({ bytes, format }) => typeof format === 'string' && bytes.every((byte, i) => byte === head[i]),
  );
}

/**
 * Reads the content of a file or a stream once, decompressed where necessary, so that it can be recognised: its beginning can
 * be looked at, a part can be skipped, and the position is known behind what was skipped or taken. Who reads content by `next`
 * says by `take` which bytes became part of the archive.
 */
export class SourceCursor extends PeekedSource {
  /** The first bytes of a file's content, at most `headBytesMax`. */
  head: Uint8Array = new Uint8Array(0);
  /** The checkpoint of what is already stored of it; null for a new source. */
  known: Checkpoint | null = null;
  /** Where only a part is read: its end offset, and the latest time at which its content was written. */
  part: { readonly offset: number; readonly writtenMs: number } | undefined;
  /** Position behind the last byte that was taken. */
  position: ContentPosition = contentBeginning;
  private readonly hash = new ContentHash();
  /** Number of bytes that may still be returned. */
  private left = Infinity;

  private constructor(
    content: ByteSource,
    readonly compression: Compression,
    private readonly opened: OpenedFile | null,
  ) {
    super(content);
  }

  /**
   * Recognises the compression of `raw`. Waits for no more bytes than needed, so that a slow stream is not held up. Throws
   * `SourceError` for an unsupported compression, and for a tar archive.
   */
  static async of(raw: ByteSource, file: OpenedFile | null = null): Promise<SourceCursor> {
    const { path } = raw;
    const unsupported = (what: string, unpack: string): SourceError => {
      const message = `${path} is ${what} ${unpack} | logstrata load AGENT -`;
      return new SourceError('unsupported', message, { path, offset: 0 });
    };
    const shown = path === '-' ? '…' : path;
    const peeked = new PeekedSource(raw);
    const format = await formatOf(peeked);
    if (typeof format === 'object') {
      const what = `compressed with ${format.name}, which is not supported (only gzip and zstd are). Decompress it, or pipe it:`;
      throw unsupported(what, `${format.unpack} ${shown}`);
    }
    const cursor = new SourceCursor(decompressed(format, peeked), format, file);
    if (!(await isTar(cursor))) return cursor;
    const what = 'a tar archive, which is not supported. Unpack it, or pipe the logs in it:';
    throw unsupported(what, `tar -xOf ${shown} NAME…`);
  }

  /** Opens the file at `path`, at its beginning. Throws `SourceError` when it can't be read or is not a regular file. */
  static async open(path: string, openFile: OpenFile = openOnDisk): Promise<SourceCursor> {
    const file = await openFile(path);
    try {
      const cursor = await SourceCursor.of(file.bytes, file);
      cursor.head = (await cursor.peek(headBytesMax)).slice();
      return cursor;
    } catch (error) {
      await file.bytes.close();
      throw error instanceof SourceError ? error : describeSystemError(error, path);
    }
  }

  /** The file; only where `open` has opened it. */
  get file(): OpenedFile {
    return this.opened!;
  }

  /** Content offset behind the last byte that was taken. */
  get offset(): number {
    return this.position.offset;
  }

  /** Skips the content up to `offset`, as taken. Returns the offset reached, which is less where the content ends before. */
  async skipTo(offset: number, onPiece: (cursor: this) => void = () => {}): Promise<number> {
    while (this.offset < offset) {
      const piece = await this.next();
      if (piece === null) break;
      const bytes = Math.min(piece.length, offset - this.offset);
      this.take(piece.subarray(0, bytes));
      this.giveBack(piece.subarray(bytes));
      onPiece(this);
    }
    return this.offset;
  }

  /** Makes the content end at `offset`, which must not have been passed. All content that was returned must have been taken. */
  endAt(offset: number): void {
    this.left = offset - this.offset;
  }

  override async next(): Promise<Uint8Array | null> {
    if (this.left === 0) return null;
    const piece = await super.next();
    if (piece === null) return null;
    const given = piece.subarray(0, this.left);
    this.left -= given.length;
    return given;
  }

  override get nextInto(): ByteSource['nextInto'] {
    const nextInto = super.nextInto;
    if (nextInto === undefined) return undefined;
    return async (target) => {
      const length = await nextInto(target.subarray(0, this.left));
      this.left -= length;
      return length;
    };
  }

  /** Adds content to what is known of it, in order. */
  take(bytes: Uint8Array): void {
    this.hash.update(bytes);
    this.position = contentBehind(this.position, bytes);
  }

  /** The hash of the content up to `offset`, in the form of checkpoints. */
  digest(): string {
    return this.hash.digest();
  }

  /** Whether the content that was taken is that of a checkpoint, as far as the checkpoint shows. */
  hasContentOf({ contentHash, tailHash }: Checkpoint): boolean {
    if (contentHash !== null) return contentHash === this.digest();
    return tailHash === sha256(this.position.tail);
  }

  /** Throws `SourceError` unless the content that was taken is that of a checkpoint. */
  requireContentOf(checkpoint: Checkpoint): void {
    if (this.offset !== checkpoint.offset || !this.hasContentOf(checkpoint))
      throw changedWhileRead(this.path);
  }

  /** A shell command that prints the content. */
  get unpackCommand(): string {
    const name = shellPath(this.path);
    const isObject = isObjectPath(this.path);
    const program = { none: 'cat', gzip: 'gzip -dc', zstd: 'zstd -dc' }[this.compression];
    return isObject ? `aws s3 cp ${name} - | ${program}` : `${program} ${name}`;
  }

  /** The last bytes of the file as of opening, at most `bytesMax`. */
  async fileEnd(bytesMax: number): Promise<Uint8Array> {
    const length = Math.min(bytesMax, this.file.size);
    return this.file.read(this.file.size - length, length);
  }

  /** Whether the file has grown since it was opened, which means that it is being written to. A stream only ends. */
  async hasGrown(): Promise<boolean> {
    return this.opened !== null && (await this.opened.now()).size > this.opened.size;
  }

  /** Throws `SourceError` when the file has shrunk, or was written to without having grown. Where it is not compressed, its head is compared again. */
  async requireUnchanged(): Promise<void> {
    const { file, path, head } = this;
    const now = await file.now();
    if (now.size < file.size)
      throw new SourceError(
        'io',
        `${path} shrank while it was read, from ${file.size} to ${now.size} bytes`,
        {
          path,
        },
      );
    if (now.size === file.size && now.mtimeMs === file.mtimeMs) return;
    const appended = now.size > file.size && this.compression === 'none';
    if (!appended || Buffer.compare(await file.read(0, head.length), head) !== 0)
      throw changedWhileRead(path);
  }

  /**
   * Throws `SourceError` when the path leads to another file by now, or this one has changed in any way. An object can't
   * change: a single version of it is read.
   */
  async requireSameFile(): Promise<void> {
    const { size, mtimeMs, inode, etag, reopen } = this.file;
    if (etag !== undefined) return;
    const now = await reopen();
    await now.bytes.close();
    if (now.size !== size || now.mtimeMs !== mtimeMs || now.inode !== inode)
      throw changedWhileRead(this.path);
  }
}

function decompressed(compression: Compression, source: ByteSource): ByteSource {
  switch (compression) {
    case 'none':
      return source;
    case 'gzip':
      return new GzipSource(source);
    case 'zstd':
      return new ZstdSource(source);
  }
}

/** Signature in the header of a tar archive's first file, at this offset after its name and numbers (POSIX.1-2017, pax). */
const tarSignature = { at: 257, bytes: Buffer.from('ustar') };

/** Whether the content begins like a tar archive. Looks only at the first piece, so as not to wait for a slow stream. */
async function isTar(content: PeekedSource): Promise<boolean> {
  const { at, bytes } = tarSignature;
  const piece = await content.firstPiece();
  return bytes.equals(piece.subarray(at, at + bytes.length)) && !piece.subarray(0, at).includes(lineBreak);
}

async function formatOf(peeked: PeekedSource): Promise<Signature['format']> {
  for (let count = 1; ; count++) {
    const head = await peeked.peek(count);
    const possible = signatures.filter(({ bytes }) =>
      head.every((byte, i) => i >= bytes.length || byte === bytes[i]),
    );
    const whole = possible.find(({ bytes }) => bytes.length <= head.length);
    if (whole !== undefined) return whole.format;
    if (possible.length === 0 || head.length < count) return 'none';
  }
}

/** The error for a file that was written to while it was read. */
export function changedWhileRead(path: string): SourceError {
  const message = `${path} was changed while it was read; load it again once nothing writes to it`;
  return new SourceError('io', message, { path });
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
  onPiece: (cursor: SourceCursor) => void,
  { openFile, wholes = [], isOther }: KnownEndOptions = {},
): Promise<SourceCursor> {
  const cursor = await SourceCursor.open(path, openFile);
  try {
    const { head } = cursor;
    const ofHead = grownSamples('', 0, new Uint8Array(0), head);
    const likely = wholes.filter((whole) => isBeginningOf(whole, head, ofHead));
    const known = (await matches(cursor, candidatesOf(checkpoints, head, isOther), onPiece)).at(-1) ?? null;
    const longest = Math.max(0, ...likely.map(({ offset }) => offset));
    const ends = (await cursor.skipTo(longest, onPiece)) < longest;
    const { offset, samples } = cursor.position;
    const whole = likely.find((one) => one.offset > offset && isBeginningOf(one, head, samples));
    if (offset === (known?.offset ?? 0)) cursor.known = known;
    else if (ends && whole !== undefined) cursor.known = whole;
    else {
      // `matches` has read past the known end to compare with a longer checkpoint, which belongs to another file.
      const again = await reopenAt(cursor, known, onPiece);
      await cursor.close();
      return again;
    }
    return cursor;
  } catch (error) {
    await cursor.close();
    throw error;
  }
}

/**
 * Whether a file that was read under this path is stored completely, judged by its beginning, its length and, unless it is
 * compressed, its end; what is between is not read. Throws `SourceError`.
 */
export async function isStoredUnchanged(
  path: string,
  checkpoints: readonly Checkpoint[],
  openFile?: OpenFile,
): Promise<boolean> {
  const ofPath = checkpoints.filter((checkpoint) => checkpoint.path === path);
  if (ofPath.length === 0) return false;
  return closing(SourceCursor.open(path, openFile), async (cursor) => {
    const { size } = cursor.file;
    const candidates = candidatesOf(ofPath, cursor.head);
    if (cursor.compression !== 'none') return candidates.some(({ packedBytes }) => packedBytes === size);
    const whole = candidates.filter(({ offset }) => offset === size);
    if (whole.length === 0) return false;
    const tailHash = sha256(await cursor.fileEnd(tailBytesMax));
    return whole.some((checkpoint) => checkpoint.tailHash === tailHash);
  });
}

/** Opens the file of a cursor again, at the end of its archived content. Throws `SourceError` where the file has changed since. */
export async function reopenAt(
  { path, file, head }: SourceCursor,
  known: Checkpoint | null,
  onPiece: (cursor: SourceCursor) => void,
): Promise<SourceCursor> {
  const again = await SourceCursor.open(path, file.reopen);
  again.known = known;
  const offset = known?.offset ?? 0;
  const reached = await again.skipTo(offset, onPiece);
  const isSame = reached === offset && Buffer.compare(again.head, head) === 0;
  if (isSame && (known === null || again.hasContentOf(known))) return again;
  await again.close();
  throw changedWhileRead(path);
}

/** The candidates (in ascending order of offset) whose content the source has. */
async function matches(
  cursor: SourceCursor,
  candidates: readonly Checkpoint[],
  onPiece: (cursor: SourceCursor) => void,
): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  for (const candidate of candidates) {
    const { offset } = candidate;
    // Uncompressed content can't be longer than the file.
    if (cursor.compression === 'none' && offset > cursor.file.size) break;
    if ((await cursor.skipTo(offset, onPiece)) < offset) break;
    if (cursor.hasContentOf(candidate)) found.push(candidate);
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
  const cursor = await SourceCursor.open(path, openFile);
  try {
    return await matches(cursor, candidatesOf(checkpoints, cursor.head), onPiece);
  } finally {
    await cursor.close();
  }
}

/** Opens a file at the beginning of a part that a load has stored, so that it ends where the part ends. */
export async function openPart(
  path: string,
  { from, until, writtenMs }: LoadedPart,
  onPiece: () => void,
  openFile?: OpenFile,
): Promise<SourceCursor> {
  const cursor = await SourceCursor.open(path, openFile);
  try {
    await cursor.skipTo(from?.offset ?? 0, onPiece);
    cursor.endAt(until.offset);
    return Object.assign(cursor, { known: from, part: { offset: until.offset, writtenMs } });
  } catch (error) {
    await cursor.close();
    throw error;
  }
}

/**
 * Tells equal files of an archive apart. Two that are there at once are two files; a file that is not at its path any more has
 * moved. Outside an archive, a file whose content is stored is known, whatever its path.
 */
export class EqualFiles {
  /** Paths at which files are now that were stored under another path, by the key of their checkpoint. */
  private readonly moved = new Map<string, string>();

  /** @param paths the files of the archive that are there, or undefined for files that somebody named */
  constructor(
    private paths: ReadonlySet<string> | undefined,
    private readonly openFile: OpenFile | undefined,
  ) {}

  /** Takes note of the files that are there now. */
  found(paths: ReadonlySet<string>): void {
    this.paths = paths;
  }

  /** Whether another path has a file of its own, so that an equal file is not the one from there. */
  isThere(path: string): boolean {
    return this.paths?.has(path) === true;
  }

  /** Whether one of the checkpoints, whose content the file has, is that of the file and not of another one that is there too. */
  async isStored(path: string, inode: string, equal: readonly Checkpoint[]): Promise<boolean> {
    if (this.paths === undefined) return equal.length > 0;
    if (equal.some((known) => known.path === path)) return true;
    for (const known of equal) {
      const key = checkpointKey(known);
      const holder = this.moved.get(key);
      if (holder !== undefined && holder !== path && this.isThere(holder)) continue;
      const isRenamed = known.inode === inode && !isObjectPath(path);
      if (!isRenamed && (await this.liesAt(known))) continue;
      this.moved.set(key, path);
      return true;
    }
    return false;
  }

  private async liesAt(known: Checkpoint): Promise<boolean> {
    if (!this.isThere(known.path)) return false;
    try {
      return await isStoredUnchanged(known.path, [known], this.openFile);
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      return false;
    }
  }
}
