import { isObjectPath } from '../../engine/index.js';
import { PeekedSource, type ByteSource } from './byte-source.js';
import { GzipSource } from './gzip-source.js';
import { openOnDisk, type OpenedFile, type OpenFile } from './opened-file.js';
import { shellPath } from './shell-path.js';
import { describeSystemError, SourceError } from './source-error.js';
import { ZstdSource } from './zstd-source.js';

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
