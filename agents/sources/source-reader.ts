import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { FileSource, PeekedSource, type ByteSource } from './byte-source.js';
import { GzipSource } from './gzip-source.js';
import { describeSystemError, SourceError } from './source-error.js';
import { ZstdSource } from './zstd-source.js';

/** How a source's bytes are packed; told by what it begins with, never by its name. */
export type Compression = 'none' | 'gzip' | 'zstd';

interface Signature {
  readonly bytes: readonly number[];
  /** What it means; a format that is not read has the command that unpacks it. */
  readonly format: Compression | { readonly name: string; readonly unpack: string };
}

/** The beginnings of files by which their format is known (RFC 1952; RFC 8878; the others' own specifications). */
const signatures: readonly Signature[] = [
  { bytes: [0x1f, 0x8b, 0x08], format: 'gzip' },
  { bytes: [0x28, 0xb5, 0x2f, 0xfd], format: 'zstd' },
  // The sixteen magic numbers of a skippable frame, which may stand in front of the first zstd frame.
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

/** Whether bytes begin like a compressed file that is read. */
export function isCompressed(head: Uint8Array): boolean {
  return signatures.some(
    ({ bytes, format }) => typeof format === 'string' && bytes.every((byte, i) => byte === head[i]),
  );
}

/** A source and its content, decompressed where it is compressed. */
export interface Content {
  readonly compression: Compression;
  readonly content: ByteSource;
}

/**
 * The content of `raw`. Waits for no more bytes than it takes to tell, so that a slow stream is not held up.
 * Throws `SourceError` for a compression that we don't read.
 */
export async function contentOf(raw: ByteSource): Promise<Content> {
  const peeked = new PeekedSource(raw);
  const format = await formatOf(peeked);
  if (typeof format === 'object') {
    throw new SourceError(
      'unsupported',
      `${raw.path} is compressed with ${format.name}, which is not read; gzip and zstd are. Unpack it, or pipe it: ` +
        `${format.unpack} ${raw.path === '-' ? '…' : raw.path} | logstrata load AGENT -`,
      { path: raw.path, offset: 0 },
    );
  }
  switch (format) {
    case 'none':
      return { compression: format, content: peeked };
    case 'gzip':
      return { compression: format, content: new GzipSource(peeked) };
    case 'zstd':
      return { compression: format, content: new ZstdSource(peeked) };
  }
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

/** A file that is open for reading its content once, from the beginning. */
export class SourceReader {
  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    private readonly opened: Stats,
    readonly compression: Compression,
    readonly content: ByteSource,
  ) {}

  /** Opens the file at `path`. Throws `SourceError` when it can't be read, or is no regular file. */
  static async open(path: string): Promise<SourceReader> {
    let handle: FileHandle;
    try {
      // Without O_NONBLOCK, opening a named pipe waits for a writer.
      handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      throw describeSystemError(error, path);
    }
    try {
      const stats = await handle.stat();
      requireRegularFile(stats, path);
      const { compression, content } = await contentOf(new FileSource(path, handle, stats.size));
      return new SourceReader(path, handle, stats, compression, content);
    } catch (error) {
      await handle.close();
      throw error instanceof SourceError ? error : describeSystemError(error, path);
    }
  }

  /** Size of the file when it was opened, in bytes, as it lies there. */
  get fileBytes(): number {
    return this.opened.size;
  }

  /** When it was changed last, as of when it was opened (ms). */
  get modifiedMs(): number {
    return this.opened.mtimeMs;
  }

  /** Device and number of the file. */
  get inode(): string {
    return inodeOf(this.opened);
  }

  /** What prints the content on a command line. */
  get unpackCommand(): string {
    const name = `'${this.path.replaceAll("'", `'\\''`)}'`;
    switch (this.compression) {
      case 'none':
        return `cat ${name}`;
      case 'gzip':
        return `gzip -dc ${name}`;
      case 'zstd':
        return `zstd -dc ${name}`;
    }
  }

  /** The last bytes of the file as it was opened, at most so many. */
  async fileEnd(bytesMax: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(Math.min(bytesMax, this.fileBytes));
    const { bytesRead } = await this.handle.read(bytes, 0, bytes.length, this.fileBytes - bytes.length);
    return bytes.subarray(0, bytesRead);
  }

  /** Whether the file is longer now than when it was opened: somebody writes to it. */
  async hasGrown(): Promise<boolean> {
    return (await this.stats()).size > this.opened.size;
  }

  /**
   * Throws `SourceError` when the file is not what was opened: shorter, or written to without having grown.
   *
   * @param head what the content began with, compared again where the file is not compressed
   */
  async requireUnchanged(head: Uint8Array): Promise<void> {
    const now = await this.stats();
    const place = { path: this.path };
    if (now.size < this.opened.size) {
      const sizes = `from ${this.opened.size} to ${now.size} bytes`;
      throw new SourceError('io', `${this.path} shrank while it was read, ${sizes}`, place);
    }
    if (now.size === this.opened.size && now.mtimeMs === this.opened.mtimeMs) return;
    const appended = now.size > this.opened.size && this.compression === 'none';
    if (appended && (await this.beginsWith(head))) return;
    throw new SourceError(
      'io',
      `${this.path} was changed while it was read; load it when nobody writes to it`,
      place,
    );
  }

  private async beginsWith(head: Uint8Array): Promise<boolean> {
    const bytes = new Uint8Array(head.length);
    const { bytesRead } = await this.handle.read(bytes, 0, bytes.length, 0);
    return bytesRead === head.length && Buffer.compare(bytes, head) === 0;
  }

  private async stats(): Promise<Stats> {
    try {
      return await this.handle.stat();
    } catch (error) {
      throw describeSystemError(error, this.path);
    }
  }

  close(): Promise<void> {
    return this.content.close();
  }
}

/** Device and number of a file, as checkpoints name them. */
export function inodeOf({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`;
}

function requireRegularFile(stats: Stats, path: string): void {
  if (stats.isFile()) return;
  const what = stats.isDirectory() ? `a folder; name its files: ${join(path, '*')}` : 'not a regular file';
  const hint = stats.isDirectory() ? '' : '; pipe it in: … | logstrata load AGENT -';
  throw new SourceError('invalid', `${path} is ${what}${hint}`, { path });
}
