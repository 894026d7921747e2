import { crc32 } from 'node:zlib';
import { rejectedBufferBytesMax } from '../limits.js';
import type { RejectedLine } from './commit.js';
import type { Directory, WritableFile } from './directory.js';
import type { RejectedEntry } from './manifest.js';

/**
 * Lines that became no record, kept as JSON Lines with `reason`, `file`, `offset` and `line` (or `line_base64` where the
 * bytes are not UTF-8), so that they can be looked at, and loaded again once the pattern is mended.
 */
export class RejectedFile {
  private pending: Uint8Array[] = [];
  private pendingBytes = 0;
  private writtenBytes = 0;
  private lineCount = 0;
  private checksum = 0;

  private constructor(private readonly file: WritableFile) {}

  static async create(directory: Directory, path: string): Promise<RejectedFile> {
    return new RejectedFile(await directory.create(path));
  }

  get lines(): number {
    return this.lineCount;
  }

  /** What a manifest says of the file, once `sync` has returned. */
  entry(file: string): RejectedEntry {
    return { file, bytes: this.writtenBytes, lines: this.lineCount, checksum: this.checksum };
  }

  async add(line: RejectedLine): Promise<void> {
    const text = encodeRejectedLine(line);
    this.pending.push(text);
    this.pendingBytes += text.length;
    this.lineCount++;
    if (this.pendingBytes >= rejectedBufferBytesMax) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.pendingBytes === 0) return;
    const bytes = Buffer.concat(this.pending);
    await this.file.write(this.writtenBytes, bytes);
    this.checksum = crc32(bytes, this.checksum);
    this.writtenBytes += this.pendingBytes;
    this.pending = [];
    this.pendingBytes = 0;
  }

  async sync(): Promise<void> {
    await this.flush();
    await this.file.sync();
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function encodeRejectedLine({ reason, file, offset, line }: RejectedLine): Uint8Array {
  let content: { line: string } | { line_base64: string };
  try {
    content = { line: strictUtf8.decode(line) };
  } catch {
    content = { line_base64: Buffer.from(line.buffer, line.byteOffset, line.length).toString('base64') };
  }
  return Buffer.from(JSON.stringify({ reason, file, offset, ...content }) + '\n');
}
