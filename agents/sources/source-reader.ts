import { createHash } from 'node:crypto';
import { isObjectPath, ContentHash } from '../../engine/index.js';
import { PeekedSource, type ByteSource, describeSystemError, SourceError } from './byte-source.js';
import { GzipSource, ZstdSource } from './compression.js';
import { openOnDisk, type OpenedFile, type OpenFile } from './opened-file.js';
import { shellPath } from './paths.js';

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

/** A source's content, decompressed where necessary. */
export interface Content {
  readonly compression: Compression;
  readonly content: ByteSource;
}

/**
 * Recognises the compression of `raw` and returns its content. Waits for no more bytes than needed, so that a slow stream is
 * not held up. Throws `SourceError` for an unsupported compression, and for a tar archive.
 */
export async function contentOf(raw: ByteSource): Promise<Content> {
  const peeked = new PeekedSource(raw);
  const format = await formatOf(peeked);
  if (typeof format === 'object') {
    throw new SourceError(
      'unsupported',
      `${raw.path} is compressed with ${format.name}, which is not supported (only gzip and zstd are). Decompress it, or pipe it: ` +
        `${format.unpack} ${raw.path === '-' ? '…' : raw.path} | logstrata load AGENT -`,
      { path: raw.path, offset: 0 },
    );
  }
  const content = new PeekedSource(decompressed(format, peeked));
  if (await isTar(content)) {
    throw new SourceError(
      'unsupported',
      `${raw.path} is a tar archive, which is not supported. Unpack it, or pipe the logs in it: ` +
        `tar -xOf ${raw.path === '-' ? '…' : raw.path} NAME… | logstrata load AGENT -`,
      { path: raw.path, offset: 0 },
    );
  }
  return { compression: format, content };
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

/** An open file whose content can be read once, from the beginning. */
export class SourceReader {
  private constructor(
    readonly path: string,
    /** The function by which it was opened. */
    readonly openFile: OpenFile,
    private readonly opened: OpenedFile,
    readonly compression: Compression,
    readonly content: ByteSource,
  ) {}

  /** Opens the file at `path`. Throws `SourceError` when it can't be read or is not a regular file. */
  static async open(path: string, openFile: OpenFile = openOnDisk): Promise<SourceReader> {
    const opened = await openFile(path);
    try {
      const { compression, content } = await contentOf(opened.bytes);
      return new SourceReader(path, openFile, opened, compression, content);
    } catch (error) {
      await opened.bytes.close();
      throw error instanceof SourceError ? error : describeSystemError(error, path);
    }
  }

  /** Size of the file in bytes, without decompression, as of opening. */
  get fileBytes(): number {
    return this.opened.size;
  }

  /** Modification time in milliseconds, as of opening. */
  get modifiedMs(): number {
    return this.opened.mtimeMs;
  }

  /** See `OpenedFile.inode`. */
  get inode(): string {
    return this.opened.inode;
  }

  /** See `OpenedFile.etag`. */
  get etag(): string | undefined {
    return this.opened.etag;
  }

  /** A shell command that prints the content. */
  get unpackCommand(): string {
    const name = shellPath(this.path);
    const bytes = isObjectPath(this.path) ? `aws s3 cp ${name} - | ` : '';
    const file = bytes === '' ? ` ${name}` : '';
    switch (this.compression) {
      case 'none':
        return `${bytes}cat${file}`;
      case 'gzip':
        return `${bytes}gzip -dc${file}`;
      case 'zstd':
        return `${bytes}zstd -dc${file}`;
    }
  }

  /** The last bytes of the file as of opening, at most `bytesMax`. */
  async fileEnd(bytesMax: number): Promise<Uint8Array> {
    const length = Math.min(bytesMax, this.fileBytes);
    return this.opened.read(this.fileBytes - length, length);
  }

  /** Whether the file has grown since it was opened, which means that it is being written to. */
  async hasGrown(): Promise<boolean> {
    return (await this.opened.now()).size > this.opened.size;
  }

  /**
   * Throws `SourceError` when the file has shrunk, or was written to without having grown.
   *
   * @param head first bytes of the content, which are compared again where the file is not compressed
   */
  async requireUnchanged(head: Uint8Array): Promise<void> {
    const now = await this.opened.now();
    if (now.size < this.opened.size) {
      const sizes = `from ${this.opened.size} to ${now.size} bytes`;
      throw new SourceError('io', `${this.path} shrank while it was read, ${sizes}`, { path: this.path });
    }
    if (now.size === this.opened.size && now.mtimeMs === this.opened.mtimeMs) return;
    const appended = now.size > this.opened.size && this.compression === 'none';
    if (appended && (await this.beginsWith(head))) return;
    throw changedWhileRead(this.path);
  }

  /**
   * Throws `SourceError` when the path leads to another file by now, or this one has changed in any way. An object can't
   * change: a single version of it is read.
   */
  async requireSameFile(): Promise<void> {
    if (this.etag !== undefined) return;
    const now = await this.openFile(this.path);
    await now.bytes.close();
    const { size, mtimeMs, inode } = this.opened;
    if (now.size !== size || now.mtimeMs !== mtimeMs || now.inode !== inode)
      throw changedWhileRead(this.path);
  }

  private async beginsWith(head: Uint8Array): Promise<boolean> {
    const bytes = await this.opened.read(0, head.length);
    return Buffer.compare(bytes, head) === 0;
  }

  /** Closes the file. */
  close(): Promise<void> {
    return this.content.close();
  }
}

/** The error for a file that was written to while it was read. */
export function changedWhileRead(path: string): SourceError {
  const message = `${path} was changed while it was read; load it again once nothing writes to it`;
  return new SourceError('io', message, { path });
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

/**
 * Reads the content of a source so that it can be recognised: its beginning can be looked at, a part can be skipped, and the
 * hash of what was skipped or read is known. The caller of `next` reports by `hashed` the bytes that became part of the
 * archive.
 */
export class ContentReader {
  private readonly source: PeekedSource;
  private rest: Uint8Array | null = null;
  private readonly hash = new ContentHash();
  private position = 0;
  private tailBytes: Uint8Array = new Uint8Array(0);
  private sampled = '';
  /** Number of bytes that may still be returned. */
  private left = Infinity;

  constructor(source: ByteSource) {
    this.source = new PeekedSource(source);
  }

  /** Path of the source, for messages. */
  get path(): string {
    return this.source.path;
  }

  /** Content offset after the last byte that was hashed. */
  get offset(): number {
    return this.position;
  }

  /** Bytes of the file that were taken, before decompression; a measure of progress. */
  get bytesTaken(): number {
    return this.source.bytesTaken;
  }

  /** The first bytes of the content, at most `count`. Call it before anything else is read. */
  async head(count: number): Promise<Uint8Array> {
    return (await this.source.peek(count)).slice();
  }

  /** Skips the content up to `offset` and hashes it. Returns the offset reached, which is less where the content ends before. */
  async skipTo(offset: number, onPiece: () => void): Promise<number> {
    while (this.position < offset) {
      const piece = await this.next();
      if (piece === null) break;
      const taken = Math.min(piece.length, offset - this.position);
      this.hashed(piece.subarray(0, taken));
      this.rest = taken < piece.length ? piece.subarray(taken) : null;
      onPiece();
    }
    return this.position;
  }

  /** Makes the content end at `offset`, which must not have been passed. All content that was returned must have been hashed. */
  endAt(offset: number): void {
    this.left = offset - this.position;
  }

  /** The next piece of content; null at the end. Valid until the next call. */
  async next(): Promise<Uint8Array | null> {
    if (this.left === 0) return null;
    const piece = this.rest ?? (await this.source.next());
    this.rest = null;
    const given = piece?.subarray(0, this.left) ?? null;
    this.left -= given?.length ?? 0;
    return given;
  }

  /** Like `next`, but reads into the caller's memory; undefined where the source does not support that. */
  get nextInto(): ByteSource['nextInto'] {
    const inner = this.source.nextInto;
    if (inner === undefined) return undefined;
    return async (target) => {
      const wanted = target.subarray(0, this.left);
      const length = this.rest === null ? await inner(wanted) : this.giveRest(this.rest, wanted);
      this.left -= length;
      return length;
    };
  }

  private giveRest(rest: Uint8Array, target: Uint8Array): number {
    const length = Math.min(rest.length, target.length);
    target.set(rest.subarray(0, length));
    this.rest = length < rest.length ? rest.subarray(length) : null;
    return length;
  }

  /** Adds content to the hash, in order. */
  hashed(bytes: Uint8Array): void {
    this.hash.update(bytes);
    this.sampled = grownSamples(this.sampled, this.position, this.tailBytes, bytes);
    this.position += bytes.length;
    this.tailBytes = contentTail(this.tailBytes, bytes);
  }

  /** The hash of the content up to `offset`, in the form of checkpoints. */
  digest(): string {
    return this.hash.digest();
  }

  /** The samples of the content up to `offset`, as `grownSamples` takes them. */
  samples(): string {
    return this.sampled;
  }

  /** The last bytes before `offset`, at most `tailBytesMax`. */
  tail(): Uint8Array {
    return this.tailBytes;
  }
}

/** SHA-256 in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
